"""Laplace noise on L1-clipped vectors: clipping, scale, and the derived sensitivity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import TacitError
from tacit.mechanisms import clip_l1, laplace_vectors
from tacit.noise import SYSTEM_NOISE

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


def noise_of(clip_norm: float, epsilon: float) -> np.ndarray:
    vectors = np.tile([[3.0, 0.0, -1.0]], (100_000, 1))
    inside = clip_l1(vectors, clip_norm=clip_norm)
    out = laplace_vectors(vectors, clip_norm=clip_norm, epsilon=epsilon, source=SYSTEM_NOISE)
    return (out - inside).ravel()


def scale_is(noise: np.ndarray, scale: float) -> bool:
    """Whether mean |noise|, whose standard deviation is the scale, is the scale."""
    z = stats.norm.isf(FALSE_ALARM / 2)
    return bool(abs(np.abs(noise).mean() - scale) < z * scale / math.sqrt(noise.size))


def test_noise_has_scale_two_clips_over_epsilon_and_a_twin_does_not() -> None:
    noise = noise_of(0.5, 2.0)
    assert stats.kstest(noise, stats.laplace(scale=0.5).cdf).pvalue > FALSE_ALARM
    assert scale_is(noise, 0.5)
    assert not scale_is(noise, 0.49)


@pytest.mark.parametrize("clip_norm", [0.0, -1.0, math.nan, math.inf])
def test_bad_clip_norms_are_refused(clip_norm: float) -> None:
    with pytest.raises(TacitError, match="clip_norm"):
        clip_l1(np.zeros((1, 2)), clip_norm=clip_norm)


@pytest.mark.parametrize("vectors", [np.array([[np.nan]]), np.array([[np.inf]]), np.zeros(3)])
def test_bad_vectors_are_refused(vectors: np.ndarray) -> None:
    with pytest.raises(TacitError, match="vectors"):
        laplace_vectors(vectors, clip_norm=1.0, epsilon=1.0, source=SYSTEM_NOISE)
