"""Multinomial logistic regression trained over shares by accelerated gradient descent.

The engine's fixed-point exponential and division are approximate (about three digits), so secure
and plaintext weights agree closely, not bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from jax import Array

    from tacit.silo.candidates import Ints

STANDARD_BITS = 10
_MULTIPLIER_BITS = 20
# Standardised features beyond 8 deviations of P0's own are clipped: they would drown the rest.
_CLIP = 8 * 2**STANDARD_BITS
_SMALLEST_DEVIATION = 32
_MOMENTUM = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """P0's centre and integer multiplier (K, 1) of each feature, from its own rows."""

    centre: Ints
    multiplier: Ints

    def apply(self, features: Ints) -> NDArray[np.float64]:
        """Standardised features (n, K) in plaintext, equal to `standardise` over shares."""
        return np.asarray(standardise_ints(features, self.centre, self.multiplier, np)).T / (
            2.0**STANDARD_BITS
        )


def standard_from(own_features: Ints) -> Standard:
    """Centre and multiplier from P0's own features (K, M0)."""
    centre = np.rint(own_features.mean(axis=1, keepdims=True)).astype(np.int64)
    deviation = np.maximum(own_features.std(axis=1, keepdims=True), _SMALLEST_DEVIATION)
    multiplier = np.rint(2.0 ** (STANDARD_BITS + _MULTIPLIER_BITS) / deviation).astype(np.int64)
    return Standard(centre=centre, multiplier=multiplier)


def standardise_ints(features: Array, centre: Array, multiplier: Array, xp: object) -> Array:
    """Integers at 2**STANDARD_BITS, clipped; `xp` is numpy or jax.numpy."""
    scaled = (features - centre) * multiplier
    scaled = xp.right_shift(scaled, _MULTIPLIER_BITS)  # type: ignore[attr-defined]
    return xp.minimum(xp.maximum(scaled, -_CLIP), _CLIP)  # type: ignore[attr-defined]


def standardise(features: Array, centre: Array, multiplier: Array) -> Array:
    """Standardised features (M, K) as fixed-point numbers; exact but for the last division."""
    import jax.numpy as jnp

    ints = standardise_ints(features, centre, multiplier, jnp)
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
        error = (jax.nn.softmax(table @ ahead + bias_ahead, axis=1) - target) * (step / n_rows)
        speed = _MOMENTUM * speed - table.T @ error - (step * penalty) * ahead
        bias_speed = _MOMENTUM * bias_speed - n_features * jnp.sum(error, axis=0, keepdims=True)
        return weights + speed, biases + bias_speed, speed, bias_speed

    weights, biases, _, _ = lax.fori_loop(0, n_steps, advance, (*start, *start))
    return weights, biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic:
    """The model that P0 ends with."""

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    standard: Standard

    def probabilities(self, features: Ints) -> NDArray[np.float64]:
        """Class probabilities (n, C) of features (K, n)."""
        scores = self.standard.apply(features) @ self.weights + self.biases
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))
