"""The analyser's side of an agreed sum: it names a set of reports once, and waits for its masks.

The set is on the analyser's disk before the share helper is told, so that a crash cannot lead to a
second set; the helper, for its part, would refuse one.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from tacit.fleet.deployment.batches.opening import Opened
from tacit.fleet.deployment.batches.pools import Refused
from tacit.fleet.deployment.shuffler_state import Batch
from tacit.system.files import write_atomic

_PATIENCE_SECONDS = 5.0


class NoSumYet(Exception):
    """The share helper's sum has not come; the batch stays where it is until it does."""


class NoSumEver(Exception):
    """The share helper will never give the sum; the round ends without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Whose reports are to be added: all of the batch but the places left out."""

    batch_id: str
    left_out: tuple[int, ...]
    digest: str


class AgreedSum:
    """One batch's agreement and the sum that belongs to it."""

    def __init__(self, path: Path, *, sum_bytes: int) -> None:
        self._path = path
        self._sum_bytes = sum_bytes
        self._since = 0.0
        self._content: bytes | None = None
        self._refused: str | None = None
        self.asked: Agreement | None = None

    def left_out(self, batch: Batch) -> frozenset[int] | None:
        """What was left out before a crash, or None if nothing was agreed on for this batch."""
        if not self._path.exists():
            return None
        plain = json.loads(self._path.read_bytes())
        return frozenset(plain["left_out"]) if plain["batch_id"] == batch.batch_id else None

    def over(self, batch: Batch, opened: Opened) -> bytes:
        """The helper's sum over the reports that count; `NoSumYet` as long as it is awaited.

        `NoSumEver` once the helper has refused it.
        """
        if self.asked is None:
            plain = {"batch_id": batch.batch_id, "left_out": list(opened.left_out)}
            write_atomic(self._path, json.dumps(plain).encode())
            self._since = time.monotonic()
            self.asked = Agreement(
                batch_id=batch.batch_id, left_out=opened.left_out, digest=opened.digest
            )
        if self._content is not None:
            return self._content
        if self._refused is not None:
            raise NoSumEver(self._refused)
        raise NoSumYet

    def take(
        self, *, batch_id: str, digest: str, content: bytes, refused: str | None = None
    ) -> None:
        """Take the helper's sum, or why it gives none, for the set that was asked for only."""
        asked = self.asked
        if asked is None or (batch_id, digest) != (asked.batch_id, asked.digest):
            raise Refused(
                "wrong-set", "the analyser is not waiting for a sum over this set of reports."
            )
        if refused is not None:
            self._refused = refused[:200]
            return
        if len(content) != self._sum_bytes:
            raise Refused("wrong-size", f"a sum has {self._sum_bytes} bytes, got {len(content)}.")
        self._content = content

    def clear(self) -> None:
        """Forget the agreement: its batch has come to its end."""
        self._path.unlink(missing_ok=True)
        self.asked = self._content = self._refused = None

    def trouble(self) -> str | None:
        """That the helper keeps the round waiting, or None."""
        waited = time.monotonic() - self._since
        if self.asked is None or self._content is not None or waited < _PATIENCE_SECONDS:
            return None
        return f"the share helper has not sent its sum for {waited:.0f} s"
