"""What Figures 3 to 5 of the DP-SoftShape paper draw, kept as numbers in the record.

A task trains one network under the nominal epsilon and keeps the scores, noise scales and routing
of one test series, and the representations of the test series on a plane.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from tacit.arena.outcome import Outcome
from tacit.arena.rivals import noised
from tacit.arena.softshape.published import settings_of
from tacit.arena.task import Task
from tacit.arrays import Floats
from tacit.data import Dataset
from tacit.errors import TacitError
from tacit.guarantee import Unprotected

_SERIES = 300  # test series on the plane, at most


def run_softshape_picture(task: Task, data: Dataset) -> Outcome:
    """DP-SoftShape in one preset; `of_class`: whose first test series is explained."""
    from tacit.local.softshape.explain import explain
    from tacit.local.softshape.published import train_published

    options = dict(task.options)
    label = options.pop("of_class", data.classes[0])
    epsilon = _budget(task)
    start = time.perf_counter()
    classes = sorted(data.classes)
    trained = train_published(
        data.X_train,
        np.searchsorted(classes, data.y_train),
        len(classes),
        epsilon=epsilon,
        settings=settings_of(options),
        seed=task.seed,
    )
    series = data.X_test[np.flatnonzero(data.y_test == label)[0]]
    found = explain(trained, series, epsilon=epsilon)
    pooled = trained.traces(data.X_test[:_SERIES])[0]
    predicted = np.array(classes)[trained.predict_scores(data.X_test).argmax(axis=1)]
    details = {
        "series": _plain(series),
        "patch_starts": found.patch_starts.tolist(),
        "patch_length": found.patch_length,
        "alpha": _plain(found.alpha),
        "noise_scale": _plain(found.noise_scale),
        "routing": None if found.routing is None else _plain(found.routing),
        "label": label,
        "train_seconds": round(time.perf_counter() - start, 3),
    }
    return Outcome(
        accuracy=float(np.mean(predicted == data.y_test)),
        guarantee=trained.guarantee,
        details={**details, **_plane(pooled, data)},
    )


def run_inception_picture(task: Task, data: Dataset) -> Outcome:
    """InceptionTime on series with the paper's input noise: the other panel of Fig. 4."""
    from tacit.arena.deep_rivals import DeepRival

    epsilon = _budget(task)
    noisy = noised(data, epsilon=epsilon)
    start = time.perf_counter()
    rival = DeepRival("inception", seed=task.seed, **dict(task.options))
    rival.fit(noisy.X_train, noisy.y_train)
    seconds = round(time.perf_counter() - start, 3)
    return Outcome(
        accuracy=float(np.mean(rival.predict(noisy.X_test) == noisy.y_test)),
        guarantee=Unprotected(
            reason="noise of scale 1/epsilon per step does not cover the sensitivity of a series",
            nominal_epsilon=epsilon,
        ),
        details={
            "train_seconds": seconds,
            **_plane(rival.represent(noisy.X_test[:_SERIES]), data),
        },
    )


def _budget(task: Task) -> float:
    if task.epsilon is None:
        raise TacitError(f"{task.method} draws what noise does; give an epsilon.")
    return task.epsilon


def _plane(points: Floats, data: Dataset) -> dict[str, Any]:
    """t-SNE of representations, and how far apart the classes lie before it (silhouette)."""
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score

    labels = [str(label) for label in data.y_test[: len(points)]]
    crowd = min(30.0, (len(points) - 1) / 3.0)
    plane = TSNE(perplexity=crowd, init="pca", random_state=0).fit_transform(points)
    return {
        "plane": np.round(plane.astype(float), 2).tolist(),
        "labels": labels,
        "silhouette": float(silhouette_score(points, labels)),
    }


def _plain(values: Floats) -> list[Any]:
    """Nested lists for JSON; a patch that was not kept has no weight, which is no number."""
    if np.ndim(values) > 1:
        return [_plain(row) for row in values]
    return [round(float(v), 4) if math.isfinite(v) else None for v in values]
