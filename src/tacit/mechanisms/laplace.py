"""Laplace noise on vectors of bounded L1 norm; the sensitivity is derived, never asked for."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError, check_epsilon
from tacit.noise import NoiseSource, laplace

Floats = NDArray[np.float64]

_SLACK = 1.0 - 2.0**-40  # more than the rounding of a sum of any length used here


def clip_l1(vectors: Floats, *, clip_norm: float) -> Floats:
    """Scale every row of larger L1 norm down to `clip_norm`; leave the others as they are."""
    if isinstance(clip_norm, bool) or not 0.0 < clip_norm < math.inf:
        raise TacitError(f"clip_norm must be finite and above 0, got {clip_norm!r}.")
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

    Guarantee: each released row is `epsilon`-LDP (pure) when its input row is replaced: two
    clipped rows differ by at most 2 clip_norm in L1 norm.
    Assumes: idealised real arithmetic; `source` is uniform, independent and secret.
    Composes: T releases about one unit cost T * epsilon.
    Not covered: floating-point side channels, the number of rows, and when they are sent.
    """
    scale = 2.0 * clip_norm / check_epsilon(epsilon)
    clipped = clip_l1(vectors, clip_norm=clip_norm)
    return clipped + laplace(clipped.shape, scale=scale, source=source)
