"""What an attack reports, and the most that a guarantee lets an attacker reach."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from tacit.audit.bounds import proportion_above
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sound = {**asdict(self.sound), "guarantee": self.sound.guarantee.to_dict()}
        return {**asdict(self), "guarantee": self.guarantee.to_dict(), "sound": sound}


def best_guess_rate(epsilon: float, n_candidates: int, *, delta: float = 0.0) -> float:
    """The most often that anybody names the right one of n equally likely inputs of a release.

    Proof for an (epsilon, delta)-LDP release: P[name i | i] <= e**epsilon P[name i | j] + delta
    for every j. Add P[name i | i] itself and n - 1 of these, each times e**-epsilon, then add up
    over i: the sum of P[name i | i] times (1 + (n - 1) e**-epsilon) is at most
    n + n (n - 1) e**-epsilon delta.
    """
    return min(1.0, 1.0 / (1.0 + (n_candidates - 1) * math.exp(-epsilon)) + delta)
