"""Laplace noise on L1-clipped vectors: clipping, scale, and the derived sensitivity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.errors import TacitError
from tacit.mechanisms import clip_l1, laplace_vectors
from tacit.noise import SYSTEM_NOISE, uniform

pytestmark = pytest.mark.core

FALSE_ALARM = 1e-7  # per check
ROWS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20)


@given(row=ROWS, clip_norm=st.floats(min_value=1e-6, max_value=1e6))
def test_clipped_rows_are_inside_and_keep_their_direction(
    row: list[float], clip_norm: float
) -> None:
    vectors = np.array([row])
    clipped = clip_l1(vectors, clip_norm=clip_norm)
    assert math.fsum(np.abs(clipped[0])) <= clip_norm
    assert np.all(clipped * np.sign(vectors) >= 0.0)
    if math.fsum(np.abs(vectors[0] / 2**10)) < clip_norm / 2**10 * 0.999:
        assert np.array_equal(clipped, vectors)


def noise_of(clip_norm: float, epsilon: float) -> NDArray[Any]:
    vectors = np.tile([[3.0, 0.0, -1.0]], (100_000, 1))
    inside = clip_l1(vectors, clip_norm=clip_norm)
    out = laplace_vectors(vectors, clip_norm=clip_norm, epsilon=epsilon, source=SYSTEM_NOISE)
    return (out - inside).ravel()


def scale_is(noise: NDArray[Any], scale: float) -> bool:
    """Whether mean |noise|, whose standard deviation is the scale, is the scale."""
    z = stats.norm.isf(FALSE_ALARM / 2)
    return bool(abs(np.abs(noise).mean() - scale) < z * scale / math.sqrt(noise.size))


def test_noise_has_scale_two_clips_over_epsilon_and_a_twin_does_not() -> None:
    noise = noise_of(0.5, 2.0)
    assert stats.kstest(noise, stats.laplace(scale=0.5).cdf).pvalue > FALSE_ALARM
    assert scale_is(noise, 0.5)
    assert not scale_is(noise, 0.49)


def only_from(released: NDArray[Any], x: float, other: float, scale: float) -> NDArray[Any]:
    """Where a float64 sum of `x` and Laplace noise can be what was released, and none of `other`.

    Looks for a uniform of the sampler that gives exactly this sum, near the one that would in real
    numbers.
    """

    def possible(centre: float) -> NDArray[Any]:
        distance = released - centre
        guess = 0.5 * -np.expm1(-np.abs(distance) / scale)
        near = np.floor(guess * 2.0**52)[:, None] + np.arange(-64, 65)
        uniforms = (near + 0.5) * 2.0**-52
        noise = -scale * np.log1p(-2.0 * uniforms) * np.sign(distance)[:, None]
        hit: NDArray[Any] = (centre - noise == released[:, None]).any(axis=1)
        hit |= (centre + noise == released[:, None]).any(axis=1)
        return hit

    return possible(x) & ~possible(other)


def test_the_bits_of_a_release_do_not_give_its_value_away_and_those_of_a_float_sum_do() -> None:
    scale, count = 2.0, 20_000
    uniforms = uniform((count,), source=SYSTEM_NOISE) - 0.5
    floats = 1.0 - scale * np.sign(uniforms) * np.log1p(-2.0 * np.abs(uniforms))
    told = only_from(floats, 1.0, -1.0, scale).mean()
    assert told > 0.3  # although epsilon = 1 allows e times as often as from -1, where it is never
    ones = np.ones((count, 1))
    released = laplace_vectors(ones, clip_norm=1.0, epsilon=1.0, source=SYSTEM_NOISE)[:, 0]
    assert np.array_equal(released * 2**20, np.round(released * 2**20))  # as from any other value


def test_an_epsilon_too_small_for_whole_numbers_is_refused() -> None:
    with pytest.raises(TacitError, match="too small"):
        laplace_vectors(np.zeros((1, 1)), clip_norm=1.0, epsilon=1e-10, source=SYSTEM_NOISE)


@pytest.mark.parametrize("clip_norm", [0.0, -1.0, math.nan, math.inf])
def test_bad_clip_norms_are_refused(clip_norm: float) -> None:
    with pytest.raises(TacitError, match="clip_norm"):
        clip_l1(np.zeros((1, 2)), clip_norm=clip_norm)


@pytest.mark.parametrize("vectors", [np.array([[np.nan]]), np.array([[np.inf]]), np.zeros(3)])
def test_bad_vectors_are_refused(vectors: NDArray[Any]) -> None:
    with pytest.raises(TacitError, match="vectors"):
        laplace_vectors(vectors, clip_norm=1.0, epsilon=1.0, source=SYSTEM_NOISE)
