"""Theorem 1 and Table I of the DP-TimeFL paper, beside what can be proved.

Equation 4 of the paper is an order of magnitude, O((e^eps_l - 1) sqrt(ln(1/delta) / n)); Table I
sets the hidden constant to 1 and delta to 1e-9. `timefl_theorem_1` computes that number so that it
can be compared; it is not a guarantee, and nothing else in the package uses it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.accounting.shuffle import shuffle_epsilon
from tacit.errors import check_at_least, check_delta, check_epsilon

TABLE_DELTA = 1e-9
TABLE_CENTRAL = (0.1, 0.3, 0.5, 0.7, 0.9)
TABLE_LOCAL = {  # as printed: n -> the local epsilon for each central one
    10**4: (1.16, 2.03, 2.48, 2.80, 3.03),
    10**5: (2.07, 3.08, 3.58, 3.90, 4.15),
    10**6: (3.13, 4.20, 4.71, 5.04, 5.29),
    10**7: (4.26, 5.34, 5.85, 6.19, 6.44),
    10**8: (5.40, 6.49, 7.00, 7.34, 7.59),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeflClaim:
    """What Theorem 1 says with its constant set to 1: a claim, not a guarantee."""

    central_epsilon: float
    condition_limit: float
    condition_holds: bool


def timefl_condition_limit(*, n: int, delta: float) -> float:
    """Theorem 1 asks for a local epsilon below half of ln(n / ln(1/delta))."""
    return 0.5 * math.log(n / math.log(1.0 / delta))


def timefl_theorem_1(*, local_epsilon: float, n: int, delta: float) -> TimeflClaim:
    """The paper's central epsilon, with its O() constant set to 1 as in its Table I."""
    check_epsilon(local_epsilon, name="local_epsilon")
    check_at_least(n, 1, name="n")
    check_delta(delta)
    limit = timefl_condition_limit(n=n, delta=delta)
    growth = math.expm1(local_epsilon) if local_epsilon < 700.0 else math.inf
    return TimeflClaim(
        central_epsilon=growth * math.sqrt(math.log(1.0 / delta) / n),
        condition_limit=limit,
        condition_holds=local_epsilon < limit,
    )


def timefl_local_epsilon(*, central_epsilon: float, n: int, delta: float) -> float:
    """Theorem 1 solved for the local epsilon: how the paper computed Table I."""
    return math.log1p(central_epsilon * math.sqrt(n / math.log(1.0 / delta)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One cell of Table I: printed, recomputed from the claim, and what is provable."""

    n: int
    claimed_central_epsilon: float
    printed_local_epsilon: float
    recomputed_local_epsilon: float
    condition_holds: bool
    proven_central_epsilon: float

    @property
    def reproduced(self) -> bool:
        """Whether the printed two decimals follow from Equation 4 with its constant set to 1."""
        return round(self.recomputed_local_epsilon, 2) == self.printed_local_epsilon


def timefl_table_1() -> list[TableCell]:
    """All 25 cells, each with the proven central epsilon at the printed local epsilon."""
    return [
        TableCell(
            n=n,
            claimed_central_epsilon=claimed,
            printed_local_epsilon=printed,
            recomputed_local_epsilon=timefl_local_epsilon(
                central_epsilon=claimed, n=n, delta=TABLE_DELTA
            ),
            condition_holds=printed < timefl_condition_limit(n=n, delta=TABLE_DELTA),
            proven_central_epsilon=shuffle_epsilon(
                local_epsilon=printed, n=n, delta=TABLE_DELTA
            ).central_epsilon,
        )
        for n, row in TABLE_LOCAL.items()
        for claimed, printed in zip(TABLE_CENTRAL, row, strict=True)
    ]
