"""One evaluation of a fleet on a data set: split, train, test, and the baselines beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.data import Dataset, hold_out_subjects, split_clients
from tacit.data.scores import confusion
from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon, check_positive
from tacit.fleet.estimator import DPTimeFLClassifier
from tacit.fleet.learning.head import (
    HeadModel,
    class_scores,
    initial_model,
    label_indices,
)
from tacit.fleet.reports.linking import sound_rate
from tacit.fleet.reports.mechanisms import report_of, simulation_problem
from tacit.fleet.simulation.feature_rows import feature_rows
from tacit.fleet.simulation.fleet import Fleet, make_fleet
from tacit.fleet.table_two import batch_size_of
from tacit.system.progress import Progress, silent

Split = Literal["iid", "subject", "dirichlet"]
Rows = NDArray[np.int64]
_TEST_SHARE = 0.2  # the paper's Table II against Table III: 8400 of 10299 windows for training


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTask:
    """What to run; the same fields as the options of `tacit train timefl`."""

    n_clients: int = 100
    clients_per_round: int | None = None
    epsilon: float = 8.0
    delta: float | None = None
    mode: Literal["sound", "published"] = "sound"
    mechanism: Literal["privunit", "distributed"] = "privunit"
    split: Split = "iid"
    n_rounds: int | None = None
    k: float = 0.5
    preset: Literal["paper", "tuned"] = "paper"
    local_epochs: int | None = None
    batch_size: int | None = None
    network: Literal["paper", "light"] | None = None
    clip_norm: float | None = None
    proposals: tuple[float, ...] | None = None
    seed: int = 0
    baselines: bool = False
    checkpoint: str | None = None
    resume: bool = False
    out: str | None = None
    curves: bool = False

    def __post_init__(self) -> None:
        check_at_least(self.n_clients, 2, name="clients")
        check_epsilon(self.epsilon)
        if self.delta is not None:
            check_delta(self.delta)
        if self.n_rounds is not None:
            check_at_least(self.n_rounds, 1, name="rounds")
        if self.local_epochs is not None:
            check_at_least(self.local_epochs, 1, name="epochs")
        if self.batch_size is not None:
            check_at_least(self.batch_size, 1, name="batch size")
        if self.clip_norm is not None:
            check_positive(self.clip_norm, name="clip norm")
        if self.clients_per_round is not None:
            check_at_least(self.clients_per_round, 2, name="clients per round")
        if not 0.0 < self.k < 1.0:
            raise TacitError(f"k must lie strictly between 0 and 1, got {self.k!r}.")
        if self.out is not None and self.ends_without_guarantee:
            raise TacitError(
                f"--out saves a model with its guarantee, and {self.ends_without_guarantee}"
            )

    @property
    def ends_without_guarantee(self) -> str:
        """Why a sound run will state no guarantee, known before it begins; empty if it will."""
        asked = self.n_clients if self.clients_per_round is None else self.clients_per_round
        if self.mode != "sound":
            return ""
        return simulation_problem(self.mechanism, asked, lower="--clients-per-round")


@dataclass(frozen=True, slots=True)
class _Deal:
    """Training and test series, and the client of every training series."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.str_]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.str_]
    client: Rows
    how: str


