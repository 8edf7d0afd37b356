"""One evaluation of the hybrid: clients train, and devices release series of others."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tacit.data import Dataset
from tacit.data.scores import confusion
from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon
from tacit.fleet.experiment import Split, deal_out
from tacit.fleet.reports.mechanisms import simulation_problem
from tacit.guarantee import DpGuarantee
from tacit.hybrid.bridge import RECOGNITION
from tacit.hybrid.estimator import DPHybridClassifier
from tacit.local.releases.channel import accuracy_ceiling
from tacit.system.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridTask:
    """What to run; the same fields as the options of `tacit train hybrid`."""

    n_clients: int = 100
    epsilon: float = 8.0
    delta: float = 1e-5
    release_epsilon: float = 5.0
    mechanism: Literal["privunit", "distributed"] = "distributed"
    split: Split = "iid"
    n_rounds: int | None = None
    recognition: float = RECOGNITION
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(self.n_clients, 2, name="clients")
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_epsilon(self.release_epsilon, name="release-epsilon")
        if self.n_rounds is not None:
            check_at_least(self.n_rounds, 1, name="rounds")
        problem = simulation_problem(self.mechanism, self.n_clients, lower="--clients")
        if problem:
            raise TacitError(f"a hybrid needs a guarantee, and {problem}")


def run_task(
    data: Dataset, task: HybridTask, *, out: Path | None = None, progress: Progress = silent
) -> dict[str, Any]:
    """Train on the clients' series, then release every test series once and classify that.

    Test labels are public evaluation data here; in a deployment nobody holds them.
    """
    start = time.perf_counter()
    deal = deal_out(data, split=task.split, n_clients=task.n_clients, seed=task.seed)
    classifier = DPHybridClassifier(
        task.n_clients,
        task.epsilon,
        task.delta,
        task.release_epsilon,
        mechanism=task.mechanism,
        n_rounds=task.n_rounds,
        recognition=task.recognition,
        random_state=task.seed,
        progress=progress,
    )
    classifier.fit(deal.X_train, deal.y_train, client=deal.client)
    _, counts = np.unique(deal.y_test, return_counts=True)
    read = classifier.predict(deal.X_test)
    result: dict[str, Any] = {
        "accuracy": float(np.mean(read == deal.y_test)),
        "confusion": confusion(deal.y_test, read),
        "clean_accuracy": float(np.mean(classifier.device_labels(deal.X_test) == deal.y_test)),
        "ceiling": accuracy_ceiling(counts, epsilon=task.release_epsilon),
        "guarantee": guarantees(classifier),
        "rounds": len(classifier.history_),
        "data": data.name,
        "mechanism": task.mechanism,
        "split": task.split,
        "evaluated_on": deal.how,
        "clients": task.n_clients,
        "recognition": task.recognition,
        "seed": task.seed,
        "n_test": len(deal.y_test),
        "seconds": time.perf_counter() - start,
    }
    if out is not None:
        classifier.save(out)
        result["bundle"] = out
    return result


def guarantees(classifier: DPHybridClassifier) -> dict[str, DpGuarantee]:
    """For clients that train, for series that are released, and for who does both once."""
    return {
        "training": classifier.training_guarantee_,
        "release": classifier.guarantee_,
        "both": classifier.composed_guarantee(1),
    }
