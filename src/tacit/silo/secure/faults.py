"""Faults of another owner that a session notices."""

from __future__ import annotations

from tacit.errors import TacitError


class PeerFault(TacitError):
    """What the owner `rank` sent cannot be used; `what` ends the sentence that begins with it."""

    def __init__(self, rank: int, what: str) -> None:
        super().__init__(f"party {rank} {what}.")
        self.rank = rank
        self.what = what
