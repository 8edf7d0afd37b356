"""Which rule builds the label channel: chosen on training series of sets that are not reported.

    TACIT_DATA=... python benchmarks/local_channel.py

Tasks: 24, 60 or 300 series drawn from the TRAIN part of UCR sets that share no series with the 19
of `local_sound.py`; the classifier and the channel see these series alone, and the rest of the
TRAIN part (at most 250 series) tells the expected accuracy of the release. No TEST part is read.
One JSON line per task and epsilon is appended to results/local_channel.jsonl, then the means over
sets are printed with the standard error of their difference from the rule in use.

Rules: `krr`; `counts` (linear program on counted confusion and posteriors, `label_gain`); `guarded`
(the same, k-RR where it gains less than two standard errors on the series it was built from);
`shrunken` (in use: linear program on `design_gain`); `posterior` (a public floor m, each device
fills its row between m and e**epsilon m in the order of its own calibrated posterior).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from tacit.arrays import Codes, Floats
from tacit.data import load_dataset
from tacit.local.encoding.body import train_kernels
from tacit.local.releases.channel import choose_channel, design_channel, label_gain

SETS = (
    "Adiac", "ChlorineConcentration", "Computers", "CricketX", "CricketY", "Crop", "ECG200",
    "ECG5000", "Earthquakes", "ElectricDevices", "FreezerRegularTrain", "Ham", "Haptics",
    "InsectEPGRegularTrain", "ItalyPowerDemand", "LargeKitchenAppliances", "Lightning2",
    "MedicalImages", "OSULeaf", "RefrigerationDevices", "ScreenType", "ShapesAll",
    "SmallKitchenAppliances", "SmoothSubspace", "Strawberry", "SwedishLeaf", "TwoPatterns",
    "Wafer", "Worms", "WormsTwoClass",
)  # fmt: skip
SIZES = {24: 2, 60: 2, 300: 1}  # series: how many draws
EPSILONS = (1.0, 2.0, 3.0, 5.0)
MOST_CELLS = 2500  # the program over series is only solved for small tasks


def krr(held_out: Floats, y: Codes, epsilon: float) -> Floats:
    return choose_channel(held_out, y, epsilon=epsilon, kind="krr")


def counts(held_out: Floats, y: Codes, epsilon: float) -> Floats:
    return design_channel(label_gain(held_out, y), epsilon=epsilon)


def guarded(held_out: Floats, y: Codes, epsilon: float) -> Floats:
    best, plain = counts(held_out, y, epsilon), krr(held_out, y, epsilon)
    predicted = held_out.argmax(axis=1)
    gained = best[predicted, y] - plain[predicted, y]
    return best if gained.mean() > 2.0 * gained.std() / math.sqrt(len(y)) else plain


def shrunken(held_out: Floats, y: Codes, epsilon: float) -> Floats:
    return choose_channel(held_out, y, epsilon=epsilon)


RULES: dict[str, Callable[[Floats, Codes, float], Floats]] = {
    "krr": krr,
    "counts": counts,
    "guarded": guarded,
    "shrunken": shrunken,
}


def posterior_accuracy(
    held_out: Floats, y: Codes, unseen: Floats, y_unseen: Codes, epsilon: float
) -> float:
    """Expected accuracy when each device fills its own row between m and e**epsilon m."""
    n, n_classes = held_out.shape
    prior = (np.bincount(y, minlength=n_classes) + 1.0) / (n + n_classes)
    known, asked = ((n * part + prior) / (n + 1) for part in (held_out, unseen))
    floor = best_floor(known, epsilon)
    rows = np.tile(floor, (len(asked), 1))
    left = np.full(len(asked), 1.0 - floor.sum())
    for code in np.argsort(-asked, axis=1).T:
        more = np.minimum(left, (math.exp(epsilon) - 1.0) * floor[code])
        rows[np.arange(len(asked)), code] += more
        left -= more
    return float(rows[np.arange(len(asked)), y_unseen].mean())


def best_floor(posterior: Floats, epsilon: float) -> Floats:
    n, n_classes = posterior.shape
    cells = n * n_classes
    here = sparse.identity(cells, format="csr")
    column = np.tile(np.arange(n_classes), n)
    floor = sparse.csr_matrix((np.ones(cells), (np.arange(cells), column)))
    bounds = [sparse.hstack([here, -math.exp(epsilon) * floor]), sparse.hstack([-here, floor])]
    sums = sparse.kron(sparse.identity(n), np.ones((1, n_classes)))
    found = linprog(
        np.concatenate([-posterior.ravel(), np.zeros(n_classes)]),
        A_ub=sparse.vstack(bounds, format="csr"),
        b_ub=np.zeros(2 * cells),
        A_eq=sparse.hstack([sums, sparse.csr_matrix((n, n_classes))]).tocsr(),
        b_eq=np.ones(n),
        bounds=(0.0, 1.0),
        method="highs",
    )
    return np.asarray(found.x[cells:])


def tasks(name: str) -> Iterator[tuple[int, int, Floats, Codes, Floats, Codes]]:
    data = load_dataset(name)
    y = np.unique(data.y_train, return_inverse=True)[1]
    n_classes = int(y.max()) + 1
    for size, repeats in SIZES.items():
        if size + 30 > len(y) or size < 2.4 * n_classes:
            continue
        for repeat in range(repeats):
            rng = np.random.default_rng([size, repeat])
            chosen = draw(y, size, rng)
            rest = rng.permutation(np.setdiff1d(np.arange(len(y)), chosen))[:250]
            trained = train_kernels(data.X_train[chosen], y[chosen], n_classes=n_classes, rng=rng)
            unseen = trained.body.posterior(data.X_train[rest])
            yield size, repeat, trained.held_out, y[chosen], unseen, y[rest]


def draw(y: Codes, size: int, rng: np.random.Generator) -> Codes:
    """Series at random, two of each class first where chance alone would leave one out."""
    for _ in range(500):
        chosen = rng.permutation(len(y))[:size]
        if np.bincount(y[chosen], minlength=int(y.max()) + 1).min() >= 2:
            return chosen
    order = rng.permutation(len(y))
    first = np.concatenate([order[y[order] == code][:2] for code in np.unique(y)])
    return np.concatenate([first, np.setdiff1d(order, first)])[:size]


def measure(name: str) -> Iterator[dict[str, Any]]:
    for size, repeat, held_out, y, unseen, y_unseen in tasks(name):
        called = unseen.argmax(axis=1)
        for epsilon in EPSILONS:
            found = {
                rule: float(build(held_out, y, epsilon)[called, y_unseen].mean())
                for rule, build in RULES.items()
            }
            if held_out.size <= MOST_CELLS:
                given = (held_out, y, unseen, y_unseen)
                found["posterior"] = posterior_accuracy(*given, epsilon)
            yield {
                "set": name, "series": size, "repeat": repeat, "epsilon": epsilon,
                "accuracy": found, "clean": float(np.mean(called == y_unseen)),
            }  # fmt: skip


def report(rows: list[dict[str, Any]]) -> None:
    for epsilon in EPSILONS:
        print(f"epsilon {epsilon:g}")
        for rule in (*RULES, "posterior"):
            here = [r for r in rows if r["epsilon"] == epsilon and rule in r["accuracy"]]
            names = sorted({row["set"] for row in here})
            gap, own = [], []
            for name in names:
                of_set = [r["accuracy"] for r in here if r["set"] == name]
                own.append(np.mean([a[rule] for a in of_set]))
                gap.append(np.mean([a[rule] - a["shrunken"] for a in of_set]))
            print(f"  {rule:10} {np.mean(own):.4f} on {len(names)} sets, minus shrunken "
                  f"{np.mean(gap):+.4f} +- {np.std(gap) / math.sqrt(len(gap)):.4f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/local_channel.jsonl"))
    parser.add_argument("--sets", default=",".join(SETS))
    given = parser.parse_args()
    sources = ["benchmarks/local_channel.py", "src/tacit/local"]
    commit, changed = (
        subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()
        for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", *sources])
    )
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    rows = [json.loads(line) for line in lines]
    for name in given.sets.split(","):
        if any(row["set"] == name for row in rows):
            continue
        found = [{**row, "commit": commit + ("-dirty" if changed else "")} for row in measure(name)]
        rows += found
        with given.out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in found)
    report(rows)


if __name__ == "__main__":
    main()
