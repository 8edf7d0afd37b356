"""What a round's reports become on their way to the analyser: a shuffled or a signed batch.

`PermutedPool` is that of a blind shuffler: sealed reports in a secret order, and no word about who
sent them. `SignedPool` is that of a share helper: every report goes on under its node's signature,
and the helper keeps its own part of each, the sealed seed of a mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from tacit.errors import TacitError, check_at_least
from tacit.fleet.deployment.batches.records import SignedRecord
from tacit.fleet.deployment.batches.signatures import digest_of
from tacit.fleet.deployment.seal import Opener, sealed_size
from tacit.noise import SYSTEM_NOISE, NoiseSource, permutation


class Refused(TacitError):
    """A report or batch that was not taken: `code` for programs, the sentence for people."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Pool(Protocol):
    """The reports of the open round."""

    @property
    def analyser_bytes(self) -> int:
        """The size of the analyser's sealed part."""
        ...

    @property
    def helper_bytes(self) -> int:
        """The size of the helper's own sealed part; 0 if there is none."""
        ...

    def check(self, body: bytes, *, round_number: int, key: bytes) -> None:
        """Refuse a report that cannot be used, as far as this server can tell."""
        ...

    def add(self, body: bytes, *, key: bytes, signature: bytes) -> None:
        """Keep one report."""
        ...

    def batch(self) -> tuple[bytes, bytes]:
        """What goes to the analyser, and what the helper keeps, in the same order."""
        ...

    def clear(self) -> None:
        """Forget all reports."""
        ...

    def __len__(self) -> int:
        """How many reports it holds."""
        ...


class PermutedPool:
    """Reports apart from their senders; there is no list that joins the two.

    Guarantee: given the contents, every assignment of messages to senders is equally likely in
    what `batch` returns; nothing else about the senders is in it but their number.
    Assumes: `source` is uniform, independent and secret.
    """

    helper_bytes = 0

    def __init__(self, *, sealed_bytes: int, source: NoiseSource = SYSTEM_NOISE) -> None:
        self.analyser_bytes = check_at_least(sealed_bytes, 1, name="sealed_bytes")
        self._source = source
        self.clear()

    def check(self, body: bytes, *, round_number: int, key: bytes) -> None:
        """A blind shuffler can tell nothing of a sealed report."""

    def add(self, body: bytes, *, key: bytes, signature: bytes) -> None:
        """Keep the report and nothing about its sender."""
        self._reports += body

    def batch(self) -> tuple[bytes, bytes]:
        """The reports in a new, uniformly random order."""
        return shuffle_messages(self._reports, self.analyser_bytes, source=self._source), b""

    def clear(self) -> None:
        """Forget all reports."""
        self._reports = bytearray()

    def __len__(self) -> int:
        return len(self._reports) // self.analyser_bytes


class SignedPool:
    """Reports with their signatures, and the helper's own sealed parts beside them."""

    def __init__(self, *, analyser_bytes: int, helper_bytes: int, opener: Opener) -> None:
        self.analyser_bytes = check_at_least(analyser_bytes, 1, name="analyser_bytes")
        self.helper_bytes = sealed_size(helper_bytes)
        self._opener = opener
        self.clear()

    def check(self, body: bytes, *, round_number: int, key: bytes) -> None:
        """Refuse a report whose seed does not open: its mask could never be taken off."""
        own = body[self.analyser_bytes :]
        if self._opener.open(own, round_number=round_number, sender=key) is None:
            raise Refused(
                "unreadable",
                "the share helper's part does not open; seal it for this run, round and node.",
            )

    def add(self, body: bytes, *, key: bytes, signature: bytes) -> None:
        """Keep the report under its node's key."""
        own = body[self.analyser_bytes :]
        record = SignedRecord(key, digest_of(own), signature, body[: self.analyser_bytes])
        self._reports[key] = (record, own)

    def batch(self) -> tuple[bytes, bytes]:
        """Signed records for the analyser and sealed seeds for the helper, ordered by key."""
        ordered = [self._reports[key] for key in sorted(self._reports)]
        records = b"".join(record.to_bytes() for record, _ in ordered)
        return records, b"".join(own for _, own in ordered)

    def clear(self) -> None:
        """Forget all reports."""
        self._reports: dict[bytes, tuple[SignedRecord, bytes]] = {}

    def __len__(self) -> int:
        return len(self._reports)


def cut(content: bytes, size: int) -> Iterator[bytes]:
    """The equal-sized pieces of `content`."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


def shuffle_messages(pool: bytes | bytearray, size: int, *, source: NoiseSource) -> bytes:
    """The equal-sized messages of `pool` in a uniformly random order."""
    messages = np.frombuffer(pool, dtype=np.uint8).reshape(-1, size)
    return messages[permutation(len(messages), source=source)].tobytes()
