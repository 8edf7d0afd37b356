"""The reported delta is never below exact enumeration of shuffled k-ary randomized response."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from shuffle_enumeration import divergence, exact_deltas, pair
from tacit.accounting import compose_shuffled, shuffle_delta

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
