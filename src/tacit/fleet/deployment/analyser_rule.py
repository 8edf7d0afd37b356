"""What the analyser must know about learning, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tacit.guarantee import DpGuarantee


class Rule(Protocol):
    """How messages become a model: everything about learning that the analyser must know."""

    @property
    def message_bytes(self) -> int:
        """The size of one opened message."""
        ...

    @property
    def helper_bytes(self) -> int:
        """The size of the share helper's part of a report; 0 if there is no share helper."""
        ...

    def initial(self) -> bytes:
        """The model before the first round."""
        ...

    def check(self, message: bytes) -> None:
        """Raise TacitError if no honest node could have sent the message."""
        ...

    def update(self, model: bytes, messages: list[bytes], helper_sum: bytes = b"") -> bytes:
        """The next model from one round's messages, all of them checked."""
        ...

    def spent(self, received: Sequence[int]) -> DpGuarantee | None:
        """What protects every client of a run whose rounds had these numbers of reports."""
        ...
