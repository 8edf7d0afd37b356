"""Training settings of the sound fleet, compared on public data: held-out persons of WISDM, HHAR.

    python benchmarks/fleet_tuning.py [--seeds 0 1] [--clients 100] [--data WISDM HHAR]

Both sets come standardised with three channels. They are rebuilt as a phone reports: acceleration
without gravity, its change, and in total, in units of gravity. One line per setting: mean accuracy
over sets and draws of persons. UCIHAR takes no part.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
from scipy.signal import butter, sosfiltfilt

from tacit.data import Dataset, load_dataset
from tacit.fleet.clients import class_scores, feature_map, label_indices
from tacit.fleet.config import FleetPlan, Training, default_rounds, make_plan
from tacit.fleet.experiment import deal_out
from tacit.fleet.simulator import make_fleet, simulate

GRAVITY = 0.35  # units of gravity per standard deviation, about
HIGH_PASS = butter(3, 0.3 / 25.0, "high", output="sos")
VARIANTS: dict[str, dict[str, float]] = {
    "default": {},
    "unbalanced": {"balance": 0.0},
    "local ridge 0.03": {"local_ridge": 0.03},
    "local ridge 0.3": {"local_ridge": 0.3},
    "half the step": {"server_rate": 0.5},
    "twice the step": {"server_rate": 2.0},
}


def as_a_phone_reports(X: np.ndarray) -> np.ndarray:
    """Nine channels from three."""
    total = X * GRAVITY
    body = 0.6 * sosfiltfilt(HIGH_PASS, total, axis=2)
    return np.concatenate([body, 1.5 * np.gradient(total, axis=2), total], axis=1)


def rebuilt(name: str) -> Dataset:
    data = load_dataset(name)
    return replace(
        data,
        X_train=as_a_phone_reports(data.X_train),
        X_test=as_a_phone_reports(data.X_test),
    )


def varied(plan: FleetPlan, changes: dict[str, float]) -> FleetPlan:
    """The plan with other training settings; `server_rate` multiplies the default step."""
    values = dict(changes)
    if "server_rate" in values:
        values["server_rate"] *= plan.training.server_rate
    training: Training = replace(plan.training, **values)  # type: ignore[arg-type]
    return plan.with_training(training)


def accuracies(data: Dataset, n_clients: int, seed: int) -> dict[tuple[str, str], float]:
    deal = deal_out(data, split="subject", n_clients=n_clients, seed=seed)
    found, rows = {}, None
    for mechanism in ("distributed", "privunit"):
        plan = make_plan(
            classes=data.classes,
            n_channels=data.channels,
            length=data.length,
            mechanism=mechanism,
            n_clients=n_clients,
            n_rounds=default_rounds(mechanism=mechanism, n_clients=n_clients),
        )
        if rows is None:
            rows = [feature_map(plan).transform(X) for X in (deal.X_train, deal.X_test)]
        labels, truth = (label_indices(y, data.classes) for y in (deal.y_train, deal.y_test))
        for name, changes in VARIANTS.items():
            chosen = varied(plan, changes)
            fleet = make_fleet(
                rows[0],
                labels,
                deal.client,
                n_clients=n_clients,
                n_classes=len(data.classes),
                ridge=chosen.training.local_ridge,
            )
            run = simulate(fleet, chosen, rng=np.random.default_rng(seed))
            best = class_scores(rows[1], run.model.average).argmax(axis=1)
            found[mechanism, name] = float(np.mean(best == truth))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["WISDM", "HHAR"])
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    options = parser.parse_args()
    runs = [
        accuracies(rebuilt(name), options.clients, seed)
        for name in options.data
        for seed in options.seeds
    ]
    for mechanism, name in runs[0]:
        values = [run[mechanism, name] for run in runs]
        print(f"{mechanism:12} {name:18} {np.mean(values):.4f}  {np.round(values, 4).tolist()}")


if __name__ == "__main__":
    main()
