"""The three families and the two bounds (majority, ceiling) as methods of the comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arena.outcome import Method, Outcome, measure
from tacit.arena.published_fleet import run_published_fleet
from tacit.arena.repeated_releases import measure_releases
from tacit.arena.silo.methods import SILO_METHODS
from tacit.arena.softshape.pictures import run_inception_picture, run_softshape_picture
from tacit.arena.softshape.published import run_held_out, run_published
from tacit.arena.task import Task
from tacit.data import Dataset
from tacit.errors import TacitError, check_at_least
from tacit.guarantee import DpGuarantee, Unprotected

_CURVES = (
    "rounds", "split", "evaluated_on", "clients", "mode", "mechanism", "baselines", "stopped",
    "accuracy_per_round", "epsilon_per_round", "local_epsilon", "nominal_delta",
    "nominal_delta_per_round", "reidentification",
)  # fmt: skip

_HYBRID = (
    "clean_accuracy", "ceiling", "rounds", "mechanism", "split", "evaluated_on", "clients",
    "recognition", "n_test",
)  # fmt: skip


def _budget(task: Task) -> float:
    if task.epsilon is None:
        raise TacitError(f"{task.method} has no variant without noise; give an epsilon.")
    return task.epsilon


def _majority(task: Task, data: Dataset) -> Outcome:
    labels, counts = np.unique(data.y_train, return_counts=True)
    accuracy = float(np.mean(data.y_test == labels[counts.argmax()]))
    return Outcome(
        accuracy=accuracy, guarantee=Unprotected(reason="one constant, learned from training data")
    )


def _ceiling(task: Task, data: Dataset) -> Outcome:
    """The most that any release of this total epsilon can reach, with a perfect classifier."""
    from tacit.local import accuracy_ceiling

    epsilon = _budget(task)
    _, counts = np.unique(data.y_test, return_counts=True)
    return Outcome(
        accuracy=accuracy_ceiling(counts / counts.sum(), epsilon=epsilon),
        guarantee=DpGuarantee(epsilon=epsilon, model="local", unit="series"),
    )


def _softshape_sound(task: Task, data: Dataset) -> Outcome:
    """One release of every test series; with the option `draws`, the mean over that many."""
    from tacit.local import DPSoftShapeClassifier

    options = dict(task.options)
    draws = options.pop("draws", None)
    release: Any = task.method.removeprefix("softshape-")
    classifier = DPSoftShapeClassifier(
        epsilon=_budget(task), release=release, random_state=task.seed, **options
    )
    if draws is None:
        return measure(classifier, data)
    return measure_releases(classifier, data, draws=check_at_least(draws, 1, name="draws"))


def _timefl(task: Task, data: Dataset) -> Outcome:
    """The run of `tacit train timefl` with these options; its curves are kept for the figures."""
    from tacit.fleet.experiment import FleetTask, run_task

    asked = FleetTask(epsilon=_budget(task), seed=task.seed, curves=True, **dict(task.options))
    result = run_task(data, asked)
    linked = result.get("reidentification")
    return Outcome(
        accuracy=result["accuracy"],
        guarantee=result["guarantee"],
        leakage=None if linked is None else {"reidentification": float(linked)},
        details={key: result[key] for key in _CURVES if result.get(key) is not None},
    )


def _hybrid(task: Task, data: Dataset) -> Outcome:
    """The run of `tacit train hybrid`; the accuracy is that of one release of each test series."""
    from tacit.hybrid.experiment import HybridTask, run_task

    asked = HybridTask(epsilon=_budget(task), seed=task.seed, **dict(task.options))
    result = run_task(data, asked)
    promised = result.pop("guarantee")
    return Outcome(
        accuracy=result["accuracy"],
        guarantee=promised["release"],
        details={
            **{key: result[key] for key in _HYBRID},
            "training_guarantee": promised["training"].to_dict(),
        },
    )


FAMILIES: dict[str, Method] = {
    "majority": _majority,
    "ceiling": _ceiling,
    "softshape-published": run_published,
    "softshape-held-out": run_held_out,
    "softshape-picture": run_softshape_picture,
    "inceptiontime-picture": run_inception_picture,
    "softshape-label": _softshape_sound,
    "softshape-place": _softshape_sound,
    "softshape-vector": _softshape_sound,
    "softshape-shapes": _softshape_sound,
    **SILO_METHODS,
    "timefl": _timefl,
    "timefl-published": run_published_fleet,
    "hybrid": _hybrid,
}
