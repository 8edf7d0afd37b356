"""Clients who choose for themselves: a local epsilon each (sound), or a k each (published).

    python benchmarks/fleet_personal.py [--data HHAR] [--out FILE]

Sound: half of 100 clients report with the local epsilon that a crowd of 50 can afford at a total of
(8, 1e-5), the others with half of it. Everybody's total is accounted among equals. Published: k is
.3, .5 or .7 by client, at the nominal epsilon 8 of Table II; nothing is guaranteed. Both beside the
run in which all clients choose alike.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arena.record import commit, versions
from tacit.data import load_dataset
from tacit.fleet.estimator import DPTimeFLClassifier
from tacit.fleet.experiment import deal_out
from tacit.fleet.plan import PrivUnitSettings
from tacit.fleet.reports.calibration import default_rounds, make_plan

N, EPSILON, DELTA = 100, 8.0, 1e-5


def run(deal: Any, **options: Any) -> tuple[DPTimeFLClassifier, float, float]:
    start = time.process_time()
    classifier = DPTimeFLClassifier(n_clients=N, epsilon=EPSILON, random_state=0, **options)
    classifier.fit(deal.X_train, deal.y_train, client=deal.client)
    accuracy = float(np.mean(classifier.predict(deal.X_test) == deal.y_test))
    return classifier, round(accuracy, 4), round(time.process_time() - start, 1)


def crowd_epsilon(classes: tuple[str, ...], n_channels: int, length: int) -> float:
    """What every client of a crowd of half the fleet may spend per report."""
    plan = make_plan(
        classes=classes, n_channels=n_channels, length=length, mechanism="privunit",
        n_clients=N // 2, epsilon=EPSILON, delta=DELTA,
        n_rounds=default_rounds(mechanism="privunit", n_clients=N),
    )  # fmt: skip
    assert isinstance(plan.settings, PrivUnitSettings)
    return plan.settings.local_epsilon


def sound(data: Any, deal: Any) -> dict[str, Any]:
    most = crowd_epsilon(data.classes, data.channels, data.length)
    chosen = np.where(np.arange(N) < N // 2, most, most / 2.0)
    personal, accuracy, seconds = run(deal, local_epsilon=tuple(chosen))
    _, alike, _ = run(deal)
    return {
        "what": "local epsilon per client, privunit",
        "local_epsilons": [round(most, 4), round(most / 2.0, 4)],
        "client_totals": sorted({round(float(e), 4) for e in personal.client_epsilon_}),
        "accuracy": accuracy,
        "accuracy_all_alike": alike,
        "processor_seconds": seconds,
    }


def published(data: Any, deal: Any) -> dict[str, Any]:
    values = tuple(float(k) for k in np.array([0.3, 0.5, 0.7])[np.arange(N) % 3])
    options: dict[str, Any] = {"mode": "published", "n_rounds": 5}
    _, accuracy, seconds = run(deal, k=values, **options)
    _, alike, _ = run(deal, k=0.5, **options)
    return {
        "what": "k per client, published mode, 5 rounds, nothing guaranteed",
        "k": [0.3, 0.5, 0.7],
        "accuracy": accuracy,
        "accuracy_all_alike": alike,
        "processor_seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="HHAR")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    data = load_dataset(options.data)
    deal = deal_out(data, split="iid", n_clients=N, seed=0)
    for measure in (sound, published):
        line = {**measure(data, deal), "data": options.data, "clients": N, "split": "iid"}
        text = json.dumps({**line, "commit": commit(), "versions": versions()})
        print(text, flush=True)
        if options.out is not None:
            with options.out.open("a") as file:
                file.write(text + "\n")


if __name__ == "__main__":
    main()
