"""Choose the classifier of the shapelet search by cross-validation on training series only.

    python benchmarks/silo_tuning.py [--sets 28] [--folds 5] [--out results]

The sets of `silo_accuracy.py`, cheapest first; no test series is read by any score. Each fold's
training part is dealt to three parties, and the scopes federated (candidates, thresholds, centres
from P0's third) and global (from all) are scored on the fold left out. One search per fold feeds
all settings: the package's candidates, distances, F-statistic, row weights, feature choice,
thresholds and logistic regression; the forest is grown here in NumPy with the same criterion, since
compiling it for every size of every fold takes longer than all the rest.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from silo_accuracy import N_PARTIES, chosen_sets

from tacit.arena.record import commit, versions
from tacit.data import load_dataset, split_parties
from tacit.silo.fedst import forest as trees
from tacit.silo.fedst.candidates import draw_candidates, encode
from tacit.silo.fedst.distances import own_distances, rescale_for
from tacit.silo.fedst.linear import standard_from, train_logistic
from tacit.silo.fedst.quality import class_counts, f_quality
from tacit.silo.fedst.search import public_parameters
from tacit.silo.fedst.settings import Settings
from tacit.silo.secure.jax_x64 import enable_x64

SCOPES = ("federated", "global")


@dataclass(frozen=True, kw_only=True)
class Fold:
    """Features (candidates, series), best first; P0's rows are the first of those to train on."""

    train: np.ndarray
    y: np.ndarray
    score: np.ndarray
    y_score: np.ndarray
    n_own: int
    n_classes: int
    seed: int

    def cut(self, k: int) -> Fold:
        """With the k best candidates only."""
        return replace(self, train=self.train[:k], score=self.score[:k])


def folds_of(name: str, *, scope: str, n_folds: int) -> Iterator[Fold]:
    """All folds of one set under one scope."""
    data = load_dataset(name)
    codes = np.array([data.classes.index(label) for label in data.y_train], dtype=np.intp)
    fold = split_parties(codes, n_parties=n_folds, rng=np.random.default_rng(100))
    for number in range(n_folds):
        rows = np.flatnonzero(fold != number)
        party = split_parties(codes[rows], n_parties=N_PARTIES, rng=np.random.default_rng(number))
        rows = rows[np.argsort(party, kind="stable")]
        n_own = int(np.sum(party == 0)) if scope == "federated" else len(rows)
        left_out = np.flatnonzero(fold == number)
        yield _searched(
            data.X_train[:, 0], codes, rows, left_out, n_own, len(data.classes), seed=number
        )


def _searched(
    X: np.ndarray,
    codes: np.ndarray,
    rows: np.ndarray,
    left_out: np.ndarray,
    n_own: int,
    n_classes: int,
    *,
    seed: int,
) -> Fold:
    public = public_parameters(
        Settings(seed=seed),
        counts=(len(rows),),
        n_classes=n_classes,
        series_length=X.shape[1],
        n_sources=n_own,
    )
    encoded = encode(X[np.concatenate([rows, left_out])], public.encoding)
    drawn = draw_candidates(encoded[:n_own], public.batches, rng=np.random.default_rng(seed))
    found = [
        own_distances(encoded, c.windows, rescale_for(c.windows.shape[1], public.encoding))
        for c in drawn
    ]
    features = np.concatenate(found)
    train, score = np.split(features, [len(rows)], axis=1)
    with enable_x64():
        indicators = np.eye(n_classes, dtype=np.int64)[codes[rows]]
        quality = np.asarray(f_quality(train, indicators, *class_counts(indicators)))
    best = np.argsort(-quality, kind="stable")
    return Fold(
        train=train[best],
        y=codes[rows],
        score=score[best],
        y_score=codes[left_out],
        n_own=n_own,
        n_classes=n_classes,
        seed=seed,
    )


def forest(
    fold: Fold,
    *,
    k: int = 200,
    n_thresholds: int = 8,
    wider: int = 1,
    depth: int | None = None,
    bootstrap: bool = True,
    soft: bool = False,
) -> float:
    """Accuracy of a forest of 40 trees; `soft` lets leaves vote by their smoothed class shares."""
    fold = fold.cut(k)
    shape = trees.choose_shape(
        n_trees=40,
        n_features=len(fold.train),
        n_thresholds=n_thresholds,
        n_rows=len(fold.y),
        n_classes=fold.n_classes,
        seed=fold.seed,
        depth=depth,
        bootstrap=bootstrap,
    )
    shape = replace(shape, features_per_split=min(k, wider * shape.features_per_split))
    limits = trees.thresholds_from(fold.train[:, : fold.n_own], n_thresholds=n_thresholds)
    bins = [np.sum(x[:, None, :] > limits[:, :, None], axis=1) for x in (fold.train, fold.score)]
    weights = trees.row_weights(n_trees=40, n_rows=len(fold.y), seed=fold.seed, bootstrap=bootstrap)
    allowed = [trees.level_features(shape=shape, level=level) for level in range(shape.depth)]
    votes = np.zeros((fold.score.shape[1], fold.n_classes))
    for tree in range(40):
        features = [level[tree] for level in allowed]
        leaf, counts = _grow(*bins, fold.y, weights[tree], features, shape)
        parent = np.repeat(counts.reshape(-1, 2, fold.n_classes).sum(axis=1), 2, axis=0)
        above = 0.5 * parent / np.maximum(parent.sum(axis=1, keepdims=True), 1)
        shares = counts + above + 1e-6 * counts.sum(axis=0) / counts.sum()
        if soft:
            votes += (shares / shares.sum(axis=1, keepdims=True))[leaf]
        else:
            votes[np.arange(len(leaf)), shares.argmax(axis=1)[leaf]] += 1
    return float(np.mean(votes.argmax(axis=1) == fold.y_score))


