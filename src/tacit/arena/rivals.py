"""Rivals in the setting of the DP-SoftShape paper: Laplace noise on every step of every series.

Each series is z-scored and each step gets Lap(1/epsilon), in training and at test. That is what
the paper compares with; it carries no guarantee (the L1 sensitivity of a z-scored series is up to
2T times its range, not 1), and the records say so. `views` gives the classifier that many freshly
noised copies of the training data instead of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arena.methods import Outcome, measure
from tacit.arena.task import Task
from tacit.data import Dataset
from tacit.errors import check_at_least
from tacit.guarantee import Unprotected
from tacit.noise import SYSTEM_NOISE, laplace

Cube = NDArray[np.float64]


def run_rival(task: Task, data: Dataset) -> Outcome:
    """Train and test one rival under the task's input noise (none if epsilon is None)."""
    options = dict(task.options)
    views = check_at_least(options.pop("views", 1), 1, name="views")
    noisy = noised(data, epsilon=task.epsilon, views=views)
    classifier = RIVALS[task.method](task.seed, **options)
    return measure(classifier, noisy, guarantee=_guarantee(task.epsilon))


def noised(data: Dataset, *, epsilon: float | None, views: int = 1) -> Dataset:
    """The data set as the rivals see it: z-scored per series and channel, then noised."""
    return Dataset(
        name=data.name,
        X_train=np.concatenate([_noise(z_score(data.X_train), epsilon) for _ in range(views)]),
        y_train=np.tile(data.y_train, views),
        X_test=_noise(z_score(data.X_test), epsilon),
        y_test=data.y_test,
        classes=data.classes,
    )


def z_score(X: Cube) -> Cube:
    """Mean 0 and standard deviation 1 per series and channel; constant series become 0."""
    centred = X - X.mean(axis=2, keepdims=True)
    spread = centred.std(axis=2, keepdims=True)
    scaled: Cube = centred / np.where(spread > 0.0, spread, 1.0)
    return scaled


def _noise(X: Cube, epsilon: float | None) -> Cube:
    if epsilon is None:
        return X
    return X + laplace(X.shape, scale=1.0 / epsilon, source=SYSTEM_NOISE)


def _guarantee(epsilon: float | None) -> Unprotected:
    if epsilon is None:
        return Unprotected(reason="raw series, no noise")
    return Unprotected(
        reason="noise of scale 1/epsilon per step does not cover the sensitivity of a whole series",
        nominal_epsilon=epsilon,
    )


def _rocket(seed: int, **options: Any) -> Any:
    from aeon.classification.convolution_based import RocketClassifier

    return RocketClassifier(random_state=seed, **options)


def _arsenal(seed: int, **options: Any) -> Any:
    from aeon.classification.convolution_based import Arsenal

    return Arsenal(random_state=seed, **options)


def _minirocket(seed: int, **options: Any) -> Any:
    from aeon.classification.convolution_based import MiniRocketClassifier

    return MiniRocketClassifier(random_state=seed, **options)


def _multirocket_hydra(seed: int, **options: Any) -> Any:
    from aeon.classification.convolution_based import MultiRocketHydraClassifier

    return MultiRocketHydraClassifier(random_state=seed, **options)


def _quant(seed: int, **options: Any) -> Any:
    from aeon.classification.interval_based import QUANTClassifier

    return QUANTClassifier(random_state=seed, **options)


def _tsf(seed: int, **options: Any) -> Any:
    from aeon.classification.interval_based import TimeSeriesForestClassifier

    return TimeSeriesForestClassifier(random_state=seed, **options)


def _one_nn(seed: int, **options: Any) -> Any:
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    return KNeighborsTimeSeriesClassifier(n_neighbors=1, distance="euclidean", **options)


def _fcn(seed: int, **options: Any) -> Any:
    from tacit.arena.deep_rivals import DeepRival

    return DeepRival("fcn", seed=seed, **options)


def _inception_time(seed: int, **options: Any) -> Any:
    from tacit.arena.deep_rivals import DeepRival

    return DeepRival("inception", seed=seed, **{"n_members": 5, **options})


RIVALS: dict[str, Callable[..., Any]] = {
    "1-nn": _one_nn,
    "arsenal": _arsenal,
    "fcn": _fcn,
    "inceptiontime": _inception_time,
    "minirocket": _minirocket,
    "multirocket-hydra": _multirocket_hydra,
    "quant": _quant,
    "rocket": _rocket,
    "tsf": _tsf,
}
