"""What a device computes in the clear: series to features to class scores.

A body is an encoder (random kernels, or the SoftShape network) with a linear classifier on top.
`train_body` also returns the posteriors of training series held out from the fit, which the label
channel and the noise-in-the-loop training of the other releases are built on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.local.encoding.random_kernels import (
    Encoder,
    encoder_arrays,
    encoder_from_arrays,
    fit_encoder,
)
from tacit.local.encoding.ridge import LinearClassifier, best_temperature, fit_ridge, softmax
from tacit.local.encoding.softshape_numpy import SoftShapeEncoder
from tacit.system.progress import Progress

if TYPE_CHECKING:
    from tacit.local.softshape.published import TrainedSoftShape

EncoderKind = Literal["kernels", "softshape"]

# Beyond this many series the closed form for many features gets slow, and fewer features do.
_MANY_SERIES = 2000
_FOLDS = 3
_RACE_STEPS = 30
_GOOD_ENOUGH = 0.95
_FEWEST_FOR_A_NETWORK = 40


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """An encoder and a linear classifier, both public."""

    kind: EncoderKind
    encoder: Encoder | SoftShapeEncoder
    classifier: LinearClassifier

    def posterior(self, X: NDArray[np.floating[Any]]) -> Floats:
        """Class probabilities (n, classes) of series (n, channels, T); private."""
        return self.classifier.posterior(self.encoder.encode(X))

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Named arrays and plain values for a bundle."""
        if isinstance(self.encoder, Encoder):
            inner, values = encoder_arrays(self.encoder)
        else:
            inner, values = self.encoder.arrays()
        arrays = {f"encoder.{name}": array for name, array in inner.items()}
        arrays["classifier.weights"] = self.classifier.weights
        arrays["classifier.intercept"] = self.classifier.intercept
        return arrays, {
            "encoder": self.kind,
            "temperature": self.classifier.temperature,
            "encoder_values": values,
        }


@dataclass(frozen=True, slots=True, eq=False)
class TrainedBody:
    """A body, its held-out posteriors (n, classes) on its training series, and how well it did."""

    body: Body
    held_out: Floats
    log_loss: float
    accuracy: float


