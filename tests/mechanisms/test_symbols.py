"""k-ary randomized response and general channels: exact probabilities, exact epsilon."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import TacitError
from tacit.mechanisms import (
    channel_epsilon,
    krr_matrix,
    randomize_symbols,
    randomize_through_channel,
    tighten_channel,
)
from tacit.mechanisms.symbols import _ONE, _channel_weights, _krr_weights
from tacit.noise import SYSTEM_NOISE

pytestmark = pytest.mark.core

FALSE_ALARM = 1e-7  # per check
N = 2_000_000


def counts_fit(released: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Chi-square of released symbols against expected probabilities."""
    observed = np.bincount(released, minlength=len(expected))
    return bool(stats.chisquare(observed, expected * released.size).pvalue > FALSE_ALARM)


def release_krr(epsilon: float) -> NDArray[Any]:
    symbols = np.full(N, 2, dtype=np.intp)
    return randomize_symbols(symbols, n_symbols=4, epsilon=epsilon, source=SYSTEM_NOISE)


def test_krr_has_the_stated_distribution() -> None:
    keep = math.e / (math.e + 3)
    expected = np.full(4, (1 - keep) / 3)
    expected[2] = keep
    assert counts_fit(release_krr(1.0), expected)
    assert np.allclose(krr_matrix(4, 1.0)[2], expected, rtol=1e-12)


def test_the_check_notices_two_percent_less_privacy() -> None:
    assert not counts_fit(release_krr(1.02), krr_matrix(4, 1.0)[2])


@given(
    epsilon=st.floats(min_value=1e-6, max_value=700.0),
    n_symbols=st.integers(min_value=2, max_value=1000),
)
def test_krr_never_exceeds_epsilon_in_exact_arithmetic(epsilon: float, n_symbols: int) -> None:
    keep, other = _krr_weights(n_symbols, epsilon)
    assert keep + (n_symbols - 1) * other == _ONE
    assert keep >= other > 0
    # e**epsilon from below by a partial sum of its series with exact fractions is slow for large
    # epsilon; log1p of the exact ratio is good to a few units in the last place.
    assert math.log1p(Fraction(keep, other) - 1) <= epsilon * (1 + 1e-15)
    if epsilon < 30:  # and little is given away: one unit of the grid, which is coarse up there
        given_away = epsilon * 1e-9 + 1e-9 + 2.0 / other
        assert math.log1p(Fraction(keep, other) - 1) >= epsilon - given_away


def test_an_epsilon_below_the_grid_is_refused() -> None:
    with pytest.raises(TacitError, match="too small"):
        krr_matrix(1000, 1e-15)
    assert krr_matrix(1000, 1e-9).min() > 0.0


def test_a_channel_has_the_stated_distribution_and_a_twin_does_not() -> None:
    channel = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]])
    symbols = np.repeat(np.array([0, 1]), N)
    released = randomize_through_channel(symbols, channel=channel, source=SYSTEM_NOISE)
    assert counts_fit(released[:N], channel[0])
    assert counts_fit(released[N:], channel[1])
    assert not counts_fit(released[:N], np.array([0.705, 0.195, 0.1]))


def test_channel_epsilon_is_the_largest_log_ratio_and_never_below() -> None:
    channel = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]])
    assert channel_epsilon(channel) == pytest.approx(math.log(3.0), abs=1e-15)
    for epsilon in (1e-8, 0.1, 1.0, 8.0):
        value = channel_epsilon(krr_matrix(5, epsilon))
        assert value == pytest.approx(epsilon, rel=1e-6)
    assert channel_epsilon(np.eye(2)) == math.inf
    assert channel_epsilon(np.array([[1.0, 0.0], [1.0, 0.0]])) < 1e-300  # an unused output


@pytest.mark.parametrize("word", [0, 3, 4, 2**63, 2**64 - 1])
def test_an_output_without_weight_is_never_released(word: int) -> None:
    class Fixed:
        def words(self, count: int) -> NDArray[Any]:
            return np.full(count, word, dtype=np.uint64)

    channel = np.array([[0.0, 0.5, 0.0, 0.5, 0.0]])
    released = randomize_through_channel(np.zeros(3, dtype=int), channel=channel, source=Fixed())
    assert set(released.tolist()) <= {1, 3}


def test_weights_are_a_whole_row_and_keep_rare_outputs() -> None:
    weights = _channel_weights(np.array([[1.0, 1e-30], [1.0 - 2**-53, 2**-53]]))
    assert np.all(weights.sum(axis=1) == _ONE)
    assert weights[0, 1] == 1


@given(st.integers(min_value=0, max_value=2**32 - 1), st.sampled_from([0.1, 1.0, 5.0]))
def test_tightened_channels_meet_epsilon_and_move_little(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    sloppy = krr_matrix(4, epsilon) * np.exp(rng.uniform(-1e-7, 1e-7, (4, 4)))
    sloppy /= sloppy.sum(axis=1, keepdims=True)
    tight = tighten_channel(sloppy, epsilon=epsilon)
    assert channel_epsilon(tight) <= epsilon
    assert np.abs(tight - sloppy).max() < 1e-5


def test_tightening_closes_outputs_that_a_solver_left_at_noise_level() -> None:
    sloppy = np.array([[0.7, 0.3 - 1e-13, 1e-13], [0.4, 0.6, 0.0]])
    tight = tighten_channel(sloppy, epsilon=1.0)
    assert np.all(tight[:, 2] == 0.0)
    assert np.allclose(tight[:, :2], sloppy[:, :2], atol=1e-9)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0,)])
def test_every_position_is_randomized(shape: tuple[int, ...]) -> None:
    same = np.ones(shape, dtype=bool)
    uniform_rows = np.full((2, 2), 0.5)
    for _ in range(64):  # a position stays put by luck with probability 2**-64
        symbols = np.zeros(shape, dtype=np.intp)
        out = randomize_symbols(symbols, n_symbols=2, epsilon=1e-9, source=SYSTEM_NOISE)
        other = randomize_through_channel(symbols, channel=uniform_rows, source=SYSTEM_NOISE)
        assert out.shape == other.shape == shape
        same &= (out == symbols) | (other == symbols)
    assert not same.any()


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, True])
def test_bad_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(TacitError, match="epsilon"):
        krr_matrix(3, epsilon)


@pytest.mark.parametrize(
    "channel",
    [
        np.ones((2, 2)),
        np.array([[1.5, -0.5]]),
        np.array([[np.nan, 1.0]]),
        np.ones(3),
        np.ones((0, 3)),
    ],
)
def test_bad_channels_are_refused(channel: NDArray[Any]) -> None:
    with pytest.raises(TacitError, match="channel"):
        channel_epsilon(channel)


@pytest.mark.parametrize("symbols", [np.array([3]), np.array([-1]), np.array([0.5])])
def test_bad_symbols_are_refused(symbols: NDArray[Any]) -> None:
    with pytest.raises(TacitError, match="symbols"):
        randomize_symbols(symbols, n_symbols=3, epsilon=1.0, source=SYSTEM_NOISE)
