"""The engine's shares as plain bytes for the wire, and as words for `secure.replicated`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.replicated import Pair

_ADDITIVE = "aby3.AShr<FM64>"


def frame_of(share: Any) -> tuple[dict[str, Any], bytes]:
    """A share as plain header and bytes: SPU's own encoding of its parts, no pickle."""
    chunks = [bytes(chunk) for chunk in share.share_chunks]
    header = {"meta": bytes(share.meta).hex(), "chunks": [len(chunk) for chunk in chunks]}
    return header, b"".join(chunks)


def share_from(header: dict[str, Any], payload: bytes, *, like: Any | None, sender: int) -> Any:
    """The share that `frame_of` described, if it has the type, shape and sizes of `like`.

    `like` is our own share of the same value, or one of zeros; None accepts any form. The engine
    trusts what it is given: a share of another form would be read beyond its end.
    """
    from spu import libspu

    share = libspu.Share()
    try:
        share.meta = bytes.fromhex(header["meta"])
        ends = np.cumsum([0, *header["chunks"]]).tolist()
        share.share_chunks = [payload[start:end] for start, end in pairwise(ends)]
        same = ends[-1] == len(payload) and (like is None or _form(share) == _form(like))
    except (KeyError, TypeError, ValueError, RuntimeError):
        same = False
    if not same:
        raise PeerFault(sender, "sent a share whose type or shape differs from the plan's")
    return share


def _form(share: Any) -> tuple[Any, ...]:
    """Everything about a share but its words."""
    chunks = [_chunk(part) for part in share.share_chunks]
    sizes = tuple((c.total_bytes, c.chunk_offset, len(c.content)) for c in chunks)
    return bytes(share.meta), sizes


def words_of(share: Any, shape: tuple[int, ...]) -> Pair:
    """This party's two words of every value of an additive ABY3 share."""
    from spu import libspu

    meta = libspu.ValueMeta()
    meta.ParseFromString(share.meta)
    if meta.storage_type != _ADDITIVE:
        raise TacitError(f"a share is held as {meta.storage_type} instead of {_ADDITIVE}.")
    content = b"".join(_chunk(part).content for part in share.share_chunks)
    words = np.frombuffer(content, dtype=np.uint64).reshape(*shape, 2)
    return words[..., 0], words[..., 1]


def _chunk(part: bytes) -> Any:
    from spu import libspu

    chunk = libspu.ValueChunk()
    chunk.ParseFromString(part)
    return chunk


def share_of(words: Pair) -> Any:
    """An additive ABY3 share of 64-bit integers from this party's two words of every value."""
    from spu import libspu

    meta = libspu.ValueMeta()
    meta.data_type, meta.visibility = libspu.DataType.DT_I64, libspu.Visibility.VIS_SECRET
    meta.shape, meta.storage_type = list(words[0].shape), _ADDITIVE
    chunk = libspu.ValueChunk()
    chunk.content = np.stack(words, axis=-1).tobytes()
    chunk.total_bytes, chunk.chunk_offset = len(chunk.content), 0
    share = libspu.Share()
    share.meta, share.share_chunks = meta.SerializeToString(), [chunk.SerializeToString()]
    return share
