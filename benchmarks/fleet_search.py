"""Learning rules of the sound fleet, compared on training parts split by person.

    python benchmarks/fleet_search.py [--seeds 10 11 12 13] [--clients 100 1000] [--out FILE]

Only the published training parts take part: 30 % of their persons are held out. Nothing is released,
so the noise is a seeded Gaussian of the variance that `distributed` would have, the same for all
rules. `before` is unit directions, the step by the norm of the noise, the average of the last half
and fine features; `now` is what `make_plan` gives. Printed is the mean difference with its standard
error over sets and draws; one line per run is appended to the record.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arena.record import commit
from tacit.data import Dataset, hold_out_subjects, load_dataset, split_clients
from tacit.fleet.learning.head import HeadModel, class_scores, initial_model, label_indices
from tacit.fleet.learning.rounds import server_step
from tacit.fleet.plan import FleetPlan, Training
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.simulation.feature_rows import feature_rows
from tacit.fleet.simulation.fleet import Fleet, make_fleet, plain_sum

SETS, EPSILONS = ("UCIHAR", "WISDM", "HHAR"), (8.0, 3.0, 1.0)


def before(plan: FleetPlan) -> FleetPlan:
    """The rule that was replaced."""
    rate = min(60.0, 10.0 * report_of(plan).noise_norm() ** -1.5)
    return replace(plan, feature_kind="fine", training=Training(server_rate=rate, clip_norm=0.0))


def rules(plan: FleetPlan) -> dict[str, FleetPlan]:
    return {
        "before": before(plan),
        "now": plan,
        "now, fine": replace(plan, feature_kind="fine"),
        "now, coarse": replace(plan, feature_kind="coarse"),
        "now, unit": plan.with_training(replace(plan.training, clip_norm=0.0)),
        "now, last half": plan.with_training(replace(plan.training, averaged_share=0.5)),
    }


def trained(fleet: Fleet, plan: FleetPlan, rng: np.random.Generator) -> HeadModel:
    sigma = report_of(plan).noise_norm() / np.sqrt(plan.dimension)
    model, everybody = initial_model(plan), np.arange(fleet.n_clients)
    for _ in range(plan.n_rounds):
        total = fleet.total(everybody, model.weights, plan.training, plain_sum)
        noise = sigma * rng.standard_normal(plan.dimension)
        model = server_step(model, total / fleet.n_clients + noise, plan)
    return model


def runs(data: Dataset, n_clients: int, seed: int) -> Iterator[dict[str, Any]]:
    X, y, subject = data.X_train, data.y_train, data.subject_train
    assert subject is not None
    rng = np.random.default_rng([seed, 77])
    test = hold_out_subjects(y, subject, share=0.3, rng=rng, where=data.name)
    client = split_clients(
        y[~test], n_clients=n_clients, how="subject", rng=rng, subject=subject[~test]
    )
    for epsilon in EPSILONS:
        plan = make_plan(
            classes=data.classes, n_channels=data.channels, length=data.length,
            mechanism="distributed", n_clients=n_clients, epsilon=epsilon, n_rounds=80,
        )  # fmt: skip
        labels, truth = (label_indices(part, plan.classes) for part in (y[~test], y[test]))
        for rule, changed in rules(plan).items():
            fleet = make_fleet(
                feature_rows(changed, X[~test]), labels, client,
                n_clients=n_clients, n_classes=len(plan.classes),
            )  # fmt: skip
            model = trained(fleet, changed, np.random.default_rng([seed, 78]))
            best = class_scores(feature_rows(changed, X[test]), model.average).argmax(axis=1)
            yield {
                "data": data.name,
                "clients": n_clients,
                "epsilon": epsilon,
                "seed": seed,
                "rule": rule,
                "accuracy": round(float(np.mean(best == truth)), 4),
                "commit": commit(),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12, 13])
    parser.add_argument("--out", type=Path, default=Path("fleet_search.jsonl"))
    options = parser.parse_args()
    found = []
    for n_clients, name, seed in product(options.clients, SETS, options.seeds):
        for line in runs(load_dataset(name), n_clients, seed):
            found.append(line)
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
    for n_clients, epsilon in product(options.clients, EPSILONS):
        cell = [r for r in found if (r["clients"], r["epsilon"]) == (n_clients, epsilon)]
        reference = np.array([r["accuracy"] for r in cell if r["rule"] == "now"])
        for rule in dict.fromkeys(r["rule"] for r in cell):
            gain = np.array([r["accuracy"] for r in cell if r["rule"] == rule]) - reference
            error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
            mean = reference.mean() + gain.mean()
            print(
                f"{n_clients:5} {epsilon:3g} {rule:16} {mean:.4f} {gain.mean():+.4f} ({error:.4f})"
            )


if __name__ == "__main__":
    main()
