"""Every sampler is tested against its distribution with the real source.

A check cries wolf with probability FALSE_ALARM; each has a twin that notices a 2 % error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from seeded import SeededNoise
from tacit import noise
from tacit.errors import TacitError
from tacit.noise import SYSTEM_NOISE

FALSE_ALARM = 1e-6  # per check
N = 400_000

Draw = Callable[[tuple[int, ...]], NDArray[Any]]
SAMPLERS: dict[str, Draw] = {
    "uniform": lambda shape: noise.uniform(shape, source=SYSTEM_NOISE),
    "float_laplace": lambda shape: noise.float_laplace(shape, scale=2.0, source=SYSTEM_NOISE),
    "float_gaussian": lambda shape: noise.float_gaussian(shape, sigma=2.0, source=SYSTEM_NOISE),
    "discrete_laplace": lambda shape: noise.discrete_laplace(
        shape, scale=5000, source=SYSTEM_NOISE
    ),
    "discrete_gaussian": lambda shape: noise.discrete_gaussian(
        shape, sigma=5000, source=SYSTEM_NOISE
    ),
    "uniform_below": lambda shape: noise.uniform_below(2**40, shape, source=SYSTEM_NOISE),
}


def follows(sample: NDArray[Any], cdf: Callable[[NDArray[Any]], NDArray[Any]]) -> bool:
    """Kolmogorov-Smirnov: scale, shape, location and symmetry at once."""
    return bool(stats.kstest(sample, cdf).pvalue > FALSE_ALARM)


def mean_square_is(sample: NDArray[Any], expected: float) -> bool:
    """A z-test on the second moment: the sharpest simple check of a scale."""
    squares = sample.astype(np.float64) ** 2
    z = (squares.mean() - expected) / (squares.std() / math.sqrt(squares.size))
    return bool(2.0 * stats.norm.sf(abs(z)) > FALSE_ALARM)


def counts_match(
    sample: NDArray[Any], pmf: Callable[[NDArray[Any]], NDArray[Any]], width: int
) -> bool:
    """Chi-square over the integers -width..width and the two tails."""
    values = np.arange(-width, width + 1)
    probability = pmf(values)
    tail = (1.0 - probability.sum()) / 2.0
    expected = np.concatenate([[tail], probability, [tail]]) * sample.size
    edges = np.concatenate([[-np.inf], values - 0.5, [width + 0.5, np.inf]])
    observed = np.histogram(sample, bins=edges)[0]
    return bool(stats.chisquare(observed, expected).pvalue > FALSE_ALARM)


def laplace_pmf(scale: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    ratio = math.exp(-1.0 / scale)
    return lambda x: (1 - ratio) / (1 + ratio) * ratio ** np.abs(x)


def gaussian_pmf(sigma: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    grid = np.arange(-int(40 * sigma) - 40, int(40 * sigma) + 41)
    total = np.exp(-(grid**2) / (2 * sigma**2)).sum()
    return lambda x: np.exp(-(x**2) / (2 * sigma**2)) / total


@pytest.mark.parametrize("scale", [0.3, 1.0, 50.0])
def test_laplace_has_its_distribution(scale: float) -> None:
    sample = noise.float_laplace((N,), scale=scale, source=SYSTEM_NOISE)
    assert follows(sample, stats.laplace(scale=scale).cdf)
    assert mean_square_is(sample, 2 * scale**2)


def test_the_laplace_check_notices_two_percent_too_little_noise() -> None:
    sample = noise.float_laplace((N,), scale=0.98, source=SYSTEM_NOISE)
    assert not mean_square_is(sample, 2.0)


def test_laplace_takes_one_scale_per_position() -> None:
    scales = np.array([[0.1], [10.0]])
    sample = noise.float_laplace((2, N), scale=scales, source=SYSTEM_NOISE)
    assert mean_square_is(sample[0], 2 * 0.1**2)
    assert mean_square_is(sample[1], 2 * 10.0**2)


def test_gaussian_has_its_distribution_and_the_check_notices_two_percent() -> None:
    sample = noise.float_gaussian((N,), sigma=3.0, source=SYSTEM_NOISE)
    assert follows(sample, stats.norm(scale=3.0).cdf)
    assert mean_square_is(sample, 9.0)
    assert not mean_square_is(sample * 0.98, 9.0)


def test_gaussian_halves_of_a_box_muller_pair_are_uncorrelated() -> None:
    sample = noise.float_gaussian((N,), sigma=1.0, source=SYSTEM_NOISE)
    assert stats.pearsonr(sample[: N // 2], sample[N // 2 :]).pvalue > FALSE_ALARM
    assert stats.pearsonr(sample[: N // 2] ** 2, sample[N // 2 :] ** 2).pvalue > FALSE_ALARM


def test_uniform_is_uniform_and_never_touches_its_ends() -> None:
    sample = noise.uniform((N,), source=SYSTEM_NOISE)
    assert follows(sample, stats.uniform.cdf)
    for word in (0, 2**64 - 1):
        edge = noise.uniform((1,), source=_Constant(word))
        assert 0.0 < edge[0] < 1.0


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 2.5, Fraction(17, 4)])
def test_discrete_laplace_is_exact(scale: Fraction | int | float) -> None:
    sample = noise.discrete_laplace((N,), scale=scale, source=SYSTEM_NOISE)
    width = max(2, int(6 * scale))
    assert counts_match(sample, laplace_pmf(float(scale)), width)


def test_the_discrete_laplace_check_notices_two_percent() -> None:
    sample = noise.discrete_laplace((2 * N,), scale=Fraction(98, 100) * 3, source=SYSTEM_NOISE)
    assert not counts_match(sample, laplace_pmf(3.0), 18)


@pytest.mark.parametrize("sigma", [Fraction(1, 2), 1, 3.25, 20])
def test_discrete_gaussian_is_exact(sigma: Fraction | int | float) -> None:
    sample = noise.discrete_gaussian((N,), sigma=sigma, source=SYSTEM_NOISE)
    width = max(2, int(3 * sigma))
    assert counts_match(sample, gaussian_pmf(float(sigma)), width)


def test_the_discrete_gaussian_check_notices_two_percent() -> None:
    sample = noise.discrete_gaussian((N,), sigma=Fraction(49, 16), source=SYSTEM_NOISE)
    assert not counts_match(sample, gaussian_pmf(3.125), 10)


def test_large_discrete_scales_stay_exact_in_sixty_four_bits() -> None:
    sample = noise.discrete_gaussian((N,), sigma=5000, source=SYSTEM_NOISE)
    assert mean_square_is(sample, 5000.0**2)
    sample = noise.discrete_laplace((N,), scale=10**9, source=SYSTEM_NOISE)
    assert mean_square_is(sample, 2e18)


def test_an_odd_scale_is_rounded_towards_more_noise() -> None:
    assert noise._fraction_above(math.pi, name="scale", denominator=64) >= Fraction(math.pi)
    assert noise._fraction_above(0.1, name="scale", denominator=2**20) > Fraction(1, 10)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 1, 4), (0,), (3, 0)])
def test_every_position_of_every_shape_is_drawn(name: str, shape: tuple[int, ...]) -> None:
    first, second = SAMPLERS[name](shape), SAMPLERS[name](shape)
    assert first.shape == shape
    # Two equal draws of 1 in about 5000 at one position happen; three pairs in a row do not.
    stuck = (
        (first == second)
        & (SAMPLERS[name](shape) == SAMPLERS[name](shape))
        & (SAMPLERS[name](shape) == SAMPLERS[name](shape))
    )
    assert not np.any(stuck)


@pytest.mark.parametrize("name", SAMPLERS)
def test_positions_are_independent_within_a_draw(name: str) -> None:
    sample = SAMPLERS[name]((N,)).astype(np.float64)
    for lag in (1, 2, N // 2):
        assert stats.pearsonr(sample[:-lag], sample[lag:]).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["uniform", "float_laplace", "float_gaussian"])
def test_continuous_noise_uses_all_bits_of_float64(name: str) -> None:
    """Float32 noise repeats itself: a thousand draws in N = 400,000 would collide."""
    sample = SAMPLERS[name]((N,))
    assert sample.dtype == np.float64
    assert np.unique(sample).size > N - 3
    assert np.count_nonzero(sample.astype(np.float32) == sample) < 10


def test_uniform_below_is_exact_where_rejection_matters() -> None:
    bound = 3 * 2**60  # a quarter of all 62-bit words must be rejected
    sample = noise.uniform_below(bound, (N,), source=SYSTEM_NOISE)
    assert sample.min() >= 0
    assert sample.max() < bound
    assert follows(sample / bound, stats.uniform.cdf)
    small = noise.uniform_below(3, (N,), source=SYSTEM_NOISE)
    assert stats.chisquare(np.bincount(small, minlength=3)).pvalue > FALSE_ALARM


def test_every_order_of_four_is_equally_likely() -> None:
    orders = [tuple(noise.permutation(4, source=SYSTEM_NOISE)) for _ in range(24_000)]
    counts = np.unique(np.array(orders), axis=0, return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_permutation_of_nothing_and_one() -> None:
    assert noise.permutation(0, source=SYSTEM_NOISE).tolist() == []
    assert noise.permutation(1, source=SYSTEM_NOISE).tolist() == [0]


def test_large_draws_are_made_of_independent_chunks() -> None:
    count = noise.SystemNoise._CHUNK + 5
    words = SYSTEM_NOISE.words(count)
    assert words.shape == (count,)
    assert np.unique(words[-1000:]).size == 1000


def test_a_test_source_repeats_and_the_system_source_does_not() -> None:
    first, second = (noise.float_laplace((5,), scale=1.0, source=SeededNoise(1)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    system = [noise.float_laplace((5,), scale=1.0, source=SYSTEM_NOISE) for _ in range(2)]
    assert not np.any(system[0] == system[1])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_impossible_scales_are_refused(bad: float) -> None:
    for draw in (
        lambda: noise.float_laplace((2,), scale=bad, source=SYSTEM_NOISE),
        lambda: noise.float_gaussian((2,), sigma=bad, source=SYSTEM_NOISE),
        lambda: noise.discrete_laplace((2,), scale=bad, source=SYSTEM_NOISE),
        lambda: noise.discrete_gaussian((2,), sigma=bad, source=SYSTEM_NOISE),
        lambda: noise.float_laplace((2,), scale=np.array([1.0, bad]), source=SYSTEM_NOISE),
    ):
        with pytest.raises(TacitError, match="above 0"):
            draw()


def test_a_sigma_beyond_sixty_four_bits_is_refused() -> None:
    with pytest.raises(TacitError, match="coarser"):
        noise.discrete_gaussian((2,), sigma=1e6, source=SYSTEM_NOISE)


class _Constant:
    def __init__(self, word: int) -> None:
        self._word = word

    def words(self, count: int) -> NDArray[Any]:
        return np.full(count, self._word, dtype=np.uint64)


class GivenWords:
    """Hands out these 63-bit values, the lowest bit of a word being thrown away."""

    def __init__(self, *values: int) -> None:
        self.left = [2 * value for value in values]

    def words(self, count: int) -> NDArray[Any]:
        given, self.left = self.left[:count], self.left[count:]
        return np.array(given, dtype=np.uint64)


def test_words_beyond_the_last_whole_multiple_are_drawn_again() -> None:
    top = 2**63 - 1  # 2**63 leaves 2 when divided by 3, so the last two words would be one too many
    source = GivenWords(top, top - 2, top - 1, 4, 5)
    drawn = noise.uniform_below(3, (3,), source=source)
    assert drawn.tolist() == [4 % 3, (top - 2) % 3, 5 % 3]
    assert noise.uniform_below(2**62, (1,), source=GivenWords(top)).tolist() == [2**62 - 1]
    assert noise.uniform_below(1, (2,), source=GivenWords()).tolist() == [0, 0]


def test_rounding_at_random_is_unbiased_and_moves_to_a_neighbour() -> None:
    """7 standard errors of a mean of 400,000 coins: false alarm 3e-12; the twin is off by 1 %."""
    values = np.repeat([-2.7, 0.25, 3.0], 400_000)
    rounded = noise.rounded_at_random(values, source=SYSTEM_NOISE).reshape(3, -1)
    assert set(np.unique(rounded[0])) == {-3.0, -2.0}
    assert set(np.unique(rounded[2])) == {3.0}
    for row, value in zip(rounded[:2], (-2.7, 0.25), strict=True):
        allowed = 7.0 * row.std() / np.sqrt(row.size)
        assert abs(row.mean() - value) < allowed
        assert abs(row.mean() + 0.01 - value) > allowed
