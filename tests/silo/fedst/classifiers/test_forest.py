"""The forest against a direct implementation of its criterion, and its edge cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.fedst.classifiers import forest as trees
from tacit.silo.secure.jax_x64 import enable_x64


def grown(
    features: NDArray[Any], codes: NDArray[Any], shape: trees.ForestShape
) -> tuple[trees.Forest, NDArray[Any]]:
    thresholds = trees.thresholds_from(features, n_thresholds=shape.n_thresholds)
    with enable_x64():
        below = trees.below_thresholds(features, thresholds)
        nodes = trees.root_nodes(np.eye(shape.n_classes, dtype=np.int64)[codes], **shape.static)
        split = jax.jit(trees.split_level, static_argnames=("level", "shape"))
        chosen = []
        for level in range(shape.depth):
            columns, nodes = split(nodes, below, level=level, **shape.static)
            chosen.append(np.asarray(columns))
        label = jax.jit(trees.leaf_labels, static_argnames="n_rows")
        labels = np.asarray(label(nodes, n_rows=shape.n_rows))
    return trees.assemble(chosen, labels, thresholds, shape), np.asarray(nodes)


def problem(n_rows: int = 60, n_features: int = 6) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(3)
    features = rng.integers(0, 2**20, size=(n_features, n_rows))
    codes = (features[1] > 2**19).astype(int) + (features[4] > 3 * 2**18)
    return features, codes


def shape_for(**changes: int | bool) -> trees.ForestShape:
    values = {"n_trees": 4, "n_features": 6, "n_thresholds": 5, "n_rows": 60, "n_classes": 3}
    return trees.choose_shape(**(values | {"seed": 1, "depth": 3} | changes))  # type: ignore[arg-type]


def best_by_hand(
    features: NDArray[Any],
    codes: NDArray[Any],
    weights: NDArray[Any],
    options: list[tuple[int, int]],
) -> int:
    """The first option with the largest smoothed Gini score, in exact fractions."""
    from fractions import Fraction

    def score(rows: NDArray[Any]) -> Fraction:
        counts = [int(weights[rows & (codes == c)].sum()) for c in range(3)]
        return Fraction(sum(c * c for c in counts), sum(counts) + 1)

    scores = [score(features[k] <= t) + score(features[k] > t) for k, t in options]
    return max(range(len(options)), key=lambda i: scores[i])


@pytest.mark.seconds
def test_roots_choose_the_best_split_of_their_features() -> None:
    features, codes = problem()
    shape = shape_for()
    found, _ = grown(features, codes, shape)
    thresholds = trees.thresholds_from(features, n_thresholds=5)
    weights = trees.row_weights(n_trees=4, n_rows=60, seed=1, bootstrap=True)
    allowed = trees.level_features(shape=shape, level=0)
    for tree in range(4):
        options = [(int(k), int(t)) for k in allowed[tree] for t in thresholds[k]]
        best = best_by_hand(features, codes, weights[tree], options)
        assert (found.features[0][tree, 0], found.thresholds[0][tree, 0]) == options[best]


def test_leaves_hold_the_rows_that_reach_them() -> None:
    features, codes = problem()
    shape = shape_for()
    found, nodes = grown(features, codes, shape)
    weights = trees.row_weights(n_trees=4, n_rows=60, seed=1, bootstrap=True)
    leaf = found.leaves(features)
    for tree in range(4):
        for row in range(60):
            cell = nodes[tree, leaf[tree, row], codes[row], row]
            assert cell == weights[tree, row]
    assert nodes.sum() == weights.sum()


@pytest.mark.seconds
def test_a_forest_learns() -> None:
    features, codes = problem()
    found, _ = grown(features, codes, shape_for(n_trees=15, depth=4))
    assert (found.votes(features).argmax(axis=1) == codes).mean() > 0.9
    np.testing.assert_allclose(found.votes(features).sum(axis=1), 1.0)


def test_empty_leaves_follow_their_ancestors() -> None:
    leaves = np.zeros((1, 4, 2, 6), dtype=np.int64)
    leaves[0, 2, 1, :2] = 1  # leaf 2: two rows of class 1; its sibling is empty
    leaves[0, 0, 0, 2:5] = 1  # leaf 0: three rows of class 0
    leaves[0, 1, 0, 5], leaves[0, 1, 1, 5] = 1, 1  # leaf 1 is even; its parent says class 0
    with enable_x64():
        label = jax.jit(trees.leaf_labels, static_argnames="n_rows")
        labels = np.asarray(label(leaves, n_rows=6))
    assert labels.tolist() == [[0, 0, 1, 1]]


def test_weights_and_features_are_public_and_fair() -> None:
    shape = shape_for(n_features=50)
    weights = trees.row_weights(n_trees=9, n_rows=60, seed=5, bootstrap=True)
    assert (weights.sum(axis=1) == 60).all()
    allowed = trees.level_features(shape=shape, level=2)
    assert all(len(set(row)) == shape.features_per_split for row in allowed.tolist())
    np.testing.assert_array_equal(allowed, trees.level_features(shape=shape, level=2))
    many = replace(shape, n_trees=400)
    used = np.bincount(trees.level_features(shape=many, level=0).ravel(), minlength=50)
    # 400 trees * 8 features over 50: 64 each; a shape that never uses some would be unfair.
    assert used.min() > 30


def test_noise_decides_only_the_label() -> None:
    counts = np.array([[[5, 2], [-90, -3]]])
    with enable_x64():
        assert np.asarray(jax.jit(trees.noised_labels)(counts)).tolist() == [[0, 1]]


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(TacitError, match="at most 4096"):
        shape_for(n_rows=4097)
