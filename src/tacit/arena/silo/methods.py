"""FedST as methods of the comparison: on real processes or by the twin, and under contracts."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.arena.outcome import Method, Outcome, measure
from tacit.arena.task import Task
from tacit.data import Dataset

SHARES = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))
NEVER = 1e6  # seconds: a contract that does not end a search
KEPT_WITHIN = 0.1  # of the contract, or one batch


def run_fedst(task: Task, data: Dataset) -> Outcome:
    """One FedST model; with the option engine="twin" the same one, computed without a federation.

    Secure and twin runs of one seed have the same split, candidates and public choices.
    """
    from tacit.arena.silo.twin import FedSTTwin
    from tacit.silo import FedSTClassifier

    options = dict(task.options)
    twin = options.pop("engine", "secure") == "twin"
    classifier = (FedSTTwin if twin else FedSTClassifier)(random_state=task.seed, **options)
    outcome = measure(classifier, data)
    engine = "plaintext twin" if twin else "real processes"
    details = {**outcome.details, "engine": engine, **_predictions(classifier, data)}
    if task.suite == "fedst-secure":
        chosen = [f"{s.series}:{s.start}:{s.length}" for s in classifier.shapelets_]
        details["shapelets"] = " ".join(chosen)
    if not twin:
        details |= _what_it_cost(classifier.history_)
    return replace(outcome, details=details)


def _predictions(classifier: Any, data: Dataset) -> dict[str, str]:
    """A fingerprint: equal only if two runs classify every test series alike."""
    labels = "\n".join(str(label) for label in classifier.predict(data.X_test))
    return {"predictions": hashlib.sha256(labels.encode()).hexdigest()[:16]}


def _what_it_cost(history: dict[str, Any]) -> dict[str, Any]:
    seconds, compiling = history["seconds"], history["stages"].get("compile_seconds", {})
    search = seconds.get("search")
    without = None if search is None else round(search - compiling.get("search", 0.0), 3)
    return {
        "search_seconds": search,
        "search_seconds_without_compiling": without,
        "stage_seconds": seconds,
        "n_examined": history["n_examined"],
        "bytes_sent": history["bytes_sent"],
        "bytes_sent_by_party": history.get("bytes_sent_by_party"),
        "rounds": history.get("rounds"),
    }


def run_contracts(task: Task, data: Dataset) -> Outcome:
    """The full search, then one search under each contract of 10 to 90 % of its time (Fig. 10).

    All times count from the first share to the opened indices. A second full search, after the
    others, shows how steady the machine was.
    """
    options = dict(task.options)
    full, model = _searched(data, NEVER, seed=task.seed, **options)
    contracts = []
    for share in SHARES:
        contract = round(share * full["real_seconds"], 3)
        found, _ = _searched(data, contract, seed=task.seed, **options)
        off = abs(found["real_seconds"] - contract)
        kept = bool(off <= max(KEPT_WITHIN * contract, found["longest_batch"]))
        contracts.append({"share": share, "contract": contract, **found, "kept": kept})
    again, _ = _searched(data, NEVER, seed=task.seed, **options)
    details = {"full": full, "again": again, "contracts": contracts}
    return Outcome(accuracy=full["accuracy"], guarantee=model.guarantee_, details=details)


def _searched(
    data: Dataset, contract: float, *, seed: int, **options: Any
) -> tuple[dict[str, Any], Any]:
    from tacit.silo import FedSTClassifier

    model = FedSTClassifier(time_contract=contract, random_state=seed, **options)
    model.fit(data.X_train, data.y_train)
    history = model.history_
    clock, ends = (history["stages"][name] for name in ("contract", "batch_ends"))
    found = {
        "real_seconds": history["seconds"]["search"],
        "n_examined": history["n_examined"],
        "n_batches": len(ends),
        "longest_batch": round(float(max([clock["mean_batch"], *np.diff(ends)])), 4),
        "accuracy": round(float(model.score(data.X_test, data.y_test)), 4),
    }
    return found, model


SILO_METHODS: dict[str, Method] = {"fedst": run_fedst, "fedst-contract": run_contracts}
