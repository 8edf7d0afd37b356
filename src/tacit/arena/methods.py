"""Every method of the comparison by name, as one function of task and data."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arena.task import Task
from tacit.data import Dataset, load_dataset
from tacit.errors import TacitError
from tacit.guarantee import Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a method gave; it cannot exist without its guarantee."""

    accuracy: float
    guarantee: Guarantee
    leakage: dict[str, float] | None = None
    details: dict[str, Any] = field(default_factory=dict)


Method = Callable[[Task, Dataset], Outcome]


def run_method(task: Task) -> Outcome:
    """Load the data and run the task's method on it."""
    return method_named(task.method)(task, load_dataset(task.data))


def method_names() -> list[str]:
    """The names that a task may have as its method."""
    return sorted(_methods())


def method_named(name: str) -> Method:
    """The function behind a name; a mistyped one gets a suggestion."""
    methods = _methods()
    if name not in methods:
        near = difflib.get_close_matches(name, methods, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(methods))}."
        raise TacitError(f"there is no method {name!r}{hint}")
    return methods[name]


def _methods() -> dict[str, Method]:
    from tacit.arena.rivals import RIVALS, run_rival

    own: dict[str, Method] = {
        "majority": _majority,
        "ceiling": _ceiling,
        "softshape-published": _softshape_published,
        "softshape-label": _softshape_sound,
        "softshape-vector": _softshape_sound,
        "softshape-shapes": _softshape_sound,
        "fedst": _fedst,
        "timefl": _timefl,
    }
    return {**dict.fromkeys(RIVALS, run_rival), **own}


def measure(classifier: Any, data: Dataset, *, guarantee: Guarantee | None = None) -> Outcome:
    """Fit, predict, and take the guarantee along; a rival's is given, for it has none itself."""
    start = time.perf_counter()
    classifier.fit(data.X_train, data.y_train)
    fitted = time.perf_counter()
    accuracy = float(np.mean(classifier.predict(data.X_test) == data.y_test))
    details = {
        "train_seconds": round(fitted - start, 3),
        "predict_seconds": round(time.perf_counter() - fitted, 3),
    }
    leakage = getattr(classifier, "leakage_", None)
    return Outcome(
        accuracy=accuracy,
        guarantee=guarantee or classifier.guarantee_,
        leakage=leakage,
        details=details,
    )


def _budget(task: Task) -> float:
    if task.epsilon is None:
        raise TacitError(f"{task.method} has no variant without noise; give an epsilon.")
    return task.epsilon


def _majority(task: Task, data: Dataset) -> Outcome:
    from tacit.guarantee import Unprotected

    labels, counts = np.unique(data.y_train, return_counts=True)
    accuracy = float(np.mean(data.y_test == labels[counts.argmax()]))
    return Outcome(
        accuracy=accuracy, guarantee=Unprotected(reason="one constant, learned from training data")
    )


def _ceiling(task: Task, data: Dataset) -> Outcome:
    """The most that any release of this total epsilon can reach, with a perfect classifier."""
    from tacit.guarantee import DpGuarantee
    from tacit.local import accuracy_ceiling

    epsilon = _budget(task)
    _, counts = np.unique(data.y_test, return_counts=True)
    return Outcome(
        accuracy=accuracy_ceiling(counts / counts.sum(), epsilon=epsilon),
        guarantee=DpGuarantee(epsilon=epsilon, model="local", unit="series"),
    )


def _softshape_published(task: Task, data: Dataset) -> Outcome:
    """Noise at training and at test; the options are the network's settings."""
    from tacit.local.config import SoftShapeConfig
    from tacit.local.leakage import measure_leakage
    from tacit.local.published import train_published

    start = time.perf_counter()
    codes = np.searchsorted(sorted(data.classes), data.y_train)
    trained = train_published(
        data.X_train,
        codes,
        len(data.classes),
        epsilon=task.epsilon,
        config=SoftShapeConfig(**dict(task.options)),
        seed=task.seed,
    )
    details = {"train_seconds": round(time.perf_counter() - start, 3)}
    predicted = np.array(sorted(data.classes))[trained.predict_scores(data.X_test).argmax(axis=1)]
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


def _softshape_sound(task: Task, data: Dataset) -> Outcome:
    from tacit.local import DPSoftShapeClassifier

    release: Any = task.method.removeprefix("softshape-")
    return measure(
        DPSoftShapeClassifier(
            epsilon=_budget(task), release=release, random_state=task.seed, **dict(task.options)
        ),
        data,
    )


def _fedst(task: Task, data: Dataset) -> Outcome:
    from tacit.silo import FedSTClassifier

    return measure(FedSTClassifier(random_state=task.seed, **dict(task.options)), data)


def _timefl(task: Task, data: Dataset) -> Outcome:
    from tacit.fleet import DPTimeFLClassifier

    return measure(
        DPTimeFLClassifier(epsilon=_budget(task), random_state=task.seed, **dict(task.options)),
        data,
    )
