"""Training CPU time of the local family against ROCKET, measured in one run, one thread each.

    TACIT_DATA=... python benchmarks/local_speed.py

Sums process time of `fit` over eight sets for aeon's RocketClassifier (10,000 kernels), for
DP-SoftShape as published at epsilon 1, and for the sound label release. ROCKET is compiled on a
small set first, so that compilation is not counted against it; the methods take turns within
each set, so that a busy machine is busy for all of them.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from tacit.data import Dataset, load_dataset
from tacit.local.softshape.published import train_published
from tacit.local.softshape.settings import preset_settings

SETS = [
    "GunPoint",
    "CBF",
    "FaceFour",
    "Herring",
    "DistalPhalanxOutlineAgeGroup",
    "WordSynonyms",
    "Plane",
    "OliveOil",
]


def fit_rocket(data: Dataset, seed: int) -> None:
    from aeon.classification.convolution_based import RocketClassifier

    RocketClassifier(n_kernels=10_000, n_jobs=1, random_state=seed).fit(data.X_train, data.y_train)


def fit_published(data: Dataset, seed: int) -> None:
    position = {label: code for code, label in enumerate(data.classes)}
    codes = np.array([position[label] for label in data.y_train], dtype=np.int64)
    tuned = preset_settings("tuned")
    train_published(data.X_train, codes, len(data.classes), epsilon=1.0, settings=tuned, seed=seed)


def fit_sound(data: Dataset, seed: int) -> None:
    from tacit.local.estimator import DPSoftShapeClassifier

    DPSoftShapeClassifier(epsilon=1.0, random_state=seed).fit(data.X_train, data.y_train)


METHODS: dict[str, Callable[[Dataset, int], None]] = {
    "rocket": fit_rocket,
    "published": fit_published,
    "sound": fit_sound,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    torch.set_num_threads(1)
    methods = list(dict.fromkeys(["rocket", *options.methods]))
    with threadpool_limits(1):
        seconds = measure(methods, repeats=options.repeats)
    report(seconds, as_json=options.json)


def measure(methods: list[str], *, repeats: int) -> dict[str, dict[str, float]]:
    """CPU seconds by method and set, averaged over seeds."""
    warm_up(methods)
    seconds = {method: dict.fromkeys(SETS, 0.0) for method in methods}
    for name in SETS:
        data = load_dataset(name)
        for seed in range(repeats):
            for method in methods:
                start = time.process_time()
                METHODS[method](data, seed)
                seconds[method][name] += (time.process_time() - start) / repeats
    return seconds


def warm_up(methods: list[str]) -> None:
    """Compile and load everything on two kinds of series, outside the measurement."""
    for name in ("CBF", "GunPoint"):
        data = load_dataset(name)
        for method in methods:
            METHODS[method](data, 0)


def report(seconds: dict[str, dict[str, float]], *, as_json: bool) -> None:
    total = {method: sum(by_set.values()) for method, by_set in seconds.items()}
    ratio = {method: value / total["rocket"] for method, value in total.items()}
    result: dict[str, Any] = {"cpu_seconds": seconds, "total": total, "ratio_to_rocket": ratio}
    if as_json:
        print(json.dumps(result))
        return
    print(f"{'set':<30}" + "".join(f"{method:>11}" for method in seconds))
    for name in SETS:
        print(f"{name:<30}" + "".join(f"{by_set[name]:11.2f}" for by_set in seconds.values()))
    print(f"{'sum, CPU seconds':<30}" + "".join(f"{value:11.2f}" for value in total.values()))
    print(f"{'ratio to ROCKET':<30}" + "".join(f"{value:11.2f}" for value in ratio.values()))


if __name__ == "__main__":
    main()
