"""Differential privacy of what P0 learns: noise inside the shares, and how much of it.

Every owner but P0 adds its own noise to a shared value before anything of it is opened. If one of
them is honest its noise alone gives the guarantee: given the noise of the others, what they add is
a shift that does not depend on the data. The proofs are in docs/guarantees/silo-protocols.md.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError
from tacit.noise import SYSTEM_NOISE, discrete_laplace
from tacit.silo.fedst.quality import GAIN_BITS, GAIN_ERROR
from tacit.silo.secure.session import Session, Shared

if TYPE_CHECKING:
    from jax import Array

# One owner's noise beyond this would not fit the arithmetic: the run ends. With the scales allowed
# that happens with a probability below exp(-128) for one value.
NOISE_LIMIT = 2**36
LARGEST_SCALE = 2**29


def gain_sensitivity(n_series: int) -> int:
    """How much one replaced series changes any candidate's rounded information gain, at most.

    The exact gain changes by at most (M log2 M - (M-1) log2 (M-1)) / M bits, and some pair of data
    sets attains that. Added: twice the error of the engine's gain, and one for rounding.
    """
    if n_series < 2:
        raise TacitError(f"a gain needs at least 2 series, got {n_series}.")
    rest = n_series - 1
    exact = (n_series * math.log2(n_series) - rest * math.log2(rest)) / n_series
    change: float = 2.0**GAIN_BITS * (exact + 2.0 * GAIN_ERROR)
    return math.floor(change) + 1


def selection_scale(*, n_series: int, n_chosen: int, epsilon: float) -> float:
    """The scale of the noise on every gain, for the order of the `n_chosen` best."""
    return 2.0 * n_chosen * gain_sensitivity(n_series) / epsilon


def leaf_scale(*, n_trees: int, epsilon: float) -> float:
    """The scale of the noise on every leaf count: one series is one unit in each tree."""
    return 2.0 * n_trees / epsilon


def add(a: Array, b: Array) -> Array:
    """The sum; no communication."""
    return a + b


def add_noise(session: Session, value: Shared, *, scale: float) -> Shared:
    """A shared array of integers plus discrete Laplace noise of every owner but P0.

    Opens nothing. Not covered: noise beyond `NOISE_LIMIT`, which ends the run.
    """
    if not 0.0 < scale <= LARGEST_SCALE:
        raise TacitError(
            f"noise of scale {scale:.3g} does not fit the shared arithmetic; raise epsilon, or "
            "keep fewer shapelets and trees."
        )
    for owner in range(1, session.n_parties):
        noise = None
        if session.rank == owner:
            noise = discrete_laplace(value.shape, scale=scale, source=SYSTEM_NOISE)
            noise = np.asarray(noise, dtype=np.int64)
        drawn = session.share("noise", noise, owner=owner, shape=value.shape, limit=NOISE_LIMIT)
        value = session.run(add, value, drawn)
    return value
