"""Compare the silo's linear classifiers and features by cross-validation on training series only.

    TACIT_DATA=DIR python benchmarks/silo_cross_validation.py --out FILE [--sets 36] [--test]

Five folds of each set of `results/current/silo_accuracy.jsonl`; the training part of each is dealt
to three owners. One search per fold (500 candidates from P0's rows, 200 kept by F) feeds all
classifiers: the logistic regression, ridge with fixed penalties, and 2^k gradient steps by the
spectrum of the features, in float64. The lines that begin with the name of a kind of features, or
"all", take the default number of steps; "all" keeps the 300 best of all kinds. `--test` trains on
all training series and scores the test part instead, for what was chosen before. One JSON line per
set; a set that the file holds already is not run again.
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
from tacit.silo.fedst.classifiers.ridge import default_doublings
from tacit.silo.fedst.classifiers.standard import standard_from
from tacit.silo.fedst.dictionary import Word
from tacit.silo.fedst.distances import own_distances, rescale_for
from tacit.silo.fedst.parameters import public_parameters
from tacit.silo.fedst.settings import FEATURES, Settings

Floats = NDArray[np.float64]
N_FOLDS, N_PARTIES, KEPT = 5, 3, 200
RECORDED = Path(__file__).parents[1] / "results" / "current" / "silo_accuracy.jsonl"


def recorded_sets(n: int) -> list[str]:
    """The sets of the accuracy table, in its order."""
    lines = RECORDED.read_text().splitlines()
    return list(dict.fromkeys(str(json.loads(line)["data"]) for line in lines))[:n]


def fold_features(
    X: Floats, n_train: int, n_own: int, y: NDArray[np.intp], seed: int
) -> dict[str, Floats]:
    """Standardised features of all series by kind; P0's rows come first, those scored last."""
    public = public_parameters(
        Settings(seed=seed, features=FEATURES),
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
    levels, items = public.features.levels(encoded), public.features.items
    words = np.array([isinstance(item, Word) for item in items])
    kinds = {"shapelets": np.concatenate(found), "intervals": levels[~words]}
    kinds |= {"dictionary": levels[words]} if words.any() else {}
    kinds["all"] = np.concatenate(list(kinds.values()))
    tables = {}
    for kind, features in kinds.items():
        best = np.argsort(-between_share(features[:, :n_train], y), kind="stable")
        kept = features[best[: KEPT * 3 // 2 if kind == "all" else KEPT]]
        tables[kind] = standard_from(kept[:, :n_own]).apply(kept)
    return tables


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
    table: Floats, y: NDArray[np.intp], truth: NDArray[np.intp], *, compare: bool
) -> dict[str, NDArray[np.bool_]]:
    """Which series left out, the last rows of the table, each classifier gets right."""
    table, left_out = np.split(table, [len(y)])
    target = np.eye(int(y.max()) + 1)[y]
    mean = table.mean(axis=0)
    left, values, right = np.linalg.svd(table - mean, full_matrices=False)
    moved = left.T @ (target - target.mean(axis=0))
    bound = 2 ** (np.ceil(np.log2(max(np.sum(values**2), 1e-9)) * 4) / 4)
    usual = default_doublings(n_series=len(y), n_features=table.shape[1])
    more = {f"lw{c}": max(usual + c + 5, 1) for c in range(-8, 0)} if compare else {}
    doublings = {"": usual} | more
    filters = {k: 1 - (1 - values**2 / bound) ** (2**n) for k, n in doublings.items()}
    if compare:
        filters |= {f"r{p}": values**2 / (values**2 + p) for p in (3, 10, 30, 100)}
    hits = {}
    for name, kept in filters.items():
        weights = right.T @ ((kept / np.maximum(values, 1e-12))[:, None] * moved)
        scores = (left_out - mean) @ weights + target.mean(axis=0)
        hits[name] = scores.argmax(axis=1) == truth
    if compare:
        weights, biases = logistic(table, target)
        hits["log"] = (left_out @ weights + biases).argmax(axis=1) == truth
    return hits


def accuracies(name: str, *, test: bool) -> dict[str, float]:
    """Mean accuracy of each classifier and kind of features over the series scored of one set."""
    data = load_dataset(name)
    X = np.concatenate([data.X_train, data.X_test] if test else [data.X_train])[:, 0]
    labels = np.concatenate([data.y_train, data.y_test] if test else [data.y_train])
    codes = np.array([data.classes.index(label) for label in labels], dtype=np.intp)
    fold = (np.arange(len(codes)) < len(data.y_train)).astype(int)
    if not test:
        fold = split_parties(codes, n_parties=N_FOLDS, rng=np.random.default_rng(100))
    hits: dict[str, list[NDArray[np.bool_]]] = {}
    for number in range(1 if test else N_FOLDS):
        rows, out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        party = split_parties(codes[rows], n_parties=N_PARTIES, rng=np.random.default_rng(number))
        rows = rows[np.argsort(party, kind="stable")]
        series = X[np.concatenate([rows, out])].astype(np.float64)
        n_own = int(np.sum(party == 0))
        tables = fold_features(series, len(rows), n_own, codes[rows], number)
        for kind, table in tables.items():
            compare = kind == "shapelets" and not test
            found = hits_of_fold(table, codes[rows], codes[out], compare=compare)
            for key, right in found.items():
                hits.setdefault(key or kind, []).append(right)
    return {key: float(np.concatenate(found).mean()) for key, found in hits.items()}


def main() -> None:
    """Run the sets that the file does not hold yet, and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", type=int, default=36)
    parser.add_argument("--test", action="store_true")
    asked = parser.parse_args()
    done = asked.out.read_text().splitlines() if asked.out.exists() else []
    known = {json.loads(line)["data"] for line in done}
    for name in recorded_sets(asked.sets):
        if name not in known:
            with asked.out.open("a") as file:
                file.write(
                    json.dumps({"data": name, "accuracy": accuracies(name, test=asked.test)}) + "\n"
                )
    lines = [json.loads(line)["accuracy"] for line in asked.out.read_text().splitlines()]
    for key in lines[0]:
        difference = np.array(
            [line.get(key, line["shapelets"]) - line["shapelets"] for line in lines]
        )
        error = difference.std(ddof=1) / np.sqrt(len(lines)) if len(lines) > 1 else 0.0
        mean = np.mean([line.get(key, line["shapelets"]) for line in lines])
        print(f"{key:10} {mean:.4f} {difference.mean():+.4f} ({error:.4f}) over {len(lines)} sets")


if __name__ == "__main__":
    main()
