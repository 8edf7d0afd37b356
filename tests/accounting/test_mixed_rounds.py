"""Rounds whose batches mix local epsilons, against their exact composition by enumeration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest

from shuffle_enumeration import divergence, histogram, krr_rows
from tacit.accounting import compose_mixed, compose_shuffled, mixed_epsilons, privunit_cap
from tacit.arrays import Floats
from tacit.errors import TacitError

pytestmark = pytest.mark.core
Counts = Mapping[float, int]


def batches(counts: Counts, *, own: float, k: int, turn: int) -> tuple[Floats, Floats]:
    """One exact batch of k-ary randomized response with the client at symbol 0, and at 1.

    The others hold the last symbol, or all symbols in turn from the `turn`-th on.
    """
    holders = [epsilon for epsilon, count in counts.items() for _ in range(count)]
    holders.remove(own)
    symbols = [(turn + i) % k if turn < k else k - 1 for i in range(len(holders))]
    rest = [krr_rows(k, e)[s] for e, s in zip(holders, symbols, strict=True)]
    first, second = (histogram([krr_rows(k, own)[x], *rest]) for x in (0, 1))
    return first, second


def exact_delta(rounds: Sequence[Counts], epsilon: float, *, own: float, k: int) -> float:
    """The largest over what the others hold, which may differ between the rounds."""
    worst = 0.0
    for turns in product((0, k), repeat=len(rounds)):
        p, q = np.ones(1), np.ones(1)
        for counts, turn in zip(rounds, turns, strict=True):
            one_p, one_q = batches(counts, own=own, k=k, turn=turn)
            p, q = np.outer(p, one_p).ravel(), np.outer(q, one_q).ravel()
        worst = max(worst, divergence(p, q, epsilon), divergence(q, p, epsilon))
    return worst


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize(
    "rounds",
    [
        [{0.5: 3, 1.0: 3, 2.5: 1}] * 2,
        [{0.5: 2, 1.0: 4}, {0.5: 4, 1.0: 1, 3.0: 1}],
        [{0.5: 1, 1.0: 3}] * 3,
    ],
    ids=["alike", "different", "three"],
)
def test_rounds_are_never_below_their_exact_composition(
    rounds: list[Counts], delta: float, k: int
) -> None:
    for own in (0.5, 1.0):
        stated = compose_mixed(rounds, local_epsilon=own, delta=delta, n_symbols=k)
        assert exact_delta(rounds, stated, own=own, k=k) <= delta
        for_any = compose_mixed(rounds, local_epsilon=own, delta=delta)
        assert stated <= for_any <= own * len(rounds) * (1.0 + 1e-12)


def test_the_comparison_notices_reports_that_are_counted_as_noisier_than_they_are() -> None:
    """Others at 4 counted as if they were at the client's .5, which hides it better."""
    rounds: list[Counts] = [{0.5: 1, 4.0: 5}] * 2
    wish = compose_shuffled([(0.5, 6)] * 2, delta=1e-2, n_symbols=2)
    assert exact_delta(rounds, wish, own=0.5, k=2) > 1e-2
    stated = compose_mixed(rounds, local_epsilon=0.5, delta=1e-2, n_symbols=2)
    assert exact_delta(rounds, stated, own=0.5, k=2) <= 1e-2


@pytest.mark.parametrize("kind", [{}, {"n_symbols": 4}, {"cap": privunit_cap}])
def test_batches_of_one_epsilon_compose_as_before(kind: dict[str, object]) -> None:
    rounds = [{1.0: 300}, {1.0: 200}, {1.0: 300}]
    found = compose_mixed(rounds, local_epsilon=1.0, delta=1e-6, **kind)  # type: ignore[arg-type]
    told = compose_shuffled([(1.0, 300), (1.0, 200), (1.0, 300)], delta=1e-6, **kind)  # type: ignore[arg-type]
    assert found == pytest.approx(told, rel=1e-9) if not kind.get("cap") else found <= told


def test_one_round_is_the_single_bound_and_many_cost_less_than_their_sum() -> None:
    counts = {0.5: 400, 1.0: 300, 4.0: 10}
    alone = mixed_epsilons(counts, delta=1e-6, n_symbols=4)
    for own, bound in alone.items():
        one = compose_mixed([counts], local_epsilon=own, delta=1e-6, n_symbols=4)
        assert one == pytest.approx(bound.central_epsilon, rel=1e-8)
    many = compose_mixed([counts] * 20, local_epsilon=1.0, delta=1e-6, n_symbols=4)
    assert alone[1.0].central_epsilon < many < 10.0 * alone[1.0].central_epsilon
    fewer = compose_shuffled([(1.0, 300)] * 20, delta=1e-6, n_symbols=4)
    assert many < fewer, "the weaker reports hide a client too"
    tiny = compose_mixed([counts] * 20, local_epsilon=1.0, delta=1e-13, n_symbols=4)
    assert many < tiny <= 20.0


def test_a_client_is_in_every_round_that_is_counted() -> None:
    assert compose_mixed([], local_epsilon=1.0, delta=1e-6) == 0.0
    with pytest.raises(TacitError, match=r"has no report in a batch of 0\.5"):
        compose_mixed([{1.0: 5}, {0.5: 5}], local_epsilon=1.0, delta=1e-6)
    with pytest.raises(TacitError, match="1/n"):
        compose_mixed([{1.0: 5000, 2.0: 6000}], local_epsilon=1.0, delta=1e-4)
