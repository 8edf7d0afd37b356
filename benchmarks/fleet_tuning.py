"""Training settings of the sound fleet, compared on held-out persons of public data.

    python benchmarks/fleet_tuning.py [--seeds 0 1] [--clients 100] [--as-they-come] [--split iid]

WISDM and HHAR come standardised with three channels. They are rebuilt as a phone reports:
acceleration without gravity, its change, and in total, in units of gravity. Of UCIHAR only the
published training part takes part, and a share of its persons is held out; `--split iid` holds out
a fifth of the series instead, of persons who hold clients. Nothing is released
here, so the noise is a seeded Gaussian of the mechanism's variance: a setting runs on the same
persons and the same noise as the default, which a run of more rounds sees in smaller parts.
Printed are the mean accuracy and the mean difference from the default with its standard error over
sets and seeds. One line per run is appended to the record. `distributed` takes about a second per
setting, set and seed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import butter, sosfiltfilt

from tacit.arena.record import commit
from tacit.data import Dataset, load_dataset
from tacit.features.feature_map import public_features
from tacit.fleet.experiment import deal_out
from tacit.fleet.learning.head import HeadModel, class_scores, initial_model, label_indices
from tacit.fleet.learning.rounds import server_step
from tacit.fleet.plan import FleetPlan, Training
from tacit.fleet.reports.calibration import default_rounds, make_plan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.simulation.simulator import Fleet, make_fleet

GRAVITY = 0.35  # units of gravity per standard deviation, about
HIGH_PASS = butter(3, 0.3 / 25.0, "high", output="sos")
FINEST = 4  # times the usual number of rounds: the finest parts of the noise
# `rounds` and `step` multiply the default. `last_step` is the last step over the first: the step
# falls linearly and its mean stays. `shrink` is taken off the weights in every round. `weights` are
# those of the features: statistics, bands, correlations, proportions.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "half the rounds": {"rounds": 0.5},
    "twice the rounds": {"rounds": 2.0},
    "four times the rounds": {"rounds": 4.0},
    "average of all rounds": {"averaged_share": 1.0},
    "average of the last quarter": {"averaged_share": 0.25},
    "average of the last tenth": {"averaged_share": 0.1},
    "last quarter, 1.2 times the step": {"averaged_share": 0.25, "step": 1.2},
    "step falls to a third": {"last_step": 1.0 / 3.0},
    "step falls to nothing": {"last_step": 0.0},
    "0.7 of the step": {"step": 0.7},
    "1.4 times the step": {"step": 1.4},
    "shrink by 0.01, 1.4 times the step": {"shrink": 0.01, "step": 1.4},
    "unbalanced": {"balance": 0.0},
    "last quarter, 1.2 times the step, balance 0.3": {
        "averaged_share": 0.25,
        "step": 1.2,
        "balance": 0.3,
    },
    "local ridge 0.03": {"local_ridge": 0.03},
    "local ridge 0.3": {"local_ridge": 0.3},
    "features weighted 1, 1, 1, 1": {"weights": (1.0, 1.0, 1.0, 1.0)},
    "features weighted 3, 2, 1, 1": {"weights": (3.0, 2.0, 1.0, 1.0)},
    "features weighted 1, 1, 0.5, 1": {"weights": (1.0, 1.0, 0.5, 1.0)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["WISDM", "HHAR"])
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--split", choices=("subject", "iid"), default="subject")
    parser.add_argument("--as-they-come", action="store_true", help="three channels, not nine")
    parser.add_argument("--mechanism", choices=("distributed", "privunit"), default="distributed")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=Path("results/fleet_tuning.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[float]] = {name: [] for name in options.variants}
    for line in runs(options):
        found[line["variant"]].append(line["accuracy"])
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
    for name, values in found.items():
        gain = np.subtract(values, found[options.variants[0]])
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        print(f"{name:36} {np.mean(values):.4f}  {gain.mean():+.4f} (standard error {error:.4f})")


def runs(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Every variant on every draw of persons of every set."""
    for name in options.data:
        data = prepared(name, as_they_come=options.as_they_come)
        tables = {
            weights: table(data, {} if weights is None else {"weights": weights})
            for weights in {VARIANTS[variant].get("weights") for variant in options.variants}
        }
        for seed in options.seeds:
            deal = deal_out(data, split=options.split, n_clients=options.clients, seed=seed)
            usual = planned(data, options.clients, options.mechanism)
            labels, truth = (label_indices(y, data.classes) for y in (deal.y_train, deal.y_test))
            rng = np.random.default_rng([seed, 7])
            noise = rng.standard_normal((FINEST * usual.n_rounds, usual.dimension))
            for variant in options.variants:
                changes = dict(VARIANTS[variant])
                rows = tables[changes.pop("weights", None)]
                plan = planned(data, options.clients, options.mechanism, changes.pop("rounds", 1.0))
                fleet = make_fleet(
                    np.array([rows[series.tobytes()] for series in deal.X_train]),
                    labels,
                    deal.client,
                    n_clients=options.clients,
                    n_classes=len(data.classes),
                    ridge=changes.get("local_ridge", plan.training.local_ridge),
                )
                model = train(fleet, plan, changes, noise)
                test = np.array([rows[series.tobytes()] for series in deal.X_test])
                best = class_scores(test, model.average).argmax(axis=1)
                yield {
                    "data": name,
                    "channels": data.channels,
                    "split": options.split,
                    "seed": seed,
                    "clients": options.clients,
                    "mechanism": options.mechanism,
                    "variant": variant,
                    "accuracy": float(np.mean(best == truth)),
                    "commit": commit(),
                }


