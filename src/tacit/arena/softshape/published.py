"""DP-SoftShape as published, by preset: on the test part, or on held-out training series.

The options are a preset and changes to its settings. A task without a preset is the network that
is now called `tuned`: records from before there were two stay records of today's tasks.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arena.outcome import Outcome
from tacit.arena.repeated_releases import class_bounds
from tacit.arena.task import Task
from tacit.data import Dataset

if TYPE_CHECKING:
    from tacit.local.softshape.settings import SoftShapeSettings

_JUDGED = 300  # held-out series at most


def run_published(task: Task, data: Dataset) -> Outcome:
    """Noise at training and at test; accuracy and leakage on the test part."""
    return _run(task, data, settings_of(dict(task.options)))


def run_held_out(task: Task, data: Dataset) -> Outcome:
    """The same on the training part alone: `n_train` series to train on, others to judge."""
    options = dict(task.options)
    n_train = int(options.pop("n_train"))
    return _run(task, training_part(data, n_train=n_train, seed=task.seed), settings_of(options))


def settings_of(options: dict[str, Any]) -> SoftShapeSettings:
    """The network's settings that a task's options name."""
    from tacit.local.softshape.settings import preset_settings

    changes = dict(options)
    if "kernels" in changes:
        changes["kernels"] = tuple(changes["kernels"])
    return preset_settings(changes.pop("preset", "tuned"), **changes)


def training_part(data: Dataset, *, n_train: int, seed: int) -> Dataset:
    """A data set made of training series: `n_train` of them, and up to 300 others as its test."""
    order = np.random.default_rng(seed).permutation(len(data.y_train))
    rows, judged = order[:n_train], order[n_train : n_train + _JUDGED]
    return Dataset(
        name=data.name,
        X_train=data.X_train[rows],
        y_train=data.y_train[rows],
        X_test=data.X_train[judged],
        y_test=data.y_train[judged],
        classes=data.classes,
    )


def _run(task: Task, data: Dataset, settings: SoftShapeSettings) -> Outcome:
    from tacit.local.softshape.leakage import measure_leakage
    from tacit.local.softshape.published import train_published

    start = time.perf_counter()
    classes = sorted(data.classes)
    trained = train_published(
        data.X_train,
        np.searchsorted(classes, data.y_train),
        len(classes),
        epsilon=task.epsilon,
        settings=settings,
        seed=task.seed,
    )
    details = {
        "train_seconds": round(time.perf_counter() - start, 3),
        "n_patches": trained.network.n_patches,
        "n_steps": len(trained.losses),
        **class_bounds(data, epsilon=task.epsilon),
    }
    predicted = np.array(classes)[trained.predict_scores(data.X_test).argmax(axis=1)]
    leakage: dict[str, float] | None = None
    if task.epsilon is not None:
        measured: Any = measure_leakage(trained, data.X_test, epsilon=task.epsilon)
        leakage = {key: float(value) for key, value in measured.items()}
    return Outcome(
        accuracy=float(np.mean(predicted == data.y_test)),
        guarantee=trained.guarantee,
        leakage=leakage,
        details=details,
    )
