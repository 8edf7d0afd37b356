"""What a method gives back: an accuracy that never comes without its guarantee."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arena.task import Task
from tacit.data import Dataset
from tacit.guarantee import Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a method gave; it cannot exist without its guarantee."""

    accuracy: float
    guarantee: Guarantee
    leakage: dict[str, float] | None = None
    details: dict[str, Any] = field(default_factory=dict)


Method = Callable[[Task, Dataset], Outcome]


def measure(classifier: Any, data: Dataset, *, guarantee: Guarantee | None = None) -> Outcome:
    """Fit and predict; `guarantee` is for classifiers that do not state one themselves."""
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
