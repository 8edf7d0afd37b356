"""How a simulated fleet grows: processor seconds, memory and bytes by the number of clients.

    python benchmarks/fleet_growth.py [--clients 1000 10000 100000] [--out FILE]

Every size runs in a process of its own, so that its peak memory is its own. Clients hold eight
windows each, drawn with replacement from UCIHAR's training part; 80 rounds at (8, 1e-6).
A round of 10,000 clients must take at most one processor second, and 100,000 clients at most 2 GB.
The last lines are what a million clients would take by the unit costs, in one process or on a
cluster: rounds grow with the clients, rows with the series.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arena.record import commit, versions
from tacit.data import load_dataset
from tacit.fleet.learning.clients import client_direction
from tacit.fleet.learning.head import feature_map, initial_model, label_indices
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import REPORTS, report_of
from tacit.fleet.simulation.fleet import make_fleet
from tacit.noise import SYSTEM_NOISE

WINDOWS, ROUNDS, DELTA = 8, 3, 1e-6
MILLION = 1_000_000


def planned(mechanism: str, n_clients: int, classes: tuple[str, ...]) -> FleetPlan:
    return make_plan(
        classes=classes, n_channels=9, length=128, mechanism=mechanism,
        n_clients=n_clients, delta=min(DELTA, 0.1 / n_clients), n_rounds=80,
    )  # fmt: skip


def one_size(mechanism: str, n_clients: int) -> dict[str, Any]:
    """Seconds and memory of whole rounds, and what one client computes and sends."""
    data = load_dataset("UCIHAR")
    plan = planned(mechanism, n_clients, data.classes)
    labels = label_indices(data.y_train, plan.classes)
    rows = feature_map(plan).transform(data.X_train)
    before = _peak_mb()
    pick = np.random.default_rng(0).integers(0, len(rows), n_clients * WINDOWS)
    client = np.arange(n_clients * WINDOWS) % n_clients
    fleet = make_fleet(
        rows, labels[pick], client, n_clients=n_clients, n_classes=len(plan.classes), series=pick
    )
    report, model = report_of(plan), initial_model(plan)
    start = time.process_time()
    for _ in range(ROUNDS):
        summed = partial(report.block_total, source=SYSTEM_NOISE)
        total = fleet.total(np.arange(n_clients), model.weights, plan.training, summed)
        report.released_mean(total, n_clients, source=SYSTEM_NOISE)
    return {
        "mechanism": mechanism,
        "clients": n_clients,
        "processor_seconds_a_round": round((time.process_time() - start) / ROUNDS, 3),
        "peak_mb": round(_peak_mb()),
        "peak_mb_before_the_fleet": round(before),
        "bytes_up_per_client_and_round": report.message_bytes + report.helper_bytes,
        "bytes_down_per_client_and_round": 8 * (3 * plan.dimension + 2),
        "client_processor_seconds": _client_seconds(plan, data.X_train[:WINDOWS], data.y_train),
    }


def _client_seconds(plan: FleetPlan, X: Any, y: Any) -> float:
    """One client's features, direction and randomized report, without its encryption."""
    report, model = report_of(plan), initial_model(plan)
    times = []
    for _ in range(5):
        start = time.process_time()
        direction = client_direction(model, X, y[: len(X)], plan)
        report.randomize(direction[None, :], source=SYSTEM_NOISE)
        times.append(time.process_time() - start)
    return round(min(times), 4)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def a_million(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest measured size, scaled."""
    largest = max(lines, key=lambda line: line["clients"])
    scale = MILLION / largest["clients"]
    grown = largest["peak_mb"] - largest["peak_mb_before_the_fleet"]
    return {
        "mechanism": largest["mechanism"],
        "clients": MILLION,
        "by_unit_costs": True,
        "processor_seconds_a_round": round(largest["processor_seconds_a_round"] * scale, 1),
        "peak_mb": round(largest["peak_mb_before_the_fleet"] + grown * scale),
        "gigabytes_up_a_round": round(largest["bytes_up_per_client_and_round"] * MILLION / 1e9, 2),
        "distinct_rows_gb": round(MILLION * WINDOWS * 392 * 8 / 1e9, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--out", type=Path, help="append the lines to this file")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_size(options.one[0], int(options.one[1]))))
        return 0
    too_much = False
    for mechanism in REPORTS:
        lines = []
        for n_clients in options.clients:
            command = [sys.executable, __file__, "--one", mechanism, str(n_clients)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            lines.append(json.loads(done.stdout))
            _write(lines[-1], options.out)
            seconds = lines[-1]["processor_seconds_a_round"] * 10_000 / max(n_clients, 10_000)
            too_much |= seconds > 1.0 or lines[-1]["peak_mb"] > 2048
        _write(a_million(lines), options.out)
    return int(too_much)


def _write(line: dict[str, Any], out: Path | None) -> None:
    text = json.dumps({**line, "commit": commit(), "versions": versions()})
    print(text, flush=True)
    if out is not None:
        with out.open("a") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
