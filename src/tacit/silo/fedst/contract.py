"""The contract of time: P0 ends the search so that all of it takes about as long as agreed.

It counts from the start of the program, with sharing before the first candidate and ranking after
the last one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

# Ranking is rehearsed when so many times more candidates have been examined.
MORE = 4
GO_ON, REHEARSE, STOP = "go on", "rehearse", "stop"


@dataclass(slots=True)
class SearchClock:
    """The seconds of one search at this owner; at P0 they decide when the search ends."""

    contract: float | None
    rehearsed: list[tuple[int, float]] = field(default_factory=list)  # candidates, seconds
    n_examined: int = 0  # candidates that would be ranked if the search ended now
    ends: list[float] = field(default_factory=list)  # of the batches
    ended_after: float = 0.0  # when the last question whether to go on was asked
    _start: float = field(init=False)
    _begun: float = 0.0
    _examining: float = 0.0

    def __post_init__(self) -> None:
        self._start = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def begin_batch(self) -> None:
        """The next candidates are about to be examined."""
        self._begun = self.spent

    def end_batch(self, n_candidates: int) -> None:
        """They have been."""
        now = self.spent
        self.n_examined += n_candidates
        self.ends.append(round(now, 4))
        self._examining += now - self._begun

    def note_rehearsal(self) -> None:
        """Ranking what was examined so far has just been rehearsed, since the last verdict."""
        self.rehearsed.append((self.n_examined, self.spent - self.ended_after))

    @property
    def ranking(self) -> float:
        """Seconds that ranking will take: rounds, and a part that grows with the pairs."""
        if not self.rehearsed:
            return 0.0
        n, seconds = self.rehearsed[-1]
        if len(self.rehearsed) == 1:
            return seconds
        before, less = self.rehearsed[-2]
        slope = max(0.0, seconds - less) / (n**2 - before**2)
        return seconds + slope * (self.n_examined**2 - n**2)

    @property
    def mean_batch(self) -> float:
        """Seconds that one batch has taken, in the mean."""
        return self._examining / max(1, len(self.ends))

    def seconds_left(self, *, batches_left: int) -> float:
        """How long the search will go on, ranking included."""
        left = batches_left * self.mean_batch + self.ranking
        return left if self.contract is None else min(left, max(0.0, self.contract - self.spent))

    def verdict(self) -> str:
        """What comes next: GO_ON, REHEARSE first, or STOP.

        The search stops where it ends nearer to the contract now than one batch later. Ranking is
        rehearsed only where that leaves time for a batch.
        """
        self.ended_after = self.spent
        if self.contract is None:
            return GO_ON
        end = self.ended_after + self.ranking + 0.5 * self.mean_batch
        if end > self.contract:
            return STOP
        stale = not self.rehearsed or self.n_examined >= MORE * self.rehearsed[-1][0]
        return REHEARSE if stale and end + self.ranking <= self.contract else GO_ON

    @property
    def info(self) -> dict[str, float]:
        """What the decision rested on; nothing without a contract."""
        if self.contract is None:
            return {}
        return {
            "seconds": self.contract,
            "ended_after": self.ended_after,
            "ranking_expected": self.ranking,
            "rehearsals": len(self.rehearsed),
            "mean_batch": self.mean_batch,
        }
