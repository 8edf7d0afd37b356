"""DP-TimeFL as published, with FedAvg and CDP-FL from the same weights on the same clients."""

from __future__ import annotations

import numpy as np

from tacit.arena.outcome import Outcome
from tacit.arena.task import Task
from tacit.arrays import Floats
from tacit.data import Dataset

_WITHOUT_NOISE = 100.0  # epsilon_0 of FedAvg, which adds no noise and does not use it


def run_published_fleet(task: Task, data: Dataset) -> Outcome:
    """Table II's settings; options: `variant`, `n_clients`, `preset`, any field of the settings.

    CDP-FL's clip norm is chosen on its training series unless the task names one.
    """
    from tacit.fleet.experiment import deal_out
    from tacit.fleet.learning.head import label_indices
    from tacit.fleet.published.central import choose_clip_norm
    from tacit.fleet.published.clients import client_data
    from tacit.fleet.published.settings import table_two
    from tacit.fleet.published.training import run_published

    options = dict(task.options)
    variant, n_clients = options.pop("variant", "dptimefl"), options.pop("n_clients", 100)
    deal = deal_out(data, split="iid", n_clients=n_clients, seed=task.seed)
    labels = label_indices(deal.y_train, data.classes)
    truth = label_indices(deal.y_test, data.classes)
    fleet = client_data(deal.X_train, labels, deal.client, n_clients=n_clients)
    settings = table_two(
        n_clients=n_clients, method=variant, epsilon_0=task.epsilon or _WITHOUT_NOISE, **options
    )
    n_classes = len(data.classes)
    if variant == "cdpfl" and "clip_norm" not in options:
        settings = choose_clip_norm(fleet, settings, n_classes=n_classes, seed=task.seed)
    run = run_published(fleet, settings, n_classes=n_classes, seed=task.seed)

    def accuracy(scores: Floats) -> float:
        return float(np.mean(scores.argmax(axis=1) == truth))

    linked = run.reidentification
    return Outcome(
        accuracy=accuracy(run.scores(deal.X_test)),
        guarantee=run.guarantee,
        leakage=None if linked is None else {"reidentification": float(linked)},
        details={
            "rounds": len(run.history),
            "stopped": run.stopped,
            "ended_by": run.ended_by,
            "weights": sum(value.numel() for value in run.weights.values()),
            "local_epochs": settings.local_epochs,
            "clip_norm": None if variant == "fedavg" else settings.clip_norm,
            "delta_limit": settings.delta_limit,
            "clients": n_clients,
            "chance": 1.0 / settings.clients_per_round,
            "nominal_delta": run.history[-1].delta if run.history else None,
            "accuracy_per_round": [accuracy(run.scores(deal.X_test, w)) for w in run.trajectory],
            "training_accuracy_per_round": [record.training_accuracy for record in run.history],
            "nominal_delta_per_round": [record.delta for record in run.history],
            "nominal_epsilon_per_round": [record.epsilon_t for record in run.history],
        },
    )
