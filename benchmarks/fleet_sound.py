"""Accuracy of the sound fleet at (8, 1e-5): both mechanisms, 100 and 1000 clients, two splits.

    python benchmarks/fleet_sound.py [--seeds 3] [--out results/fleet_sound.jsonl]

iid is the split of the paper; subject tests on persons who hold no client. FedAvg to convergence
and a trusted central server run beside on the same split, features and seed. Nothing is chosen by
test accuracy: the training settings are public constants fitted on WISDM and HHAR. One line per
run is appended; the summary gives the mean over seeds and the distance to FedAvg.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np

from tacit.arena.record import commit, versions
from tacit.cli.common import plain
from tacit.data import load_dataset
from tacit.fleet.experiment import FleetTask, run_task

# (split, clients, mechanism): accuracy that must be reached, or distance to FedAvg that must not.
FLOORS = {
    ("iid", 1000, "privunit"): 0.87,
    ("iid", 1000, "distributed"): 0.89,
    ("iid", 100, "privunit"): 0.85,
    ("iid", 100, "distributed"): 0.89,
}
GAPS = {"privunit": 0.05, "distributed": 0.03}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="UCIHAR")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/fleet_sound.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    data = load_dataset(options.data)
    found: dict[tuple[str, int, str], list[tuple[float, float]]] = defaultdict(list)
    for seed, split, clients in product(range(options.seeds), ("iid", "subject"), (100, 1000)):
        fedavg = float("nan")
        for mechanism in ("distributed", "privunit"):
            task = FleetTask(
                n_clients=clients,
                mechanism=mechanism,  # type: ignore[arg-type]
                split=split,  # type: ignore[arg-type]
                seed=seed,
                baselines=mechanism == "distributed",
            )
            start = time.perf_counter()
            result = run_task(data, task)
            fedavg = result.get("baselines", {}).get("fedavg", fedavg)
            line = {**plain(result), "whole_seconds": time.perf_counter() - start}
            line |= {"commit": commit(), "versions": versions()}
            with options.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            found[split, clients, mechanism].append((result["accuracy"], fedavg))
            print(
                f"{split} N={clients} {mechanism} seed {seed}: {result['accuracy']:.4f}", flush=True
            )
    return summary(found)


def summary(found: dict[tuple[str, int, str], list[tuple[float, float]]]) -> int:
    """Means over seeds against the targets; the exit code says whether all were reached."""
    missed = 0
    for key, values in found.items():
        split, _, mechanism = key
        accuracy, fedavg = np.mean(values, axis=0)
        good = accuracy >= FLOORS[key] if split == "iid" else fedavg - accuracy <= GAPS[mechanism]
        missed += not good
        print(
            f"{split:8} N={key[1]:5} {mechanism:12} {accuracy:.4f}  FedAvg {fedavg:.4f}  "
            f"below it {fedavg - accuracy:+.4f}  {'reached' if good else 'MISSED'}"
        )
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
