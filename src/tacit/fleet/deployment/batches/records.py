"""The signed records of a `distributed` batch: what the share helper hands on to the analyser.

A record holds the node's public key, the digest of the part that the helper kept, the node's
signature, and the analyser's part, sealed to it. Records lie in the order of their keys, so that
the order says nothing about when they came, and so that both servers number them alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tacit.fleet.deployment.batches.signatures import DIGEST_BYTES, KEY_BYTES, SIGNATURE_BYTES

_HEAD = KEY_BYTES + DIGEST_BYTES + SIGNATURE_BYTES


@dataclass(frozen=True, slots=True)
class SignedRecord:
    """One node's report as the analyser gets it."""

    key: bytes
    helper_digest: bytes
    signature: bytes
    sealed: bytes

    def to_bytes(self) -> bytes:
        """One record of fixed size; `read_records` reads them back."""
        return self.key + self.helper_digest + self.signature + self.sealed


def record_size(sealed_bytes: int) -> int:
    """The size of every record whose sealed part has `sealed_bytes`."""
    return _HEAD + sealed_bytes


def read_records(content: bytes, *, size: int) -> Iterator[SignedRecord]:
    """The records of a batch, one after the other."""
    for start in range(0, len(content), size):
        record = content[start : start + size]
        yield SignedRecord(
            key=record[:KEY_BYTES],
            helper_digest=record[KEY_BYTES : KEY_BYTES + DIGEST_BYTES],
            signature=record[KEY_BYTES + DIGEST_BYTES : _HEAD],
            sealed=record[_HEAD:],
        )


def set_digest(run: str, round_number: int, keys: Iterable[bytes]) -> str:
    """What both servers compare before anything is added: run, round, and whose reports."""
    text = f"tacit/fleet/set/1|{run}|{round_number}|".encode()
    return hashlib.sha256(text + b"".join(sorted(keys))).hexdigest()
