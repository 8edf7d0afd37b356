"""Rivals in the setting of the DP-SoftShape paper: Laplace noise on every step of every series.

Each series is z-scored and each step gets Lap(1/epsilon), in training and at test. That is what
the paper compares with; it carries no guarantee (the L1 sensitivity of a z-scored series is up to
2T times its range, not 1), and the records say so. `views` gives the classifier that many freshly
noised copies of the training data instead of one.

`total` is the same idea done soundly: z-scored values are clipped to `CLIP`, so that replacing a
series moves it by at most 2 CLIP T in L1 norm, and discrete noise on a grid covers that.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.arena.outcome import Outcome, measure
from tacit.arena.task import Task
from tacit.arrays import Cube
from tacit.data import Dataset
from tacit.errors import TacitError, check_at_least
from tacit.guarantee import DpGuarantee, Guarantee, Unprotected
from tacit.noise import SYSTEM_NOISE, discrete_laplace, float_laplace
from tacit.system.extras import needs

CLIP = 3.0
_STEPS = 1024  # of the grid, per standard deviation of a series


def run_rival(task: Task, data: Dataset) -> Outcome:
    """Train and test one rival under the task's input noise (none if epsilon is None)."""
    options = dict(task.options)
    views = check_at_least(options.pop("views", 1), 1, name="views")
    total = bool(options.pop("total", False))
    if total and (views > 1 or task.epsilon is None):
        raise TacitError("a total epsilon covers one noised copy of a series; use views = 1.")
    noisy = noised(data, epsilon=task.epsilon, views=views, total=total)
    classifier = RIVALS[task.method](task.seed, **options)
    return measure(classifier, noisy, guarantee=_guarantee(task.epsilon, total=total))


def noised(data: Dataset, *, epsilon: float | None, views: int = 1, total: bool = False) -> Dataset:
    """The data set as the rivals see it: z-scored per series and channel, then noised.

    Guarantee: with `total`, every noised series is `epsilon`-LDP (pure) when it is replaced as a
    whole; without, none.
    Assumes: the noise source is uniform, independent and secret.
    Composes: views of one series add up, so `total` comes with one view.
    Not covered: the labels of the training series.
    """

    def seen(X: Cube) -> Cube:
        return _noise(z_score(X), epsilon, total=total)

    return Dataset(
        name=data.name,
        X_train=np.concatenate([seen(data.X_train) for _ in range(views)]),
        y_train=np.tile(data.y_train, views),
        X_test=seen(data.X_test),
        y_test=data.y_test,
        classes=data.classes,
    )


def z_score(X: Cube) -> Cube:
    """Mean 0 and standard deviation 1 per series and channel; constant series become 0."""
    centred = X - X.mean(axis=2, keepdims=True)
    spread = centred.std(axis=2, keepdims=True)
    scaled: Cube = centred / np.where(spread > 0.0, spread, 1.0)
    return scaled


def _noise(X: Cube, epsilon: float | None, *, total: bool) -> Cube:
    if epsilon is None:
        return X
    if not total:
        return X + float_laplace(X.shape, scale=1.0 / epsilon, source=SYSTEM_NOISE)
    steps = np.rint(np.clip(X, -CLIP, CLIP) * _STEPS)
    sensitivity = int(2 * CLIP * _STEPS) * X.shape[1] * X.shape[2]
    scale = Fraction(sensitivity) / Fraction(epsilon)
    released: Cube = (steps + discrete_laplace(X.shape, scale=scale, source=SYSTEM_NOISE)) / _STEPS
    return released


def _guarantee(epsilon: float | None, *, total: bool) -> Guarantee:
    if epsilon is None:
        return Unprotected(reason="raw series, no noise")
    if total:
        return DpGuarantee(
            epsilon=epsilon,
            model="local",
            unit="series",
            assumptions=("the noise source is uniform, independent and secret",),
            not_covered=("the labels of the training series",),
        )
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
    needs("networks", "torch", what="a deep rival")
    from tacit.arena.deep_rivals import DeepRival

    return DeepRival("fcn", seed=seed, **options)


def _inception_time(seed: int, **options: Any) -> Any:
    needs("networks", "torch", what="a deep rival")
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
