"""The engine's shares as plain bytes for the wire, and as words for `secure.replicated`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.secure.faults import PeerFault
from tacit.silo.secure.replicated import Pair

_ADDITIVE = "aby3.AShr<FM64>"
_REPLICATED = ("aby3.AShr<", "aby3.BShr<")  # rank r holds the words r and r + 1 of three


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


def check_copies(shares: Sequence[Any], *, n_values: int, own: int | None) -> None:
    """Refuse replicated shares whose copies differ; `shares` are of the ranks 0, 1 and 2.

    Rank r holds the words r and r + 1 of every value, so each word is there twice and one party
    alone cannot alter what is opened. `own` is the rank of whoever compares, who trusts itself;
    of two others it cannot tell which one is at fault, and names the first.
    """
    words = [_copies(share, n_values) for share in shares]
    for rank, (_, second) in enumerate(words):
        following = (rank + 1) % len(words)
        if not np.array_equal(second, words[following][0]):
            culprit, other = (following, rank) if rank == own else (rank, following)
            whose = "this party's own copies" if other == own else f"the copies of rank {other}"
            raise PeerFault(culprit, f"sent an opening whose words differ from {whose}")


def _copies(share: Any, n_values: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The two words of every value as bytes, whatever the engine's type of the value is."""
    from spu import libspu

    meta = libspu.ValueMeta()
    meta.ParseFromString(share.meta)
    if not meta.storage_type.startswith(_REPLICATED):
        raise TacitError(f"an opening is held as {meta.storage_type}, which cannot be compared.")
    content = b"".join(_chunk(part).content for part in share.share_chunks)
    width = len(content) // max(2 * n_values, 1)
    pairs = np.frombuffer(content, dtype=np.uint8).reshape(n_values, 2, width)
    return pairs[:, 0], pairs[:, 1]


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
    share = libspu.Share()
    share.meta, share.share_chunks = meta.SerializeToString(), [_chunk_of(words)]
    return share


def _chunk_of(words: Pair) -> bytes:
    """All words as one chunk; copies are dropped early, because a table may be large."""
    from spu import libspu

    chunk = libspu.ValueChunk()
    content = np.stack(words, axis=-1).tobytes()
    chunk.total_bytes, chunk.chunk_offset = len(content), 0
    chunk.content = content
    del content
    return bytes(chunk.SerializeToString())