def _grow(
    train: np.ndarray,
    score: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    features: list[np.ndarray],
    shape: trees.ForestShape,
) -> tuple[np.ndarray, np.ndarray]:
    """One tree: the leaves that rows to score reach, and the class counts of all leaves."""
    node, node_score = (np.zeros(x.shape[1], dtype=np.intp) for x in (train, score))
    n_classes, n_bins = shape.n_classes, shape.n_thresholds + 1
    for level, which in enumerate(features):
        cells = (2**level, n_classes, len(which), n_bins)
        place = ((node * n_classes + y) * len(which) + np.arange(len(which))[:, None]) * n_bins
        flat = (place + train[which]).ravel()
        counts = np.bincount(flat, np.tile(weights, len(which)), minlength=int(np.prod(cells)))
        sums = counts.reshape(cells).cumsum(axis=3)
        left, right = sums[..., :-1], sums[..., -1:] - sums[..., :-1]
        gini = sum((x**2).sum(axis=1) / (x.sum(axis=1) + 1) for x in (left, right))
        feature, rank = np.divmod(gini.reshape(2**level, -1).argmax(axis=1), n_bins - 1)
        node = 2 * node + (train[which[feature][node], np.arange(len(node))] > rank[node])
        at = which[feature][node_score], np.arange(len(node_score))
        node_score = 2 * node_score + (score[at] > rank[node_score])
    cells = 2**shape.depth * n_classes
    counts = np.bincount(node * n_classes + y, weights, minlength=cells).reshape(-1, n_classes)
    return node_score, counts


@lru_cache(maxsize=1)
def _trainer() -> Any:
    return jax.jit(train_logistic, static_argnames=("n_steps", "penalty"))


def logistic(fold: Fold, *, k: int = 200, n_steps: int = 300, roots: bool = True) -> float:
    """Accuracy of the logistic regression, on roots of the distances or on distances themselves."""
    fold = fold.cut(k)
    tables = [_standardised(fold, x, roots=roots) for x in (fold.train, fold.score)]
    with enable_x64():
        indicators = np.eye(fold.n_classes, dtype=np.int64)[fold.y]
        weights, biases = _trainer()(tables[0], indicators, n_steps=n_steps, penalty=1e-3)
    scores = tables[1] @ np.asarray(weights) + np.asarray(biases)
    return float(np.mean(scores.argmax(axis=1) == fold.y_score))


def _standardised(fold: Fold, features: np.ndarray, *, roots: bool) -> np.ndarray:
    own = fold.train[:, : fold.n_own]
    if roots:
        return standard_from(own).apply(features)
    deviation = np.maximum(own.std(axis=1, keepdims=True), 32)
    return np.clip((features - own.mean(axis=1, keepdims=True)) / deviation, -8, 8).T


CLASSIFIERS: dict[str, Callable[[Fold], float]] = {
    "forest, as it was": forest,
    "forest, twice the features per split": partial(forest, wider=2),
    "forest, 16 thresholds": partial(forest, n_thresholds=16),
    "forest, depth 7": partial(forest, depth=7),
    "forest, no bootstrap": partial(forest, bootstrap=False),
    "forest, no bootstrap, 16 thresholds": partial(forest, bootstrap=False, n_thresholds=16),
    "forest, soft leaves": partial(forest, soft=True),
    "forest, all 500 candidates": partial(forest, k=500),
    "logistic, distances, 100 steps": partial(logistic, roots=False, n_steps=100),
    "logistic, roots, 100 steps": partial(logistic, n_steps=100),
    "logistic, roots, 200 steps": partial(logistic, n_steps=200),
    "logistic, roots, 300 steps": logistic,
}


def one_set(name: str, *, n_folds: int, out: Path) -> dict[str, float]:
    """Every classifier on one set, both scopes; a line for each; mean accuracy per classifier."""
    found: dict[str, list[float]] = {label: [] for label in CLASSIFIERS}
    for scope in SCOPES:
        folds = list(folds_of(name, scope=scope, n_folds=n_folds))
        for label, classifier in CLASSIFIERS.items():
            accuracies = [classifier(fold) for fold in folds]
            found[label] += accuracies
            line = {
                "data": name,
                "classifier": label,
                "scope": scope,
                "fold_accuracies": accuracies,
                "versions": versions(),
                "commit": commit(),
            }
            with (out / "silo_tuning.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")
    jax.clear_caches()
    return {label: float(np.mean(values)) for label, values in found.items()}


def main() -> None:
    """Run all sets; print means and the difference to the first classifier with its error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=28)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    table = []
    for name in chosen_sets(asked.sets):
        table.append(one_set(name, n_folds=asked.folds, out=asked.out))
        print(name, {label: round(v, 4) for label, v in table[-1].items()}, flush=True)
    base = np.array([row["forest, as it was"] for row in table])
    for label in CLASSIFIERS:
        values = np.array([row[label] for row in table])
        gap = values - base
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        print(f"{label:38} {values.mean():.4f}  {gap.mean():+.4f} (error {error:.4f})")


if __name__ == "__main__":
    main()
