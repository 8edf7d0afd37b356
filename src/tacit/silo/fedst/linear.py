"""Multinomial logistic regression trained over shares by accelerated gradient descent.

Its features are the roots of the squared distances, as exact integers. The engine's fixed-point
exponential and division are approximate (about three digits), so secure and plaintext weights agree
closely, not bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.silo.fedst.distances import DISTANCE_BITS
from tacit.silo.secure.session import Arrays

if TYPE_CHECKING:
    from jax import Array


STANDARD_BITS = 10
# A root keeps two bits of fraction: distances of 20 bits become integers of 12.
_ROOT_FRACTION_BITS = 2
ROOT_BITS = DISTANCE_BITS // 2 + _ROOT_FRACTION_BITS
_MULTIPLIER_BITS = 20
# Standardised features beyond 8 deviations of P0's own are clipped: they would drown the rest.
_CLIP = 8 * 2**STANDARD_BITS
_SMALLEST_DEVIATION = 2
LARGEST_MULTIPLIER = 2 ** (STANDARD_BITS + _MULTIPLIER_BITS) // _SMALLEST_DEVIATION
_MOMENTUM = 0.9
# Weights are trained in this unit: their steps would vanish in the engine's 18 fraction bits.
_WEIGHT_UNIT = 2.0**-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Standardisation:
    """P0's centre and integer multiplier (K, 1) of each feature, from its own rows."""

    centre: Integers
    multiplier: Integers

    def apply(self, features: Integers) -> NDArray[np.float64]:
        """Standardised roots (n, K) in plaintext, equal to `standardise` over shares."""
        ints = standardise_ints(plain_roots(features), self.centre, self.multiplier, np)
        return np.asarray(ints).T / 2.0**STANDARD_BITS


def plain_roots(features: Integers) -> Integers:
    """`roots` in plaintext; floor(sqrt(x)) is exact in float64 for integers of 24 bits."""
    found: Integers = np.floor(np.sqrt(features * 4.0**_ROOT_FRACTION_BITS)).astype(np.int64)
    return found


def roots(features: Array) -> Array:
    """floor(2**2 sqrt(x)) of integers below 2**20, bit by bit, exactly; opens nothing."""
    import jax.numpy as jnp

    square = features * 4**_ROOT_FRACTION_BITS
    root = jnp.zeros_like(features)
    for bit in reversed(range(ROOT_BITS)):
        longer = root + 2**bit
        root = root + (longer * longer <= square).astype(root.dtype) * 2**bit
    return root


def standard_from(own_features: Integers) -> Standardisation:
    """Centre and multiplier from P0's own features (K, M0)."""
    own = plain_roots(own_features)
    centre = np.rint(own.mean(axis=1, keepdims=True)).astype(np.int64)
    deviation = np.maximum(own.std(axis=1, keepdims=True), _SMALLEST_DEVIATION)
    multiplier = np.rint(2.0 ** (STANDARD_BITS + _MULTIPLIER_BITS) / deviation).astype(np.int64)
    return Standardisation(centre=centre, multiplier=multiplier)


def standardise_ints(features: Array, centre: Array, multiplier: Array, xp: object) -> Array:
    """Integers at 2**STANDARD_BITS, clipped; `xp` is numpy or jax.numpy."""
    scaled = (features - centre) * multiplier
    scaled = xp.right_shift(scaled, _MULTIPLIER_BITS)  # type: ignore[attr-defined]
    return xp.minimum(xp.maximum(scaled, -_CLIP), _CLIP)  # type: ignore[attr-defined]


def standardise(features: Array, centre: Array, multiplier: Array) -> Array:
    """Standardised roots (M, K) as fixed-point numbers; exact but for the last division."""
    import jax.numpy as jnp

    ints = standardise_ints(roots(features), centre, multiplier, jnp)
    return ints.T.astype(jnp.float64) * 2.0**-STANDARD_BITS


def train_logistic(
    table: Array, indicators: Array, *, n_steps: int, penalty: float
) -> tuple[Array, Array]:
    """Weights (K, C) and biases (1, C) after `n_steps` of Nesterov's method; opens nothing.

    The step 2/K is safe: the largest curvature of the loss on K standardised features is K/2.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    n_rows, n_features = table.shape
    target = indicators.astype(jnp.float64)
    step = 2.0 / (n_features + 1)
    start = jnp.zeros((n_features, target.shape[1])), jnp.zeros((1, target.shape[1]))

    def advance(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        weights, biases, speed, bias_speed = state
        ahead, bias_ahead = weights + _MOMENTUM * speed, biases + _MOMENTUM * bias_speed
        scores = (table @ ahead) * _WEIGHT_UNIT + bias_ahead
        error = jax.nn.softmax(scores, axis=1) - target
        slope = (table.T @ error) * (1.0 / n_rows)
        bias_slope = jnp.sum(error, axis=0, keepdims=True) * (1.0 / n_rows)
        speed = _MOMENTUM * speed - (step / _WEIGHT_UNIT) * slope - (step * penalty) * ahead
        bias_speed = _MOMENTUM * bias_speed - (step * n_features) * bias_slope
        return weights + speed, biases + bias_speed, speed, bias_speed

    weights, biases, _, _ = lax.fori_loop(0, n_steps, advance, (*start, *start))
    return weights * _WEIGHT_UNIT, biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic:
    """The model that P0 ends with."""

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    standard: Standardisation

    def probabilities(self, features: Integers) -> NDArray[np.float64]:
        """Class probabilities (n, C) of features (K, n)."""
        scores = self.standard.apply(features) @ self.weights + self.biases
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def to_arrays(self) -> Arrays:
        """The model as arrays for a file."""
        return {
            "weights": self.weights,
            "biases": self.biases,
            "centre": self.standard.centre,
            "multiplier": self.standard.multiplier,
        }


def logistic_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Logistic:
    """Read back `Logistic.to_arrays`."""
    standard = Standardisation(centre=arrays["centre"], multiplier=arrays["multiplier"])
    return Logistic(weights=arrays["weights"], biases=arrays["biases"], standard=standard)