def run_task(
    data: Dataset,
    task: FleetTask,
    *,
    progress: Progress = silent,
    note: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Train on the clients' series, test on series that no client holds, and report both.

    `note` is told before the training if it will end without a guarantee.

    Test labels are public evaluation data here; in a deployment nobody holds them. In published
    mode a data set that Table II names has its batch size, unless the task has one.
    """
    start = time.perf_counter()
    if task.mode == "published" and task.batch_size is None:
        task = replace(task, batch_size=batch_size_of(data.name, n_clients=task.n_clients))
    deal = deal_out(data, split=task.split, n_clients=task.n_clients, seed=task.seed)
    if note is not None and task.ends_without_guarantee:
        note(f"this run will state no guarantee: {task.ends_without_guarantee}")
    classifier = DPTimeFLClassifier(
        n_clients=task.n_clients,
        clients_per_round=task.clients_per_round,
        epsilon=task.epsilon,
        delta=task.delta,
        mode=task.mode,
        mechanism=task.mechanism,
        n_rounds=task.n_rounds,
        k=task.k,
        preset=task.preset,
        local_epochs=task.local_epochs,
        batch_size=task.batch_size,
        network=task.network,
        clip_norm=task.clip_norm,
        proposals=task.proposals,
        checkpoint=task.checkpoint,
        resume=task.resume,
        random_state=task.seed,
        progress=progress,
    )
    classifier.fit(deal.X_train, deal.y_train, client=deal.client)
    predicted = classifier.predict(deal.X_test)
    result: dict[str, Any] = {
        "accuracy": float(np.mean(predicted == deal.y_test)),
        "confusion": confusion(deal.y_test, predicted),
        "guarantee": classifier.guarantee_,
        "rounds": len(classifier.history_),
        "data": data.name,
        "mode": task.mode,
        "mechanism": task.mechanism if task.mode == "sound" else "laplace",
        "split": task.split,
        "evaluated_on": deal.how,
        "clients": task.n_clients,
        "seed": task.seed,
        "n_train": len(deal.y_train),
        "n_test": len(deal.y_test),
        "seconds": time.perf_counter() - start,
    }
    if task.out is not None:
        classifier.save(task.out)
        result["model"] = task.out
    result |= _details(classifier, task)
    if task.curves:
        result |= _curves(classifier, deal, task)
    if task.baselines:
        result["baselines"] = _baselines(classifier, deal, task, progress)
    return result


def deal_out(data: Dataset, *, split: Split, n_clients: int, seed: int) -> _Deal:
    """Split into training and test, and deal the training series to clients.

    subject: persons in the test set hold no client; the published split if it is by person,
    otherwise 30 % of the persons at random. iid and dirichlet: where the data set has persons,
    all series are pooled and a stratified fifth is held out, so that every person is on both
    sides; without persons the published split stands.
    """
    rng = np.random.default_rng([seed, 6])
    y = np.concatenate([data.y_train, data.y_test])
    n_train = len(data.y_train)
    persons = None
    if data.subject_train is not None and data.subject_test is not None:
        persons = np.concatenate([data.subject_train, data.subject_test])
    if split == "subject":
        test, how = _held_out_persons(persons, y, n_train, rng)
    elif persons is not None:
        test, how = _stratified(y, rng), "a stratified fifth of all pooled series"
    else:
        test, how = np.arange(len(y)) >= n_train, "the published test split"
    client = split_clients(
        y[~test],
        n_clients=n_clients,
        how=split,
        rng=rng,
        subject=None if persons is None else persons[~test],
    )
    return _Deal(_chosen(data, ~test), y[~test], _chosen(data, test), y[test], client, how)


def _chosen(data: Dataset, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Series of the pooled data set, of which no copy is made if they are one of its parts."""
    n_train = len(data.y_train)
    parts = [(data.X_train, rows[:n_train]), (data.X_test, rows[n_train:])]
    taken = [X if np.all(wanted) else X[wanted] for X, wanted in parts if np.any(wanted)]
    return taken[0] if len(taken) == 1 else np.concatenate(taken)


def _held_out_persons(
    persons: NDArray[Any] | None, y: NDArray[np.str_], n_train: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], str]:
    if persons is None:
        raise TacitError(
            "a split by subject needs a person per series and this data set has none; "
            "use --split iid or dirichlet."
        )
    published = np.arange(len(persons)) >= n_train
    if not set(persons[:n_train]) & set(persons[n_train:]):
        return published, "the published held-out persons"
    test = hold_out_subjects(y, persons, share=0.3, rng=rng, where="the data set")
    n_held_out, n_persons = len(np.unique(persons[test])), len(np.unique(persons))
    return test, f"{n_held_out} of {n_persons} persons, held out"


def _stratified(y: NDArray[np.str_], rng: np.random.Generator) -> NDArray[np.bool_]:
    test = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        test[rows[: max(1, round(_TEST_SHARE * len(rows)))]] = True
    return test


def _details(classifier: DPTimeFLClassifier, task: FleetTask) -> dict[str, Any]:
    if task.mode == "published":
        return {
            "nominal_epsilon": task.epsilon,
            "nominal_delta": classifier.history_[-1].delta if classifier.history_ else None,
            "reidentification": classifier.reidentification_,
            "stopped": classifier.run_.stopped,
            "ended_by": classifier.run_.ended_by,
            "preset": task.preset,
        }
    settings = classifier.plan_.settings
    return {
        "dimension": classifier.plan_.dimension,
        "local_epsilon": getattr(settings, "local_epsilon", None),
        "reports_per_round": [record.n_reports for record in classifier.history_],
        "epsilon_per_round": [record.epsilon_spent or None for record in classifier.history_],
    }


