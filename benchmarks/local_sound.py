"""Accuracy of the sound releases on the 19 core UCR sets, beside the ceiling of any release.

    TACIT_DATA=data python benchmarks/local_sound.py [--releases label,vector,shapes]

One JSON line per set, epsilon, seed and release, appended to results/local_sound.jsonl; lines that
are already there are not measured again, so a stopped run goes on where it was. The clean
classifier is trained once per set and seed, as `DPSoftShapeClassifier` trains it; each accuracy is
the mean over at least 20 independent releases of the test set, and for the label release over so
many that their chance is below a third of a point; `expected_accuracy` is its exact expectation
over the channel's noise, `hindsight` that of the best channel for the same classifier had the test
labels been known: what is lost below it is lost by not knowing the test set's class shares. Nothing
is chosen by test accuracy. The ceiling is what no epsilon-LDP release can exceed on the test set's
class shares, even with a perfect classifier; the floor always answers the most frequent training
class. The targets were measured on 18 sets whose ceilings are, to three places at every epsilon,
those of these 19 without Symbols; the table has both.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import load_dataset
from tacit.local.encoding.body import TrainedBody, train_kernels
from tacit.local.release import local_guarantee
from tacit.local.releases.channel import accuracy_ceiling, design_channel
from tacit.local.releases.label import fit_label
from tacit.local.releases.shapes import fit_shapes
from tacit.local.releases.vector import fit_vector
from tacit.noise import SYSTEM_NOISE
from tacit.system.progress import silent

SETS = (
    "GunPoint", "Plane", "CBF", "Trace", "TwoLeadECG", "Coffee", "FaceFour", "OliveOil",
    "SyntheticControl", "Symbols", "ShapeletSim", "DiatomSizeReduction", "BeetleFly",
    "BirdChicken", "DistalPhalanxOutlineAgeGroup", "Herring", "MiddlePhalanxTW",
    "ProximalPhalanxTW", "WordSynonyms",
)  # fmt: skip
EPSILONS = (1.0, 2.0, 3.0, 5.0, 8.0)
RELEASES = ("label", "vector", "shapes")
NOT_IN_THE_PROTOTYPE = "Symbols"
TARGETS = {1.0: 0.53, 2.0: 0.68, 3.0: 0.80, 5.0: 0.87, 8.0: 0.89}
DRAWS = 20
LABEL_RELEASES = 50_000  # in all, per set: a label costs nothing to draw
SOURCES = (
    "benchmarks/local_sound.py",
    "src/tacit/data",
    "src/tacit/local",
    "src/tacit/mechanisms",
    "src/tacit/noise.py",
)


def commit() -> str:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", *SOURCES)
    return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


def noisy_accuracy(head: Any, summary: Any, y: Any, *, draws: int) -> float:
    right = [head.decide(head.randomize(summary, source=SYSTEM_NOISE)) == y for _ in range(draws)]
    return float(np.mean(right))


def measure(name: str, seed: int, releases: list[str]) -> Iterator[dict[str, Any]]:
    data = load_dataset(name)
    names, y = np.unique(data.y_train, return_inverse=True)
    y_test = np.searchsorted(names, data.y_test)
    n_classes = len(names)
    common: dict[str, Any] = {"n_classes": n_classes, "n_train": len(y), "n_test": len(y_test)}
    prior = np.bincount(y_test, minlength=n_classes) / len(y_test)
    common["floor"] = float(np.mean(y_test == np.bincount(y).argmax()))
    trained: TrainedBody | None = None
    if "label" in releases or "vector" in releases:
        start = time.process_time()
        trained = train_kernels(
            data.X_train, y, n_classes=n_classes, rng=np.random.default_rng(seed)
        )
        common |= {
            "body_cpu_seconds": time.process_time() - start,
            "encoder": trained.body.kind,
            "held_out_accuracy": trained.accuracy,
        }
        posterior = trained.body.posterior(data.X_test)
        common["clean_accuracy"] = float(np.mean(posterior.argmax(axis=1) == y_test))
    for release in releases:
        for epsilon in EPSILONS:
            draws, exact, hindsight = DRAWS, None, None
            rng = np.random.default_rng([seed, int(1000 * epsilon)])
            start = time.process_time()
            head: Any
            if release == "shapes":
                head = fit_shapes(
                    data.X_train, y, n_classes=n_classes, epsilon=epsilon, rng=rng, progress=silent
                )
                summary = head.summarise(data.X_test)
            elif release == "vector":
                assert trained is not None
                head = fit_vector(
                    trained.body, trained.held_out, y, epsilon=epsilon, rng=rng, progress=silent
                )
                summary = (posterior - 1.0 / n_classes) @ head.projection
            else:
                assert trained is not None
                head = fit_label(
                    trained.body, trained.held_out, y, epsilon=epsilon, channel="optimal"
                )
                summary = posterior.argmax(axis=1)
                draws = max(DRAWS, LABEL_RELEASES // len(y_test))
                exact = float(head.channel[summary, y_test].mean())
                found = np.zeros((n_classes, n_classes))
                np.add.at(found, (summary, y_test), 1.0 / len(y_test))
                hindsight = float((design_channel(found, epsilon=epsilon) * found).sum())
            yield {
                **common,
                "dataset": name, "seed": seed, "release": release, "epsilon": epsilon,
                "head_cpu_seconds": time.process_time() - start,
                "accuracy": noisy_accuracy(head, summary, y_test, draws=draws),
                "expected_accuracy": exact,
                "hindsight": hindsight,
                "draws": draws,
                "ceiling": accuracy_ceiling(prior, epsilon=epsilon),
                "guarantee": local_guarantee(epsilon, assumptions=head.assumptions).to_dict(),
            }  # fmt: skip


def report(rows: list[dict[str, Any]]) -> None:
    """Means over all sets, and over those of the prototype that the targets come from."""
    print(f"{'release':8} {'epsilon':>7} {'sets':>4} {'seeds':>5} {'mean':>6} {'per seed':>22} "
          f"{'hindsight':>9} {'ceiling':>7} {'floor':>6} {'target':>6}")  # fmt: skip
    for release in RELEASES:
        mine = [row for row in rows if row["release"] == release]
        report_rows(release, mine, targets={})
        if release == "label":
            compared = [row for row in mine if row["dataset"] != NOT_IN_THE_PROTOTYPE]
            report_rows(release, compared, targets=TARGETS)


def report_rows(release: str, rows: list[dict[str, Any]], *, targets: dict[float, float]) -> None:
    """One line per epsilon."""
    for epsilon in EPSILONS:
        found = [row for row in rows if row["epsilon"] == epsilon]
        if not found:
            continue
        seeds = sorted({row["seed"] for row in found})
        means = [np.mean([r["accuracy"] for r in found if r["seed"] == s]) for s in seeds]
        ceiling, floor = (np.mean([row[key] for row in found]) for key in ("ceiling", "floor"))
        known = [row["hindsight"] for row in found if row.get("hindsight") is not None]
        print(f"{release:8} {epsilon:7g} {len({r['dataset'] for r in found}):4} {len(seeds):5} "
              f"{np.mean(means):6.4f} {' '.join(f'{m:.4f}' for m in means):>22} "
              f"{f'{np.mean(known):.4f}' if known else '':>9} {ceiling:7.4f} {floor:6.4f} "
              f"{targets.get(epsilon, ''):>6}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", default="label,vector,shapes")
    parser.add_argument("--seeds", type=int, default=3, help="of the label release")
    parser.add_argument("--other-seeds", type=int, default=1, help="of vector and shapes")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--out", type=Path, default=Path("results/local_sound.jsonl"))
    parser.add_argument("--report-only", action="store_true")
    given = parser.parse_args()
    stamp = {
        "commit": commit(),
        "versions": {name: version(name) for name in ("numpy", "scipy", "torch")},
        "machine": f"{platform.machine()}, one thread",
        "python": platform.python_version(),
    }
    given.out.parent.mkdir(exist_ok=True)
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    rows = [json.loads(line) for line in lines]
    done = {(r["dataset"], r["seed"], r["release"]) for r in rows if r["epsilon"] == 8.0}
    for release in given.releases.split(",") if not given.report_only else ():
        # Vector and shapes are trained per epsilon: one seed shows where they stand.
        for seed in range(given.seeds if release == "label" else given.other_seeds):
            for name in given.sets.split(","):
                if (name, seed, release) in done:
                    continue
                start = time.perf_counter()
                with given.out.open("a") as file:
                    for row in measure(name, seed, [release]):
                        rows.append({**row, **stamp})
                        file.write(json.dumps(rows[-1]) + "\n")
                print(f"{release} {name} seed {seed}: {time.perf_counter() - start:.1f} s",
                      file=sys.stderr, flush=True)  # fmt: skip
    report(rows)


if __name__ == "__main__":
    main()
