"""The privacy blanket of finite channels, against enumeration and against its other evaluation."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffle_enumeration import divergence, histogram, krr_rows
from tacit.accounting import (
    compose_channel,
    compose_shuffled,
    equivalent_cap,
    shuffle_delta,
    shuffle_epsilon,
    shuffled_channel_delta,
    shuffled_channel_epsilon,
)
from tacit.accounting.channel import _coarser, _Law, _trimmed, local_epsilon_of
from tacit.arrays import Floats
from tacit.errors import TacitError

LOPSIDED = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.25, 0.3, 0.45]])
TWO_INPUTS = np.array([[0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
LEAKY = np.array([[0.5, 0.45, 0.05], [0.45, 0.55, 0.0]])  # the last output names the input
EPSILONS = (0.0, 0.1, 0.4, 0.8)


def blanket_pair(rows: Floats, n: int, x: int, other: int) -> tuple[Floats, Floats]:
    """Proposition B1's laws term by term; a report outside of the blanket is one more symbol."""
    blanket = rows.min(axis=0)
    rest = [np.append(blanket, 1.0 - blanket.sum())] * (n - 1)
    p, q = (histogram([np.append(rows[i], 0.0), *rest]) for i in (x, other))
    return p, q


@pytest.mark.parametrize("rows", [LOPSIDED, TWO_INPUTS, LEAKY], ids=["3x3", "2x3", "leaky"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
def test_the_bound_is_the_worst_ordered_pair_of_the_theorem(rows: Floats, n: int) -> None:
    for epsilon in EPSILONS:
        exact = max(
            divergence(*blanket_pair(rows, n, x, other), epsilon)
            for x, other in permutations(range(len(rows)), 2)
        )
        found = shuffled_channel_delta(rows, n=n, central_epsilon=epsilon)
        assert exact * (1.0 - 1e-12) <= found
        assert found == pytest.approx(exact, rel=0.01, abs=1e-9)


@pytest.mark.parametrize("rows", [LOPSIDED, TWO_INPUTS, LEAKY], ids=["3x3", "2x3", "leaky"])
def test_no_neighbourhood_exceeds_the_bound(rows: Floats) -> None:
    """All inputs of the five other clients, and all that one client can swap."""
    worst = dict.fromkeys(EPSILONS, 0.0)
    for others in combinations_with_replacement(range(len(rows)), 5):
        batches = [histogram([rows[x], *(rows[y] for y in others)]) for x in range(len(rows))]
        for p, q in permutations(batches, 2):
            for epsilon in EPSILONS:
                worst[epsilon] = max(worst[epsilon], divergence(p, q, epsilon))
    for epsilon, exact in worst.items():
        assert exact <= shuffled_channel_delta(rows, n=6, central_epsilon=epsilon)


def caps_rows(local_epsilon: float, cap: float) -> Floats:
    """Two opposite caps and the rest, for an input at either."""
    low = 1.0 / (1.0 + math.expm1(local_epsilon) * cap)
    inside, outside = low * cap * math.exp(local_epsilon), low * cap
    away = 1.0 - inside - outside
    return np.array([[inside, outside, away], [outside, inside, away]])


@pytest.mark.parametrize(
    ("local_epsilon", "cap", "n", "delta"),
    [
        (2.0, 1 / 8, 100, 1e-5),
        (4.0, 0.02, 1000, 1e-6),
        (0.8, 0.37, 10**4, 1e-8),
        (2.0, 1 / 3, 10**6, 1e-9),
        (1.0, 0.2, 10**9, 1e-12),
        (1.0, 0.2, 300, 1e-60),
    ],
)
def test_two_evaluations_of_one_bound_agree(
    local_epsilon: float, cap: float, n: int, delta: float
) -> None:
    other = shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=delta, cap=cap)
    found = shuffled_channel_epsilon(caps_rows(local_epsilon, cap), n=n, delta=delta)
    assert found.central_epsilon == pytest.approx(other.central_epsilon, rel=1e-3)
    assert found.local_epsilon == pytest.approx(local_epsilon)


@pytest.mark.parametrize("k", [2, 3, 8])
def test_randomized_response_is_one_of_the_channels(k: int) -> None:
    other = shuffle_epsilon(local_epsilon=1.5, n=500, delta=1e-6, n_symbols=k)
    found = shuffled_channel_epsilon(krr_rows(k, 1.5), n=500, delta=1e-6)
    assert found.central_epsilon == pytest.approx(other.central_epsilon, rel=1e-3)
    assert "finite channel" in found.theorem


@pytest.mark.seconds
@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(3, 12), min_size=4, max_size=4), min_size=2, max_size=4),
    n=st.integers(1, 300),
    share=st.floats(0.0, 0.9),
)
def test_no_channel_exceeds_the_caps_of_its_epsilon_and_blanket(
    rows: list[list[int]], n: int, share: float
) -> None:
    """Proposition B5, where the equivalent cap is at most 1/2."""
    channel = np.array(rows, dtype=np.float64)
    channel /= channel.sum(axis=1, keepdims=True)
    local = local_epsilon_of(channel)
    if local < 0.05:
        return
    blanket = float(channel.min(axis=0).sum()) * (1.0 - 1e-12)  # what does not depend on the input
    cap = equivalent_cap(local_epsilon=local, blanket=blanket)
    if cap > 0.5:
        return
    found = shuffled_channel_delta(channel, n=n, central_epsilon=share * local)
    bound = shuffle_delta(local_epsilon=local, n=n, central_epsilon=share * local, cap=cap)
    assert found <= bound * 1.02 + 1e-12


