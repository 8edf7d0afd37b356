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
from tacit.errors import TacitError
from tacit.silo.fedst.classifiers.standard import STANDARD_BITS, Standardisation
from tacit.silo.secure.session import Arrays

if TYPE_CHECKING:
    from jax import Array


_MOMENTUM = 0.9
# Weights are trained in this unit: their steps would vanish in the engine's 18 fraction bits.
_WEIGHT_UNIT = 2.0**-6
MAX_ROWS = 4096


def check_logistic_rows(n_rows: int) -> None:
    """Refuse more series than 1/M in the engine's 18 fraction bits holds to one percent."""
    if n_rows > MAX_ROWS:
        raise TacitError(
            f"a logistic regression takes at most {MAX_ROWS} series in all, got {n_rows}; choose "
            "classifier 'ridge', or have the parties bring a sample."
        )


def train_logistic(
    table: Array, indicators: Array, *, n_steps: int, penalty: float
) -> tuple[Array, Array]:
    """Weights (K, C) and biases (1, C) after `n_steps` of Nesterov's method; opens nothing.

    `table` (K, M) are standardised features, integers at 2**STANDARD_BITS.
    The step 2/K is safe: the largest curvature of the loss on K standardised features is K/2.
    """
    import jax
    import jax.numpy as jnp
    from jax import lax

    table = table.T.astype(jnp.float64) * 2.0**-STANDARD_BITS
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
