"""Laplace noise on vectors of bounded L1 norm; the sensitivity is derived, never asked for.

Clipped values are cut to a grid and noised in whole numbers. A float64 sum of a value and Laplace
noise would give the value away by its last bits (Mironov, CCS 2012): of the sums that one value can
produce, nine in ten cannot come from another.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError, check_epsilon, check_positive
from tacit.noise import NoiseSource, discrete_laplace

_SLACK = 1.0 - 2.0**-40  # more than the rounding of a sum of any length used here
LAPLACE_STEPS = 2**20  # steps per clip norm: far below any noise that protects
_WHOLE = 2**20  # a scale beyond is rounded up to a whole number of steps, by less than a millionth
_LARGEST_SCALE = 2**50  # beyond, the sampler would leave 64 bits


def clip_l1(vectors: Floats, *, clip_norm: float) -> Floats:
    """Scale every row of larger L1 norm down to `clip_norm`; leave the others as they are."""
    check_positive(clip_norm, name="clip_norm")
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or not np.all(np.isfinite(vectors)):
        raise TacitError(
            f"vectors must be finite with shape (n, d), got shape {vectors.shape}; "
            "remove NaN and infinity first."
        )
    # Dividing by the largest entry first keeps the sum of huge rows finite.
    largest = np.maximum(np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), clip_norm)
    scaled = vectors / largest
    sums = np.abs(scaled).sum(axis=1, keepdims=True)
    room = clip_norm * _SLACK
    inside: Floats = scaled * (room / np.maximum(sums, room / largest))
    return np.where(sums > room / largest, inside, vectors)


def laplace_vectors(
    vectors: Floats, *, clip_norm: float, epsilon: float, source: NoiseSource
) -> Floats:
    """Clip every row to L1 norm `clip_norm` and add Laplace noise of scale 2 clip_norm / epsilon.

    Guarantee: each released row is `epsilon`-LDP (pure) when its input row is replaced, exactly:
    in steps of clip_norm / 2**20, cut towards zero, two clipped rows are integers that differ by at
    most 2 * 2**20 in L1 norm, and the noise is an exact discrete Laplace of that over epsilon.
    Assumes: `source` is uniform, independent and secret.
    Composes: T releases about one unit cost T * epsilon.
    Not covered: the number of rows, and when they are sent.
    """
    scale = scale_in_steps(epsilon)
    steps = in_steps(vectors, clip_norm=clip_norm)
    noisy = steps + discrete_laplace(steps.shape, scale=scale, source=source)
    return np.asarray(noisy * (clip_norm / LAPLACE_STEPS))


def in_steps(vectors: Floats, *, clip_norm: float) -> Integers:
    """The clipped rows in whole steps of clip_norm / 2**20, cut towards zero."""
    scaled = clip_l1(vectors, clip_norm=clip_norm) * (LAPLACE_STEPS / clip_norm)
    steps: Integers = np.trunc(scaled).astype(np.int64)
    if np.abs(steps).sum(axis=1).max(initial=0) > LAPLACE_STEPS:
        raise TacitError(
            f"a row has L1 norm above {clip_norm:g} after clipping, which is a mistake in tacit; "
            "nothing was released, tell the developers."
        )
    return steps


def scale_in_steps(epsilon: float) -> Fraction:
    """The scale of the noise in steps: 2 * 2**20 / epsilon, rounded up where it is large."""
    scale = Fraction(2 * LAPLACE_STEPS) / Fraction(check_epsilon(epsilon))
    if scale > _LARGEST_SCALE:
        raise TacitError(
            f"epsilon = {epsilon:g} is too small for exact Laplace noise; use at least "
            f"{2 * LAPLACE_STEPS / _LARGEST_SCALE:.2g}."
        )
    return scale if scale <= _WHOLE else Fraction(math.ceil(scale))
