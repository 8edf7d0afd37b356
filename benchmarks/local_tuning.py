"""Settings of the SoftShape network compared on held-out series of TRAIN splits alone.

    TACIT_DATA=data python benchmarks/local_tuning.py [--seeds 3] [--epsilon 0.1] [--only base hard]

Ten UCR sets that no benchmark of this family reports. From the TRAIN split of each, 40 or 120
series are drawn for training (both, where half of the split allows it); up to 400 others judge.
No TEST split is read. One JSON line per task, seed and setting is appended to
results/local_tuning.jsonl; those that are there are not run again. The table at the end gives each
setting's mean accuracy, its difference from the first setting over the same tasks and seeds with
the standard error over tasks, and its processor time as a ratio.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tacit.arena.record import commit
from tacit.data import load_dataset
from tacit.local.softshape.published import train_published
from tacit.local.softshape.settings import SoftShapeSettings

SETS = (
    "SwedishLeaf", "FreezerRegularTrain", "TwoPatterns", "ECG5000", "Strawberry", "OSULeaf",
    "MedicalImages", "Ham", "Wafer", "FacesUCR",
)  # fmt: skip
SIZES = (40, 120)
MOST_JUDGES = 400
SETTINGS: dict[str, dict[str, Any]] = {
    "base": {},
    "no-moe": {"use_moe": False},
    "hard": {"soft": False},
    "expert_dim=64": {"expert_dim": 64},
    "expert_dim=128": {"expert_dim": 128},
    "n_experts=8": {"n_experts": 8},
    "top_k=2": {"top_k": 2},
    "steps=250": {"steps": 250},
    "overlap=4": {"patch_overlap": 4},
    "overlap=4, steps=400": {"patch_overlap": 4, "steps": 400},
    "embed_dim=96": {"embed_dim": 96},
    "basis_dim=32": {"basis_dim": 32},
    "expert_dim=16": {"expert_dim": 16},
    "rho=.25": {"rho": 0.25},
    "rho=.5": {"rho": 0.5},
    "hard, rho=.25": {"rho": 0.25, "soft": False},
    "hard, rho=.5": {"rho": 0.5, "soft": False},
    "no-moe, rho=.5": {"rho": 0.5, "use_moe": False},
    "experts 16, bottleneck 16": {"expert_dim": 16, "bottleneck_dim": 16},
    "bottleneck=16": {"bottleneck_dim": 16},
    "batch=12, steps=400": {"batch_size": 12, "steps": 400},
    "batch=24, steps=200": {"batch_size": 24, "steps": 200},
}


def tasks() -> Iterator[tuple[str, int]]:
    """Data sets and training sizes."""
    for name in SETS:
        n = len(load_dataset(name).X_train)
        yield from ((name, size) for size in SIZES if size <= n // 2)


def run(name: str, size: int, seed: int, epsilon: float, changes: dict[str, Any]) -> dict[str, Any]:
    """Train on `size` series of TRAIN, judge on others of TRAIN, with the noise on."""
    data = load_dataset(name)
    codes = np.unique(data.y_train, return_inverse=True)[1]
    rows = np.random.default_rng([seed, size]).permutation(len(codes))
    train, judges = rows[:size], rows[size : size + MOST_JUDGES]
    start = time.process_time()
    trained = train_published(
        data.X_train[train],
        codes[train],
        len(data.classes),
        epsilon=epsilon,
        settings=replace(SoftShapeSettings(), **changes),
        seed=seed,
    )
    seconds = time.process_time() - start
    predicted = trained.predict_scores(data.X_train[judges]).argmax(axis=1)
    return {"accuracy": float(np.mean(predicted == codes[judges])), "cpu_seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--only", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--out", type=Path, default=Path("results/local_tuning.jsonl"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = read(given.out)
    for seed in range(given.seeds):
        for name, size in tasks():
            for setting in given.only:
                key = (name, size, seed, given.epsilon, setting)
                if key in lines:
                    continue
                found = run(name, size, seed, given.epsilon, SETTINGS[setting])
                lines[key] = {
                    "set": name, "size": size, "seed": seed, "epsilon": given.epsilon,
                    "setting": setting, **found, "commit": commit(),
                }  # fmt: skip
                with given.out.open("a") as file:
                    file.write(json.dumps(lines[key]) + "\n")
            print(f"seed {seed} {name} {size}", file=sys.stderr, flush=True)
    report([line for line in lines.values() if line["epsilon"] == given.epsilon], given.only)


def read(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The lines that are there already."""
    rows = [json.loads(row) for row in path.read_text().splitlines()] if path.exists() else []
    return {(r["set"], r["size"], r["seed"], r["epsilon"], r["setting"]): r for r in rows}


def report(lines: list[dict[str, Any]], settings: list[str]) -> None:
    """The table of means and paired differences."""
    by_setting: dict[str, dict[tuple[str, int, int], dict[str, Any]]] = defaultdict(dict)
    for line in lines:
        by_setting[line["setting"]][line["set"], line["size"], line["seed"]] = line
    first = by_setting[settings[0]]
    print(f"{'setting':34} {'runs':>4} {'mean':>6} {'minus first':>18} {'time':>6}")
    for setting in settings:
        mine = by_setting[setting]
        shared = sorted(mine.keys() & first.keys())
        gains = defaultdict(list)
        for key in shared:
            gains[key[:2]].append(mine[key]["accuracy"] - first[key]["accuracy"])
        per_task = [float(np.mean(values)) for values in gains.values()]
        error = np.std(per_task, ddof=1) / np.sqrt(len(per_task))
        ratio = sum(mine[k]["cpu_seconds"] for k in shared) / sum(
            first[k]["cpu_seconds"] for k in shared
        )
        mean = np.mean([mine[key]["accuracy"] for key in shared])
        print(f"{setting:34} {len(shared):4} {mean:6.4f} {np.mean(per_task):+.4f} +- {error:.4f} "
              f"{ratio:6.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
