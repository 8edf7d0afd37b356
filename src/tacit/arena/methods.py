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
    from tacit.arena.families import FAMILIES
    from tacit.arena.rivals import RIVALS, run_rival

    return {**dict.fromkeys(RIVALS, run_rival), **FAMILIES}


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
