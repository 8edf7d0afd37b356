"""What shuffled `privunit` rounds cost every client in all, and the sentence that says so.

As `privunit.spent`, but honest about small fleets in its words too: where shuffling gains nothing,
the guarantee is the nodes' own, local one, and says that it does not need the shuffler at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from tacit.fleet.reports.privunit import ASSUMPTIONS, NOT_COVERED, shuffled_epsilon
from tacit.guarantee import DpGuarantee

_WORTH_A_DELTA = 0.99  # a gain of less than one percent is no reason to give up pure privacy


def composed_epsilon(
    counts: Sequence[int], *, local_epsilon: float, delta: float
) -> tuple[float, float]:
    """(epsilon, delta) of shuffled rounds with these numbers of reports: the better bound.

    The sum of the local epsilons always holds, with delta 0; amplification by shuffling counts
    where it is worth a delta.
    """
    local = float(local_epsilon * len(counts))
    shuffled = shuffled_epsilon(counts, local_epsilon=local_epsilon, delta=delta)
    return (shuffled, delta) if shuffled < _WORTH_A_DELTA * local else (local, 0.0)


def fleet_guarantee(
    counts: Sequence[int], *, local_epsilon: float, delta: float
) -> DpGuarantee | None:
    """The guarantee after batches of these many reports; None before the first."""
    if not counts:
        return None
    epsilon, spent_delta = composed_epsilon(counts, local_epsilon=local_epsilon, delta=delta)
    fewest = min(counts)
    if spent_delta:
        said = f"amplified by shuffling batches of at least {fewest} reports"
        assumptions: tuple[str, ...] = (said, *ASSUMPTIONS)
    else:
        said = (
            f"no amplification is claimed for batches of {fewest} reports: epsilon is the sum of "
            "the local epsilons, and holds even if shuffler and analyser collude"
        )
        assumptions = (said, ASSUMPTIONS[-1])
    return DpGuarantee(
        epsilon=epsilon,
        delta=spent_delta,
        model="shuffle" if spent_delta else "local",
        unit="client",
        assumptions=assumptions,
        not_covered=NOT_COVERED,
    )
