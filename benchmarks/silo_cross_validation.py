"""Compare the silo's linear classifiers by cross-validation on training series only.

    TACIT_DATA=DIR python benchmarks/silo_cross_validation.py --out FILE [--sets 36]

Five folds of each set of `results/current/silo_accuracy.jsonl`; the training part of each is dealt
to three owners. One search per fold (500 candidates from P0's rows, 200 kept by F) feeds all
classifiers: the logistic regression, ridge with fixed penalties, and 2^k gradient steps by the
spectrum of the features, in float64. One JSON line per set; a set that the file holds already is
not run again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data import load_dataset, split_parties
from tacit.silo.fedst.candidates import draw_candidates, encode
from tacit.silo.fedst.classifiers.standard import standard_from
from tacit.silo.fedst.distances import own_distances, rescale_for
from tacit.silo.fedst.search import public_parameters
from tacit.silo.fedst.settings import Settings

Floats = NDArray[np.float64]
N_FOLDS, N_PARTIES, KEPT = 5, 3, 200
RECORDED = Path(__file__).parents[1] / "results" / "current" / "silo_accuracy.jsonl"


def recorded_sets(n: int) -> list[str]:
    """The sets of the accuracy table, in its order."""
    lines = RECORDED.read_text().splitlines()
    return list(dict.fromkeys(str(json.loads(line)["data"]) for line in lines))[:n]


def fold_features(
    X: Floats, n_train: int, n_own: int, y: NDArray[np.intp], seed: int
) -> tuple[Floats, Floats]:
    """Standardised features of the series to train on, and of those left out; P0's come first."""
    public = public_parameters(
        Settings(seed=seed),
        counts=(n_train,),
        n_classes=int(y.max()) + 1,
        series_length=X.shape[1],
        n_sources=n_own,
    )
    encoded = encode(X, public.encoding)
    drawn = draw_candidates(encoded[:n_own], public.batches, rng=np.random.default_rng(seed))
    found = [
        own_distances(encoded, c.windows, rescale_for(c.windows.shape[1], public.encoding))
        for c in drawn
    ]
    distances = np.concatenate(found)
    kept = distances[np.argsort(-between_share(distances[:, :n_train], y), kind="stable")[:KEPT]]
    table = standard_from(kept[:, :n_own]).apply(kept)
    return table[:n_train], table[n_train:]


def between_share(distances: NDArray[Any], y: NDArray[np.intp]) -> Floats:
    """The part of each candidate's variance that lies between the classes."""
    rows = distances.astype(np.float64)
    total = rows.var(axis=1) * len(y)
    within = sum(rows[:, y == c].var(axis=1) * np.sum(y == c) for c in np.unique(y))
    share: Floats = (total - within) / (total + 1.0)
    return share


def logistic(table: Floats, target: Floats, n_steps: int = 300) -> tuple[Floats, Floats]:
    """`train_logistic` in NumPy."""
    n_rows, n_features = table.shape
    step, momentum, penalty = 2.0 / (n_features + 1), 0.9, 1e-3
    weights, biases = np.zeros((n_features, target.shape[1])), np.zeros((1, target.shape[1]))
    speed, bias_speed = np.zeros_like(weights), np.zeros_like(biases)
    for _ in range(n_steps):
        ahead, bias_ahead = weights + momentum * speed, biases + momentum * bias_speed
        scores = table @ ahead + bias_ahead
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = scores / scores.sum(axis=1, keepdims=True) - target
        speed = momentum * speed - step * (table.T @ error / n_rows + penalty * ahead)
        bias_speed = momentum * bias_speed - step * n_features * error.mean(axis=0, keepdims=True)
        weights, biases = weights + speed, biases + bias_speed
    return weights, biases


def hits_of_fold(
    table: Floats, y: NDArray[np.intp], left_out: Floats, truth: NDArray[np.intp]
) -> dict[str, NDArray[np.bool_]]:
    """Which series left out each classifier gets right."""
    target = np.eye(int(y.max()) + 1)[y]
    weights, biases = logistic(table, target)
    hits = {"log": (left_out @ weights + biases).argmax(axis=1) == truth}
    mean = table.mean(axis=0)
    left, values, right = np.linalg.svd(table - mean, full_matrices=False)
    moved = left.T @ (target - target.mean(axis=0))
    bound = 2 ** (np.ceil(np.log2(max(np.sum(values**2), 1e-9)) * 4) / 4)
    usual = round(np.log2(table.size))
    filters = {
        f"lw{c}": 1 - (1 - values**2 / bound) ** (2 ** max(usual + c, 1)) for c in range(-8, 0)
    }
    filters |= {f"r{p}": values**2 / (values**2 + p) for p in (3, 10, 30, 100)}
    for name, kept in filters.items():
        weights = right.T @ ((kept / np.maximum(values, 1e-12))[:, None] * moved)
        scores = (left_out - mean) @ weights + target.mean(axis=0)
        hits[name] = scores.argmax(axis=1) == truth
    return hits


def accuracies(name: str) -> dict[str, float]:
    """Mean accuracy of each classifier over all training series of one set."""
    data = load_dataset(name)
    codes = np.array([data.classes.index(label) for label in data.y_train], dtype=np.intp)
    fold = split_parties(codes, n_parties=N_FOLDS, rng=np.random.default_rng(100))
    hits: dict[str, list[NDArray[np.bool_]]] = {}
    for number in range(N_FOLDS):
        rows, out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        party = split_parties(codes[rows], n_parties=N_PARTIES, rng=np.random.default_rng(number))
        rows = rows[np.argsort(party, kind="stable")]
        X = np.asarray(data.X_train, dtype=np.float64)[np.concatenate([rows, out]), 0]
        n_own = int(np.sum(party == 0))
        table, left_out = fold_features(X, len(rows), n_own, codes[rows], number)
        for key, found in hits_of_fold(table, codes[rows], left_out, codes[out]).items():
            hits.setdefault(key, []).append(found)
    return {key: float(np.concatenate(found).mean()) for key, found in hits.items()}


def main() -> None:
    """Run the sets that the file does not hold yet, and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", type=int, default=36)
    asked = parser.parse_args()
    done = asked.out.read_text().splitlines() if asked.out.exists() else []
    known = {json.loads(line)["data"] for line in done}
    for name in recorded_sets(asked.sets):
        if name not in known:
            with asked.out.open("a") as file:
                file.write(json.dumps({"data": name, "accuracy": accuracies(name)}) + "\n")
    lines = [json.loads(line)["accuracy"] for line in asked.out.read_text().splitlines()]
    for key in lines[0]:
        difference = np.array([line[key] - line["log"] for line in lines])
        error = difference.std(ddof=1) / np.sqrt(len(lines)) if len(lines) > 1 else 0.0
        mean = np.mean([line[key] for line in lines])
        print(f"{key:6} {mean:.4f} {difference.mean():+.4f} ({error:.4f}) over {len(lines)} sets")


if __name__ == "__main__":
    main()
