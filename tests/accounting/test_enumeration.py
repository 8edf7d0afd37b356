"""The reported delta is never below exact enumeration of shuffled k-ary randomized response."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from shuffle_enumeration import divergence, exact_deltas, histogram, pair
from tacit.accounting import compose_shuffled, shuffle_delta
from tacit.errors import TacitError
from tacit.mechanisms import calibrate_privunit

EPSILONS = (0.05, 0.3, 0.6, 0.95)  # shares of the local epsilon


def assert_covered(*, k: int, local_epsilon: float, n: int, few: bool) -> None:
    epsilons = [share * local_epsilon for share in EPSILONS]
    exact = exact_deltas(k=k, local_epsilon=local_epsilon, n=n, epsilons=epsilons, few=few)
    for epsilon, delta in zip(epsilons, exact, strict=True):
        bounds = [
            shuffle_delta(
                local_epsilon=local_epsilon, n=n, central_epsilon=epsilon, n_symbols=symbols
            )
            for symbols in (None, k)
        ]
        assert delta <= bounds[1] <= bounds[0]


@pytest.mark.parametrize("n", [8, 20, 100])
@pytest.mark.parametrize("local_epsilon", [0.2, 1.0, 2.0, 4.0])
def test_binary_reports_of_every_neighbourhood(n: int, local_epsilon: float) -> None:
    assert_covered(k=2, local_epsilon=local_epsilon, n=n, few=False)


@pytest.mark.parametrize(
    ("k", "n", "few"),
    [(3, 8, False), (4, 8, False), (3, 20, False), (4, 20, True), (3, 100, True)],
)
@pytest.mark.parametrize("local_epsilon", [0.5, 2.0])
def test_reports_over_more_symbols(k: int, n: int, few: bool, local_epsilon: float) -> None:
    assert_covered(k=k, local_epsilon=local_epsilon, n=n, few=few)


def test_the_oracle_refutes_a_bound_known_to_be_wrong() -> None:
    """Published variation-ratio bounds give 0.0729 here; enumeration shows more."""
    (exact,) = exact_deltas(k=4, local_epsilon=2.0, n=8, epsilons=[1.2], few=False)
    assert exact == pytest.approx(0.0854, abs=1e-4)
    assert exact > 0.0729
    assert exact <= shuffle_delta(local_epsilon=2.0, n=8, central_epsilon=1.2)


def test_the_bound_for_randomized_response_is_tighter_and_still_holds() -> None:
    (exact,) = exact_deltas(k=2, local_epsilon=2.0, n=100, epsilons=[0.5], few=False)
    own = shuffle_delta(local_epsilon=2.0, n=100, central_epsilon=0.5, n_symbols=2)
    general = shuffle_delta(local_epsilon=2.0, n=100, central_epsilon=0.5)
    assert exact <= own < 0.5 * general


def clones_pair(local_epsilon: float, n: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """The two distributions of the theorem, term by term, with nothing rearranged."""
    p_one = math.exp(local_epsilon) / (math.exp(local_epsilon) + 1.0)
    p = np.zeros((n + 1, n + 1))
    q = np.zeros((n + 1, n + 1))
    for c in range(n):
        for a in range(c + 1):
            mass = binom.pmf(c, n - 1, math.exp(-local_epsilon)) * binom.pmf(a, c, 0.5)
            p[a + 1, c - a] += mass * p_one
            p[a, c - a + 1] += mass * (1.0 - p_one)
            q[a, c - a + 1] += mass * p_one
            q[a + 1, c - a] += mass * (1.0 - p_one)
    return p.ravel(), q.ravel()


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@pytest.mark.parametrize("local_epsilon", [0.1, 1.0, 3.0])
def test_the_evaluation_is_the_theorem_in_both_directions(n: int, local_epsilon: float) -> None:
    p, q = clones_pair(local_epsilon, n)
    for share in (0.01, *EPSILONS):
        epsilon = share * local_epsilon
        bound = shuffle_delta(local_epsilon=local_epsilon, n=n, central_epsilon=epsilon)
        forward, backward = divergence(p, q, epsilon), divergence(q, p, epsilon)
        assert max(forward, backward) * (1.0 - 1e-12) <= bound
        assert bound == pytest.approx(max(forward, backward), rel=1e-6, abs=1e-15)


def composed_delta(p: np.ndarray, q: np.ndarray, rounds: int, epsilon: float) -> float:  # type: ignore[type-arg]
    many_p, many_q = p, q
    for _ in range(rounds - 1):
        many_p, many_q = np.outer(many_p, p).ravel(), np.outer(many_q, q).ravel()
    return max(divergence(many_p, many_q, epsilon), divergence(many_q, many_p, epsilon))


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_composed_rounds_are_never_below_the_exact_composition(rounds: int, delta: float) -> None:
    n, local_epsilon = 12, 1.0
    epsilon = compose_shuffled([(local_epsilon, n)] * rounds, delta=delta)
    symbols = (0,) * 5 + (1,) * 6
    p, q = pair(k=2, local_epsilon=local_epsilon, others=symbols, first=0, second=1)
    assert composed_delta(p, q, rounds, epsilon) <= delta
    pair_p, pair_q = clones_pair(local_epsilon, n)
    keep = pair_p + pair_q > 1e-12
    exact = composed_delta(pair_p[keep], pair_q[keep], rounds, epsilon)
    # Not below the clones pair's own exact composition, and not far above it either.
    assert exact <= delta
    assert composed_delta(pair_p[keep], pair_q[keep], rounds, 0.95 * epsilon) > delta


def privunit_pair(
    local_epsilon: float, n: int, *, others: tuple[int, int, int], common: float
) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """A shuffled batch of PrivUnitG reports, one client at x or at x'.

    Of a report only the caps of x and x' that it lies in matter: the first only, the second only,
    both, neither. `common` is the share of a cap that both have: 0 for opposite inputs, q for
    orthogonal ones, 1 for equal ones. `others` sit at x, at x' and where they touch neither cap.
    """
    one = calibrate_privunit(epsilon=local_epsilon, dimension=2)
    p, q = one.p, one.q
    high, low = p / q, (1.0 - p) / (1.0 - q)
    areas = q * np.array([1.0 - common, 1.0 - common, common, 0.0])
    areas[3] = 1.0 - areas.sum()
    at_x, at_other = areas * [high, low, high, low], areas * [low, high, high, low]
    away = areas * low
    away[3] = 1.0 - away[:3].sum()
    rest = [
        report
        for report, count in zip((at_x, at_other, away), others, strict=True)
        for _ in range(count)
    ]
    return histogram([at_x, *rest]), histogram([at_other, *rest])


def split(n: int) -> list[tuple[int, int, int]]:
    return [(n - 1, 0, 0), (0, n - 1, 0), (0, 0, n - 1), (n // 2, 0, n - 1 - n // 2)]


@pytest.mark.parametrize("local_epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("common", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("n", [4, 10])
def test_shuffled_privunit_is_covered(local_epsilon: float, common: float, n: int) -> None:
    cap = calibrate_privunit(epsilon=local_epsilon, dimension=2).q
    for others in split(n):
        p, q = privunit_pair(local_epsilon, n, others=others, common=common)
        for share in EPSILONS:
            epsilon = share * local_epsilon
            exact = max(divergence(p, q, epsilon), divergence(q, p, epsilon))
            bound, general = (
                shuffle_delta(local_epsilon=local_epsilon, n=n, central_epsilon=epsilon, cap=kind)
                for kind in (cap, None)
            )
            assert exact <= bound <= general


def test_the_oracle_refutes_twice_as_many_clones_of_privunit() -> None:
    """The check above is about something: with the rate of the proof doubled it would fail."""
    local_epsilon, n = 1.0, 10
    cap = calibrate_privunit(epsilon=local_epsilon, dimension=2).q
    p, q = privunit_pair(local_epsilon, n, others=(0, 0, n - 1), common=0.0)
    wishes = [
        shuffle_delta(local_epsilon=local_epsilon, n=2 * n - 1, central_epsilon=epsilon, cap=cap)
        for epsilon in (0.3, 0.6)
    ]
    exact = [divergence(p, q, epsilon) for epsilon in (0.3, 0.6)]
    assert any(found > wish for found, wish in zip(exact, wishes, strict=True))


@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_rounds_of_shuffled_privunit_are_covered(delta: float) -> None:
    n, local_epsilon, rounds = 6, 1.0, 2
    cap = calibrate_privunit(epsilon=local_epsilon, dimension=2).q
    batches = [(local_epsilon, n)] * rounds
    epsilon = compose_shuffled(batches, delta=delta, cap=cap)
    for common in (0.0, 0.3):
        p, q = privunit_pair(local_epsilon, n, others=(0, 0, n - 1), common=common)
        keep = p + q > 0.0
        assert composed_delta(p[keep], q[keep], rounds, epsilon) <= delta
    assert epsilon < compose_shuffled(batches, delta=delta)


def test_one_batch_has_one_kind_of_randomizer() -> None:
    with pytest.raises(TacitError, match="two different"):
        shuffle_delta(local_epsilon=1.0, n=9, central_epsilon=0.5, n_symbols=2, cap=0.3)
    with pytest.raises(TacitError, match="cap"):
        compose_shuffled([(1.0, 9)], delta=1e-3, cap=1.0)
