"""Whether the costs that a plan file states are too small, without an accountant.

A node debits what its plan file says, since working it out takes more than NumPy. Whoever writes
the file could state next to nothing and have the node report past its person's budget. Continuous
Gaussian noise of the same variance has a smaller epsilon than the accountant's bound for what is
drawn, and its exact curve (Balle and Wang 2018) needs the error function only: costs below it are
refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.errors import TacitError

_NOTHING = 500.0  # an epsilon above this promises nothing, and its exponential overflows
_ROUNDING = 1.0 + 1e-6  # of epsilons that were added and subtracted in decimals


def check_stated_costs(
    costs: Sequence[tuple[float, float]], *, shift_per_sigma: float, delta: float
) -> None:
    """Refuse (epsilon, delta) of successive rounds whose sums promise more than the noise gives.

    `shift_per_sigma` is how far one client moves a round's sum, in standard deviations.
    """
    total, given = 0.0, 0.0
    for rounds, (epsilon, share) in enumerate(costs, start=1):
        total, given = total + epsilon, given + share
        mu = shift_per_sigma * math.sqrt(rounds)
        if not (
            epsilon >= 0.0
            and given * _ROUNDING >= delta
            and (total > _NOTHING or gaussian_delta(mu, total * _ROUNDING) <= delta * _ROUNDING)
        ):
            raise TacitError(
                f"the plan states epsilon = {total:.6g}, delta = {given:.6g} for {rounds} "
                "round(s), which is less than its noise gives; nothing was reported, take the plan "
                "that 'tacit fleet init' wrote."
            )


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The exact delta of Gaussian noise on a query that moves by `mu` standard deviations."""
    first = _below(0.5 * mu - epsilon / mu)
    second = _below(-0.5 * mu - epsilon / mu)
    return first - math.exp(epsilon) * second


def _below(value: float) -> float:
    """The probability that a standard normal is at most this."""
    return 0.5 * math.erfc(-value / math.sqrt(2.0))
