"""A linear classifier on encoder features, with leave-one-out posteriors for free.

Ridge regression on one-hot labels. Its leave-one-out predictions have a closed form, so the
strength of the penalty, the temperature of the posterior and the confusion that the label channel
is built from all come from predictions on series that the model had not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Codes, Floats, Floats32
from tacit.local.encoding.lone_classes import assume_unmeasured, is_measured

PENALTIES = tuple(float(a) for a in np.logspace(-3, 3, 13))
TEMPERATURES = tuple(float(t) for t in np.logspace(-0.5, 2, 26))


@dataclass(frozen=True, slots=True, eq=False)
class LinearClassifier:
    """Scores = features @ weights + intercept; posterior = softmax(temperature * scores)."""

    weights: Floats32  # (m, classes)
    intercept: Floats32  # (classes,)
    temperature: float

    def posterior(self, features: Floats32) -> Floats:
        """Class probabilities (n, classes) in float64."""
        scores = (features @ self.weights + self.intercept).astype(np.float64)
        return softmax(self.temperature * scores)


@dataclass(frozen=True, slots=True, eq=False)
class RidgeFit:
    """A fitted classifier and what it says about each training series when that is left out."""

    classifier: LinearClassifier
    held_out: Floats  # (n, classes) leave-one-out posterior, assumed where a class has one series
    penalty: float
    log_loss: float


def softmax(scores: Floats) -> Floats:
    """Row-wise, without overflow."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Floats = shifted / shifted.sum(axis=1, keepdims=True)
    return probabilities


def fit_ridge(
    features: Floats32, y: Codes, *, n_classes: int, block_sizes: tuple[int, ...]
) -> RidgeFit:
    """Fit with every block of features given equal weight; `y` holds codes 0..n_classes-1."""
    Z, mean, factor = _standardise_blocks(features, block_sizes)
    left, squares, right = _decompose(Z)
    target = np.eye(n_classes)[y]
    centre = target.mean(axis=0)
    inner = left.T @ (target - centre)
    fits = []
    for penalty in PENALTIES:
        scores = _leave_one_out(target, centre, left, squares, inner, penalty)
        loss, temperature = best_temperature(scores, y)
        fits.append((loss, penalty, temperature, scores))
    loss, penalty, temperature, scores = min(fits, key=lambda fit: fit[0])
    # Z = left sqrt(squares) right^T, so the ridge weights are right (s / (s^2 + penalty)) left^T y.
    weights = right @ ((np.sqrt(squares) / (squares + penalty))[:, None] * inner)
    weights *= factor[:, None]
    classifier = LinearClassifier(
        weights.astype(np.float32), (centre - mean @ weights).astype(np.float32), temperature
    )
    held_out = assume_unmeasured(softmax(temperature * scores), y)
    return RidgeFit(classifier, held_out, penalty, loss)


def left_out_influence(
    features: Floats32,
    y: Codes,
    *,
    n_classes: int,
    block_sizes: tuple[int, ...],
    penalty: float,
) -> tuple[Floats, Floats]:
    """Influence (m, n) and residuals (n, classes): how the weights change without one series.

    With this penalty the fit to all series but i has the weights W - outer(influence[:, i],
    residuals[i]), where W are those of `fit_ridge`.
    """
    Z, _, factor = _standardise_blocks(features, block_sizes)
    left, squares, right = _decompose(Z)
    target = np.eye(n_classes)[y]
    centre = target.mean(axis=0)
    inner = left.T @ (target - centre)
    residuals = target - _leave_one_out(target, centre, left, squares, inner, penalty)
    influence = (right * (np.sqrt(squares) / (squares + penalty))) @ left.T
    return factor[:, None] * influence, residuals


def _standardise_blocks(
    features: Floats32, block_sizes: tuple[int, ...]
) -> tuple[Floats, Floats, Floats]:
    """Centred features whose rows have mean square norm n, each block an equal part of it."""
    mean, spread = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    used = spread > 1e-6
    factor = np.where(used, 1.0 / np.where(used, spread, 1.0), 0.0)
    start = 0
    for size in block_sizes:
        live = int(np.count_nonzero(used[start : start + size]))
        share = len(features) / (len(block_sizes) * max(live, 1))
        factor[start : start + size] *= np.sqrt(share)
        start += size
    return (features - mean) * factor, mean, factor


def _decompose(Z: Floats) -> tuple[Floats, Floats, Floats]:
    """Thin singular value decomposition through the smaller Gram matrix: fast, exact enough."""
    n, m = Z.shape
    squares, vectors = np.linalg.eigh(Z @ Z.T if n <= m else Z.T @ Z)
    # Below this share of the largest the directions are rounding noise.
    good = squares > 1e-10 * max(float(squares[-1]), 1e-30)
    squares, vectors = squares[good], vectors[:, good]
    other = (Z.T if n <= m else Z) @ vectors / np.sqrt(squares)
    return (vectors, squares, other) if n <= m else (other, squares, vectors)


def _leave_one_out(
    target: Floats, centre: Floats, left: Floats, squares: Floats, inner: Floats, penalty: float
) -> Floats:
    """Scores of each series from the fit to all the others, in closed form."""
    shrink = squares / (squares + penalty)
    fitted = centre + left @ (shrink[:, None] * inner)
    leverage = left**2 @ shrink + 1.0 / len(target)
    scores: Floats = target - (target - fitted) / np.maximum(1.0 - leverage, 1e-9)[:, None]
    return scores


def best_temperature(scores: Floats, y: Codes) -> tuple[float, float]:
    """The least leave-one-out log loss over a grid, and its temperature.

    Series that are the only ones of their class have no say: see `lone_classes`.
    """
    measured, losses = is_measured(y), []
    scores, y = scores[measured], y[measured]
    for temperature in TEMPERATURES:
        held_out = softmax(temperature * scores)[np.arange(len(y)), y]
        losses.append((float(-np.log(np.maximum(held_out, 1e-300)).mean()), temperature))
    return min(losses)