def body_from_arrays(arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Body:
    """Rebuild what `Body.arrays` described."""
    prefix = "encoder."
    inner = {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    encoder: Encoder | SoftShapeEncoder
    if values["encoder"] == "softshape":
        encoder = SoftShapeEncoder.from_arrays(inner, values["encoder_values"])
    else:
        encoder = encoder_from_arrays(inner, values["encoder_values"])
    classifier = LinearClassifier(
        arrays["classifier.weights"], arrays["classifier.intercept"], float(values["temperature"])
    )
    return Body(values["encoder"], encoder, classifier)


def train_body(
    X: Floats,
    y: Codes,
    *,
    n_classes: int,
    encoder: Literal["auto", "kernels", "softshape"],
    rng: np.random.Generator,
    progress: Progress,
) -> TrainedBody:
    """Train the encoder asked for; `auto` takes the network where it is right more often.

    The network is tried only where the kernels leave room: first in a short race on one held-out
    third, then in full by three-fold cross-validation, which it leaves after the first fold where
    it is behind; all of it uses training series alone.
    """
    if encoder == "softshape":
        return train_softshape(X, y, n_classes=n_classes, rng=rng, progress=progress)
    progress(0, 2, "random kernels")
    kernels = train_kernels(X, y, n_classes=n_classes, rng=rng)
    progress(1, 2, f"held-out accuracy {kernels.accuracy:.3f}")
    if encoder == "kernels" or not _worth_a_network(kernels):
        return kernels
    if not _beats_kernels(kernels, X, y, n_classes=n_classes, rng=rng):
        return kernels
    network = _cross_validate(
        X, y, n_classes=n_classes, rng=rng, progress=progress, rival=kernels.held_out
    )
    return network or kernels


def train_kernels(X: Floats, y: Codes, *, n_classes: int, rng: np.random.Generator) -> TrainedBody:
    """Random-kernel features and ridge regression with leave-one-out posteriors."""
    fewer = {} if len(X) <= _MANY_SERIES else {"n_proportions": 1008, "n_groups": 4}
    encoder = fit_encoder(X, rng=rng, **fewer)
    fit = fit_ridge(encoder.encode(X), y, n_classes=n_classes, block_sizes=encoder.block_sizes())
    accuracy = float(np.mean(fit.held_out.argmax(axis=1) == y))
    return TrainedBody(
        Body("kernels", encoder, fit.classifier), fit.held_out, fit.log_loss, accuracy
    )


def _worth_a_network(kernels: TrainedBody) -> bool:
    """Training a network is slow; where kernels are nearly always right there is little to win."""
    return kernels.accuracy < _GOOD_ENOUGH and len(kernels.held_out) >= _FEWEST_FOR_A_NETWORK


def _beats_kernels(
    kernels: TrainedBody, X: Floats, y: Codes, *, n_classes: int, rng: np.random.Generator
) -> bool:
    """Whether a network trained on two thirds is clearly right more often on the last third.

    A race at about equal cost: the network gets as many steps as take about the time of the
    kernels. Where it does not win by a standard error, full training is not worth its price.
    """
    fold = fold_of_each(y, n_folds=3, rng=rng)
    held = fold == 0
    network = _train_network(X[~held], y[~held], n_classes=n_classes, rng=rng, steps=_RACE_STEPS)
    network_right = np.mean(network.predict_scores(X[held]).argmax(axis=1) == y[held])
    kernels_right = np.mean(kernels.held_out[held].argmax(axis=1) == y[held])
    error = np.sqrt(kernels_right * (1.0 - kernels_right) / np.count_nonzero(held))
    return bool(network_right > kernels_right + error)


def train_softshape(
    X: Floats, y: Codes, *, n_classes: int, rng: np.random.Generator, progress: Progress
) -> TrainedBody:
    """The SoftShape network without noise inside, with posteriors from three-fold training."""
    trained = _cross_validate(X, y, n_classes=n_classes, rng=rng, progress=progress, rival=None)
    assert trained is not None  # only a rival stops it
    return trained


def _cross_validate(
    X: Floats,
    y: Codes,
    *,
    n_classes: int,
    rng: np.random.Generator,
    progress: Progress,
    rival: Floats | None,
) -> TrainedBody | None:
    """Train on each two thirds and then on all; None once the rival's posteriors are as good."""
    fold = fold_of_each(y, n_folds=_FOLDS, rng=rng)
    scores = np.zeros((len(y), n_classes))
    for k in range(_FOLDS):
        progress(k, _FOLDS + 1, f"network, fold {k + 1} of {_FOLDS}")
        part = _train_network(X[fold != k], y[fold != k], n_classes=n_classes, rng=rng)
        scores[fold == k] = part.encode(X[fold == k])
        seen = fold <= k
        if rival is not None and _right(scores[seen], y[seen]) <= _right(rival[seen], y[seen]):
            return None
    progress(_FOLDS, _FOLDS + 1, "network on all series")
    trained = _train_network(X, y, n_classes=n_classes, rng=rng)
    log_loss, temperature = best_temperature(scores, y)
    head = trained.network.head
    classifier = LinearClassifier(
        head.weight.detach().numpy().T.copy(), head.bias.detach().numpy().copy(), temperature
    )
    held_out = softmax(temperature * scores)
    body = Body("softshape", SoftShapeEncoder.from_trained(trained), classifier)
    return TrainedBody(body, held_out, log_loss, _right(scores, y) / len(y))


def _right(scores: Floats, y: Codes) -> int:
    """How many series have their class on top."""
    return int(np.count_nonzero(scores.argmax(axis=1) == y))


def fold_of_each(y: Codes, *, n_folds: int, rng: np.random.Generator) -> Codes:
    """A fold per series, every class spread over the folds as evenly as it can be."""
    fold = np.empty(len(y), dtype=np.intp)
    start = 0
    for code in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == code))
        fold[rows] = (start + np.arange(len(rows))) % n_folds
        start += len(rows)
    return fold


def _train_network(
    X: Floats, y: Codes, *, n_classes: int, rng: np.random.Generator, steps: int | None = None
) -> TrainedSoftShape:
    from tacit.local.softshape.published import train_published
    from tacit.local.softshape.settings import SoftShapeSettings

    settings = SoftShapeSettings() if steps is None else SoftShapeSettings(steps=steps)
    seed = int(rng.integers(2**31))
    return train_published(X, y, n_classes, epsilon=None, settings=settings, seed=seed)