def _curves(classifier: DPTimeFLClassifier, deal: _Deal, task: FleetTask) -> dict[str, Any]:
    """What pictures need: accuracy after every round, and how well reports can be linked."""
    truth = label_indices(deal.y_test, tuple(classifier.classes_))

    def accuracy(scores: NDArray[np.float64]) -> float:
        return float(np.mean(scores.argmax(axis=1) == truth))

    if task.mode == "published":
        run = classifier.run_
        steps = [accuracy(run.scores(deal.X_test, weights)) for weights in run.trajectory]
        deltas = [record.delta for record in classifier.history_]
        return {"accuracy_per_round": steps, "nominal_delta_per_round": deltas}
    rows = feature_rows(classifier.plan_, deal.X_test)
    steps = [accuracy(class_scores(rows, weights)) for weights in classifier.averages_]
    fleet = _fleet_of(classifier, deal)
    start = initial_model(classifier.plan_)
    training = classifier.plan_.training
    directions = fleet.directions(np.arange(fleet.n_clients), start.weights, training)
    linked = sound_rate(directions, report_of(classifier.plan_))
    return {"accuracy_per_round": steps, "reidentification": linked}


def _fleet_of(classifier: DPTimeFLClassifier, deal: _Deal) -> Fleet:
    plan = classifier.plan_
    return make_fleet(
        feature_rows(plan, deal.X_train),
        label_indices(deal.y_train, plan.classes),
        deal.client,
        n_clients=int(deal.client.max()) + 1,
        n_classes=len(plan.classes),
    )


def _baselines(
    classifier: DPTimeFLClassifier, deal: _Deal, task: FleetTask, progress: Progress
) -> dict[str, float]:
    if task.mode == "published":
        return _published_baselines(deal, task, tuple(classifier.classes_), progress)
    return _sound_baselines(classifier, deal, progress)


def _sound_baselines(
    classifier: DPTimeFLClassifier, deal: _Deal, progress: Progress
) -> dict[str, float]:
    from tacit.fleet.simulation.baselines import train_central, train_fedavg

    plan = classifier.plan_
    fleet = _fleet_of(classifier, deal)
    rows = feature_rows(plan, deal.X_test)
    truth = label_indices(deal.y_test, plan.classes)

    def accuracy(model: HeadModel) -> float:
        return float(np.mean(class_scores(rows, model.average).argmax(axis=1) == truth))

    return {
        "fedavg": accuracy(train_fedavg(fleet, plan, progress=progress)),
        "central_dp": accuracy(train_central(fleet, plan, progress=progress)[0]),
    }


def _published_baselines(
    deal: _Deal, task: FleetTask, classes: tuple[str, ...], progress: Progress
) -> dict[str, float]:
    from tacit.fleet.published.central import choose_clip_norm
    from tacit.fleet.published.clients import client_data
    from tacit.fleet.published.settings import Method, table_two
    from tacit.fleet.published.training import run_published

    labels = label_indices(deal.y_train, classes)
    truth = label_indices(deal.y_test, classes)
    data = client_data(deal.X_train, labels, deal.client, n_clients=int(deal.client.max()) + 1)
    methods: dict[str, Method] = {"fedavg": "fedavg", "central_dp": "cdpfl"}
    found = {}
    for name, method in methods.items():
        config = table_two(
            n_clients=len(data.rows),
            preset=task.preset,
            method=method,
            epsilon_0=task.epsilon,
            delta_limit=task.delta,
            n_rounds=task.n_rounds,
            clients_per_round=task.clients_per_round,
            local_epochs=task.local_epochs,
            batch_size=task.batch_size,
            network=task.network,
        )
        if method == "cdpfl":
            config = choose_clip_norm(data, config, n_classes=len(classes), seed=task.seed)
        run = run_published(data, config, n_classes=len(classes), seed=task.seed, progress=progress)
        found[name] = float(np.mean(run.scores(deal.X_test).argmax(axis=1) == truth))
    return found
