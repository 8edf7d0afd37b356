"""What an attack reports, and the most that a guarantee lets an attacker reach."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from tacit.audit.bounds import proportion_above
from tacit.audit.shown import table_html
from tacit.guarantee import Guarantee, Unprotected


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundCheck:
    """The same attack on the sound mechanism: `within` if `rate` does not exceed the bound."""

    rate: float
    bound: float
    runs: int
    within: bool
    what: str
    guarantee: Guarantee

    @classmethod
    def of(
        cls,
        *,
        hits: int,
        runs: int,
        bound: float,
        what: str,
        guarantee: Guarantee,
        false_alarm: float = 1e-6,
    ) -> SoundCheck:
        """Exceeded only if the hits prove a rate above `bound` at this false alarm."""
        return cls(
            rate=hits / runs,
            bound=bound,
            runs=runs,
            within=proportion_above(hits, runs, false_alarm=false_alarm) <= bound,
            what=what,
            guarantee=guarantee,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """`rate` of success on the published mechanism, beside `chance` for an attacker who guesses."""

    attack: str
    succeeded: bool
    rate: float
    chance: float
    seconds: float
    guarantee: Unprotected
    sound: SoundCheck
    details: dict[str, Any] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """For notebooks: both rates beside what guessing and the guarantee allow."""
        rows = [
            ("attack", self.attack),
            ("published", f"{self.rate:.1%} (guessing: {self.chance:.1%})"),
            ("sound", f"{self.sound.rate:.1%} of {self.sound.runs:,} tries"),
            ("most that its guarantee allows", f"{self.sound.bound:.1%}"),
            ("verdict", "within it" if self.sound.within else "ABOVE it"),
        ]
        return table_html(rows, (self.guarantee, self.sound.guarantee))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sound = {**asdict(self.sound), "guarantee": self.sound.guarantee.to_dict()}
        return {**asdict(self), "guarantee": self.guarantee.to_dict(), "sound": sound}


def best_guess_rate(epsilon: float, n_candidates: int, *, delta: float = 0.0) -> float:
    """The highest rate at which anybody guesses which of n equally likely inputs was released.

    Proof for an (epsilon, delta)-LDP release: P[guess i | i] <= e**epsilon P[guess i | j] + delta
    for every j. Add P[guess i | i] itself and n - 1 of these, each times e**-epsilon, then add up
    over i: the sum of P[guess i | i] times (1 + (n - 1) e**-epsilon) is at most
    n + n (n - 1) e**-epsilon delta.
    """
    return min(1.0, 1.0 / (1.0 + (n_candidates - 1) * math.exp(-epsilon)) + delta)