def test_a_channel_is_better_than_what_is_known_of_every_randomizer() -> None:
    general = shuffle_epsilon(local_epsilon=local_epsilon_of(LOPSIDED), n=200, delta=1e-6)
    found = shuffled_channel_epsilon(LOPSIDED, n=200, delta=1e-6)
    assert found.central_epsilon < 0.9 * general.central_epsilon


@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_rounds_of_a_channel_are_never_below_the_exact_composition(delta: float) -> None:
    n, rounds = 6, 2
    epsilon = compose_channel(TWO_INPUTS, [n] * rounds, delta=delta)
    p, q = blanket_pair(TWO_INPUTS, n, 0, 1)
    p, q = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    assert max(divergence(p, q, epsilon), divergence(q, p, epsilon)) <= delta
    assert max(divergence(p, q, 0.93 * epsilon), divergence(q, p, 0.93 * epsilon)) > delta
    assert epsilon <= 2.0 * local_epsilon_of(TWO_INPUTS) * (1.0 + 1e-9)
    assert compose_channel(TWO_INPUTS, [], delta=delta) == 0.0


@pytest.mark.seconds
def test_rounds_of_a_channel_agree_with_the_other_evaluation() -> None:
    other = compose_shuffled([(1.0, 50)] * 20 + [(1.0, 40)], delta=1e-5, n_symbols=3)
    found = compose_channel(krr_rows(3, 1.0), [50] * 20 + [40], delta=1e-5)
    assert found == pytest.approx(other, rel=2e-3)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.integers(-7, 7))
def test_a_coarser_grid_keeps_mass_and_mean(masses: list[float], start: int) -> None:
    law = _Law(np.array(masses), start, 0.5, 0.5 * (start + len(masses)))
    wide = _coarser(law)

    def moments(one: _Law) -> tuple[float, float]:
        places = (one.start + np.arange(one.masses.size)) * one.spacing
        return float(one.masses.sum()), float(one.masses @ places)

    assert wide.spacing == 1.0
    assert wide.peak >= wide.start + wide.masses.size - 1
    np.testing.assert_allclose(moments(wide), moments(law), rtol=1e-12, atol=1e-12)


def test_trimming_moves_the_lower_tail_up_and_counts_the_upper_one() -> None:
    law = _trimmed(_Law(np.array([0.01, 0.02, 0.5, 0.4, 0.04, 0.03]), 10, 1.0, 15.0, 0.1), 0.05)
    assert law.start == 12
    np.testing.assert_allclose(law.masses, [0.53, 0.4, 0.04], rtol=1e-9)
    assert law.lost == pytest.approx(0.13)
    assert law.peak == 15.0


@pytest.mark.parametrize(
    "rows", [[[1.0, 0.0]], [[0.5, 0.5], [0.5, 0.6]], [[1.5, -0.5], [0.5, 0.5]], [0.5, 0.5]]
)
def test_what_is_no_channel_is_refused(rows: list[list[float]]) -> None:
    with pytest.raises(TacitError, match=r"channel"):
        shuffled_channel_delta(rows, n=10, central_epsilon=0.1)


def test_a_channel_without_a_local_epsilon_has_a_delta_but_no_epsilon() -> None:
    assert math.isinf(local_epsilon_of(LEAKY))
    assert 0.05 <= shuffled_channel_delta(LEAKY, n=1000, central_epsilon=0.5) < 0.0501
    with pytest.raises(TacitError, match="local_epsilon of the channel"):
        shuffled_channel_epsilon(LEAKY, n=10, delta=1e-3)
    with pytest.raises(TacitError, match="local_epsilon of the channel"):
        compose_channel(LEAKY, [10], delta=1e-3)


def test_a_law_of_hardly_any_mass_keeps_a_point() -> None:
    rows = np.array([[3.0, 3, 3, 3], [3, 3, 3, 3], [3, 3, 3, 4]])
    rows /= rows.sum(axis=1, keepdims=True)
    assert 0.0 < shuffled_channel_delta(rows, n=2, central_epsilon=0.0) < 0.2


def test_rows_that_add_up_to_one_but_for_rounding_count_as_their_quotients() -> None:
    """The second row is written 9e-13 too large, which hides delta where epsilon is near log 3."""
    exact = np.array([[0.6, 0.2, 0.2], [0.2, 0.4, 0.4]])
    written = exact * [[1.0], [1.0 + 9e-13]]
    epsilon = math.log(3.0) * (1.0 - 5e-13)
    lost = 0.6 * -math.expm1(epsilon - math.log(3.0))  # the delta of one report
    assert 2e-13 < lost < 5e-13
    assert lost * (1.0 - 1e-3) <= shuffled_channel_delta(written, n=1, central_epsilon=epsilon)
    assert shuffled_channel_delta(written, n=1, central_epsilon=epsilon) < 1e-11
    assert local_epsilon_of(written) >= math.log(3.0)
    assert local_epsilon_of([[0.75, 0.25], [0.75, 0.25]]) == 0.0
    of_exact = shuffled_channel_delta(exact, n=1000, central_epsilon=0.1)
    of_written = shuffled_channel_delta(written, n=1000, central_epsilon=0.1)
    assert of_exact <= of_written < 1.001 * of_exact
