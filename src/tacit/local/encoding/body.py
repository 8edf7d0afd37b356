"""What a device computes in the clear: series to features to class scores.

A body is an encoder (random kernels, the SoftShape network, or the public features of a model that
a fleet trained) with a linear classifier on top. Training one (`train_kernels` here, the network
in `tacit.local.softshape.encoder`) also returns the posteriors of training series held out from
the fit, which the label channel and the noise-in-the-loop training of the other releases are
built on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.local.encoding.lone_classes import held_out_accuracy
from tacit.local.encoding.public_features import PublicEncoder
from tacit.local.encoding.random_kernels import (
    Encoder,
    encoder_arrays,
    encoder_from_arrays,
    fit_encoder,
)
from tacit.local.encoding.ridge import LinearClassifier, fit_ridge
from tacit.local.encoding.softshape_numpy import SoftShapeEncoder
from tacit.system.progress import Progress, silent

EncoderKind = Literal["kernels", "softshape", "public"]
AnyEncoder = Encoder | SoftShapeEncoder | PublicEncoder

# Beyond this many series the closed form for many features gets slow, and fewer features suffice.
_MANY_SERIES = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """An encoder and a linear classifier, both public."""

    kind: EncoderKind
    encoder: AnyEncoder
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
    encoder = _encoder(values["encoder"], inner, values["encoder_values"])
    classifier = LinearClassifier(
        arrays["classifier.weights"], arrays["classifier.intercept"], float(values["temperature"])
    )
    return Body(values["encoder"], encoder, classifier)


def _encoder(
    kind: EncoderKind, arrays: dict[str, NDArray[Any]], values: dict[str, Any]
) -> AnyEncoder:
    if kind == "softshape":
        return SoftShapeEncoder.from_arrays(arrays, values)
    if kind == "public":
        return PublicEncoder.from_values(values)
    return encoder_from_arrays(arrays, values)


def train_kernels(
    X: Floats, y: Codes, *, n_classes: int, rng: np.random.Generator, progress: Progress = silent
) -> TrainedBody:
    """Random-kernel features and ridge regression with leave-one-out posteriors."""
    progress(0, 2, "random kernels")
    fewer = {} if len(X) <= _MANY_SERIES else {"n_proportions": 1008, "n_groups": 4}
    encoder = fit_encoder(X, rng=rng, **fewer)
    fit = fit_ridge(encoder.encode(X), y, n_classes=n_classes, block_sizes=encoder.block_sizes())
    accuracy = held_out_accuracy(fit.held_out, y)
    progress(1, 2, f"held-out accuracy {accuracy:.3f}")
    return TrainedBody(
        Body("kernels", encoder, fit.classifier), fit.held_out, fit.log_loss, accuracy
    )
