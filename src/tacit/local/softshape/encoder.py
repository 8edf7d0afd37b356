"""The SoftShape network as an encoder: trained here with PyTorch, run by devices in NumPy."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Codes, Floats
from tacit.local.encoding.body import Body, TrainedBody
from tacit.local.encoding.lone_classes import assume_unmeasured, held_out_accuracy
from tacit.local.encoding.ridge import LinearClassifier, best_temperature, softmax
from tacit.local.encoding.softshape_numpy import SoftShapeEncoder
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.local.softshape.trained import TrainedNetwork
from tacit.local.softshape.training import train_network
from tacit.system.progress import Progress, silent

_FOLDS = 3


def train_softshape(
    X: Floats,
    y: Codes,
    *,
    n_classes: int,
    rng: np.random.Generator,
    settings: SoftShapeSettings | None = None,
    progress: Progress = silent,
) -> TrainedBody:
    """The network without noise inside; its held-out posteriors come from three-fold training."""

    def train(X: Floats, y: Codes) -> TrainedNetwork:
        seed = int(rng.integers(2**31))
        return train_network(X, y, n_classes, settings=settings or SoftShapeSettings(), seed=seed)

    fold = fold_of_each(y, n_folds=_FOLDS, rng=rng)
    scores = np.zeros((len(y), n_classes))
    for k in range(_FOLDS):
        progress(k, _FOLDS + 1, f"network, fold {k + 1} of {_FOLDS}")
        scores[fold == k] = train(X[fold != k], y[fold != k]).encode(X[fold == k])
    progress(_FOLDS, _FOLDS + 1, "network on all series")
    trained = train(X, y)
    log_loss, temperature = best_temperature(scores, y)
    head = trained.network.head
    classifier = LinearClassifier(
        head.weight.detach().numpy().T.copy(), head.bias.detach().numpy().copy(), temperature
    )
    held_out = assume_unmeasured(softmax(temperature * scores), y)
    body = Body("softshape", numpy_encoder(trained), classifier)
    return TrainedBody(body, held_out, log_loss, held_out_accuracy(held_out, y))


def fold_of_each(y: Codes, *, n_folds: int, rng: np.random.Generator) -> Codes:
    """A fold per series, every class spread over the folds as evenly as it can be."""
    fold = np.empty(len(y), dtype=np.intp)
    start = 0
    for code in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == code))
        fold[rows] = (start + np.arange(len(rows))) % n_folds
        start += len(rows)
    return fold


def numpy_encoder(trained: TrainedNetwork) -> SoftShapeEncoder:
    """Copy a trained network, without its classification head, into what a device runs."""
    arrays = trained.state_arrays()
    settings, network = trained.settings, trained.network
    return SoftShapeEncoder(
        weights={
            name.removeprefix("network."): np.asarray(value, dtype=np.float32)
            for name, value in arrays.items()
            if name.startswith("network.") and not name.startswith("network.head.")
        },
        offset=arrays["normalisation.offset"],
        spread=arrays["normalisation.spread"],
        per_series=trained.normalisation.per_series,
        n_channels=network.n_channels,
        n_timepoints=network.length,
        patch_length=network.patch_length,
        stride=network.stride,
        rho=settings.rho,
        top_k=settings.top_k,
        clip=settings.clip,
        use_moe=settings.use_moe,
        soft=settings.soft,
        kernels=settings.kernels,
        n_blocks=settings.n_blocks,
        unit_tokens=settings.unit_tokens,
        pooling=settings.pooling,
    )