def table(data: Dataset, weights: dict[str, Any]) -> dict[bytes, np.ndarray]:
    """The features of every series, by its bytes."""
    X = np.concatenate([data.X_train, data.X_test])
    features = public_features(n_channels=data.channels, length=data.length, **weights)
    return dict(zip((series.tobytes() for series in X), features.transform(X), strict=True))


def as_a_phone_reports(X: np.ndarray) -> np.ndarray:
    """Nine channels from three."""
    total = X * GRAVITY
    body = 0.6 * sosfiltfilt(HIGH_PASS, total, axis=2)
    return np.concatenate([body, 1.5 * np.gradient(total, axis=2), total], axis=1)


def prepared(name: str, *, as_they_come: bool) -> Dataset:
    """The set as it is compared on; every draw of persons comes from both its parts together."""
    data = load_dataset(name)
    if name == "UCIHAR":
        return training_persons(data)
    return data if as_they_come else rebuilt(data)


def training_persons(data: Dataset) -> Dataset:
    """The published training part alone, cut so that all persons are on both sides."""
    X, y, subject = data.X_train, data.y_train, data.subject_train
    assert subject is not None
    return replace(
        data,
        X_train=X[::2], y_train=y[::2], subject_train=subject[::2],
        X_test=X[1::2], y_test=y[1::2], subject_test=subject[1::2],
    )  # fmt: skip


def rebuilt(data: Dataset) -> Dataset:
    return replace(
        data,
        X_train=as_a_phone_reports(data.X_train),
        X_test=as_a_phone_reports(data.X_test),
    )


def planned(data: Dataset, n_clients: int, mechanism: str, rounds: float = 1.0) -> FleetPlan:
    usual = default_rounds(mechanism=mechanism, n_clients=n_clients)
    return make_plan(
        classes=data.classes,
        n_channels=data.channels,
        length=data.length,
        mechanism=mechanism,
        n_clients=n_clients,
        n_rounds=round(rounds * usual),
    )


def train(fleet: Fleet, plan: FleetPlan, changes: dict[str, float], noise: np.ndarray) -> HeadModel:
    """All rounds of the plan, every client in each, with these settings changed."""
    settings = dict(changes)
    step = settings.pop("step", 1.0) * plan.training.server_rate
    last, shrink = settings.pop("last_step", 1.0), settings.pop("shrink", 0.0)
    training: Training = replace(plan.training, **settings)  # type: ignore[arg-type]
    model, everybody = initial_model(plan), np.arange(fleet.n_clients)
    for number, drawn in enumerate(per_round(noise, plan)):
        done = (number + 0.5) / plan.n_rounds
        rate = step * (1.0 + (last - 1.0) * done) / (0.5 * (1.0 + last))
        now = plan.with_training(replace(training, server_rate=rate))
        mean = fleet.directions(everybody, model, now).mean(axis=0) + drawn
        model = replace(model, weights=(1.0 - shrink) * model.weights)
        model = server_step(model, mean, now)
    return model


def per_round(noise: np.ndarray, plan: FleetPlan) -> np.ndarray:
    """The noise of every round's mean: sums of the finest parts, scaled to the plan's."""
    parts = noise.reshape(plan.n_rounds, -1, plan.dimension)
    norm = report_of(plan).noise_norm()
    scale = norm / np.sqrt(plan.dimension * parts.shape[1])
    return scale * parts.sum(axis=1)


if __name__ == "__main__":
    main()
