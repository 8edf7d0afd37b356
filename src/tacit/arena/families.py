"""The three families and the two bounds (majority, ceiling) as methods of the comparison."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arena.outcome import Method, Outcome, measure
from tacit.arena.published_fleet import run_published_fleet
from tacit.arena.repeated_releases import class_bounds, measure_releases
from tacit.arena.task import Task
from tacit.data import Dataset, split_parties
from tacit.errors import TacitError, check_at_least
from tacit.guarantee import DpGuarantee, Unprotected

if TYPE_CHECKING:
    from numpy.typing import NDArray


_N_PARTIES = 3
_TWIN = (
    "the plaintext twin of the federation, for its accuracy: the secure run gives the same model "
    "up to fixed-point rounding, this run protected nothing"
)
_CURVES = (
    "rounds", "split", "evaluated_on", "clients", "mode", "mechanism", "baselines", "stopped",
    "accuracy_per_round", "epsilon_per_round", "local_epsilon", "nominal_delta",
    "nominal_delta_per_round", "reidentification",
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


def _softshape_published(task: Task, data: Dataset) -> Outcome:
    """Noise at training and at test; the options are the network's settings."""
    from tacit.local.softshape.leakage import measure_leakage
    from tacit.local.softshape.published import train_published
    from tacit.local.softshape.settings import SoftShapeSettings

    start = time.perf_counter()
    codes = np.searchsorted(sorted(data.classes), data.y_train)
    trained = train_published(
        data.X_train,
        codes,
        len(data.classes),
        epsilon=task.epsilon,
        settings=SoftShapeSettings(**dict(task.options)),
        seed=task.seed,
    )
    details = {
        "train_seconds": round(time.perf_counter() - start, 3),
        **class_bounds(data, epsilon=task.epsilon),
    }
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


def _fedst(task: Task, data: Dataset) -> Outcome:
    options = dict(task.options)
    if options.pop("engine", "secure") == "twin":
        return _fedst_twin(data, seed=task.seed, **options)
    from tacit.silo import FedSTClassifier

    classifier = FedSTClassifier(random_state=task.seed, **options)
    outcome = measure(classifier, data)
    history = classifier.history_
    spent = {
        "search_seconds": history["seconds"].get("search"),
        "n_examined": history["n_examined"],
        "bytes_sent": history["bytes_sent"],
    }
    return replace(outcome, details={**outcome.details, **spent})


def _fedst_twin(data: Dataset, *, seed: int, scope: str, **options: Any) -> Outcome:
    """The model that the federation gives, computed without it: minutes become seconds.

    The split into three parties is that of the estimator's default, equal and stratified.
    """
    from tacit.silo.fedst.plaintext import fit_alone, fit_pooled
    from tacit.silo.fedst.settings import Settings
    from tacit.silo.model import trained_model
    from tacit.silo.secure.session import LocalInputs

    start = time.perf_counter()
    party = split_parties(data.y_train, n_parties=_N_PARTIES, rng=np.random.default_rng(seed))
    codes = np.array([data.classes.index(label) for label in data.y_train], dtype=np.intp)
    settings = Settings(scope=scope, seed=seed, **options)

    def inputs_of(rows: NDArray[np.bool_]) -> LocalInputs:
        return LocalInputs(X=data.X_train[rows], y=codes[rows], private={"seed": seed})

    n_classes = len(data.classes)
    if scope in ("local", "global"):
        own = inputs_of(party == 0 if scope == "local" else np.ones(len(party), dtype=bool))
        result = fit_alone(settings, own, n_classes=n_classes)
    else:
        owners = [inputs_of(party == rank) for rank in range(_N_PARTIES)]
        own, result = owners[0], fit_pooled(settings, owners, n_classes=n_classes)
    model = trained_model(result.arrays, own=own.X, settings=settings, n_classes=n_classes)
    predicted = np.asarray(data.classes)[model.probabilities(data.X_test[:, 0]).argmax(axis=1)]
    return Outcome(
        accuracy=float(np.mean(predicted == data.y_test)),
        guarantee=Unprotected(reason=_TWIN),
        details={"engine": "plaintext twin", "train_seconds": time.perf_counter() - start},
    )


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


FAMILIES: dict[str, Method] = {
    "majority": _majority,
    "ceiling": _ceiling,
    "softshape-published": _softshape_published,
    "softshape-label": _softshape_sound,
    "softshape-place": _softshape_sound,
    "softshape-vector": _softshape_sound,
    "softshape-shapes": _softshape_sound,
    "fedst": _fedst,
    "timefl": _timefl,
    "timefl-published": run_published_fleet,
}
