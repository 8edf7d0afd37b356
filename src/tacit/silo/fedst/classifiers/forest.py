"""A random forest grown over shares; the same functions grow it in plaintext.

Thresholds are quantiles of P0's own features, known to P0 alone. Which rows weigh how much in a
tree, and which features a level of a tree may use, comes from the plan's public seed. Every tree
is complete: there is no early stop that could tell anything. All arithmetic is on exact integers,
so secure and plaintext forests are equal, node for node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.errors import TacitError
from tacit.silo.secure.session import Arrays
from tacit.silo.secure.sorting_network import maximum_of_last_axis, next_power_of_two

if TYPE_CHECKING:
    from jax import Array


ShapeKey = tuple[tuple[str, int | bool], ...]
# Scores are compared by cross-multiplication, which needs about M**5 below 2**62.
MAX_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestShape:
    """The public shape of a forest."""

    n_trees: int
    depth: int
    n_features: int
    n_thresholds: int
    features_per_split: int
    n_rows: int
    n_classes: int
    seed: int
    bootstrap: bool = True

    @property
    def static(self) -> dict[str, ShapeKey]:
        """As the static argument of the functions below."""
        return {"shape": tuple((f.name, getattr(self, f.name)) for f in fields(self))}


def shape_of(key: ShapeKey) -> ForestShape:
    """Read back `ForestShape.static`."""
    return ForestShape(**dict(key))  # type: ignore[arg-type]


def default_depth(n_classes: int) -> int:
    """Deep enough for every class to have several leaves, at most 8."""
    return min(8, max(5, math.ceil(math.log2(max(2, n_classes))) + 2))


def check_rows(n_rows: int) -> None:
    """Refuse more series than the exact scores of splits can hold."""
    if n_rows > MAX_ROWS:
        raise TacitError(
            f"the exact split scores of a forest take at most {MAX_ROWS} series, got {n_rows}; "
            "choose ridge, or have the parties bring a sample."
        )


def choose_shape(
    *,
    n_trees: int,
    n_features: int,
    n_thresholds: int,
    n_rows: int,
    n_classes: int,
    seed: int,
    depth: int | None = None,
    bootstrap: bool = True,
) -> ForestShape:
    """Fill in the defaults: about the square root of the features at each level of a tree."""
    check_rows(n_rows)
    return ForestShape(
        n_trees=n_trees,
        depth=default_depth(n_classes) if depth is None else depth,
        n_features=n_features,
        n_thresholds=n_thresholds,
        features_per_split=max(1, min(n_features, math.ceil(math.sqrt(n_features)))),
        n_rows=n_rows,
        n_classes=n_classes,
        seed=seed,
        bootstrap=bootstrap,
    )


def thresholds_from(own_features: Integers, *, n_thresholds: int) -> Integers:
    """P0's thresholds (K, n_thresholds): inner quantiles of its own features (K, M0).

    Interpolated: a threshold between two of P0's values suits other owners' values better than
    one that lies exactly on a value of P0.
    """
    ranks = (np.arange(n_thresholds) + 0.5) / n_thresholds
    quantiles = np.quantile(own_features, ranks, axis=1, method="hazen").T
    return np.ascontiguousarray(np.floor(quantiles), dtype=np.int64)


def row_weights(*, n_trees: int, n_rows: int, seed: int, bootstrap: bool) -> Integers:
    """Public bootstrap weights (trees, rows); each tree's weights sum to the number of rows."""
    if not bootstrap:
        return np.ones((n_trees, n_rows), dtype=np.int64)
    rng = np.random.default_rng([seed, 1])
    drawn = rng.integers(n_rows, size=(n_trees, n_rows))
    return np.stack([np.bincount(row, minlength=n_rows) for row in drawn]).astype(np.int64)


def level_features(*, shape: ForestShape, level: int) -> NDArray[np.intp]:
    """Which features (trees, features_per_split) the splits of one level may use; public.

    Each tree takes every s-th feature from a random start, wrapping around the end: as varied as
    needed, a fair sample of good and poor shapelets (they are sorted), and one slice to compute.
    """
    start, step = _progressions(shape, level)
    places = start[:, None] + step[:, None] * np.arange(shape.features_per_split)
    return places % shape.n_features


def _progressions(shape: ForestShape, level: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rng = np.random.default_rng([shape.seed, 2, level])
    widest = max(1, shape.n_features // shape.features_per_split)
    start = rng.integers(shape.n_features, size=shape.n_trees)
    return start, rng.integers(1, widest + 1, size=shape.n_trees)


def below_thresholds(features: Array, thresholds: Array) -> Array:
    """0/1 table (K, thresholds, M): whether a feature lies at or below each threshold."""
    return (features[:, None, :] <= thresholds[:, :, None]).astype(features.dtype)


def root_nodes(indicators: Array, *, shape: ShapeKey) -> Array:
    """Class weights of the rows at each tree's root, (trees, 1, C, M); no communication."""
    of = shape_of(shape)
    weights = row_weights(
        n_trees=of.n_trees, n_rows=of.n_rows, seed=of.seed, bootstrap=of.bootstrap
    )
    return weights[:, None, None, :] * indicators.T[None, None]


def split_level(nodes: Array, below: Array, *, level: int, shape: ShapeKey) -> tuple[Array, Array]:
    """The best split of every node of one level, and the nodes of the next level.

    `nodes` (trees, n, C, M) holds class weights of the rows in each node. A split maximises
    sum_c l_c^2/(l+1) + sum_c r_c^2/(r+1): the Gini criterion, where adding one keeps empty sides
    harmless. Returns the chosen columns (trees, n), still in shares.
    """
    import jax.numpy as jnp

    n_trees, n_nodes, n_classes, n_rows = nodes.shape
    columns = _level_columns(below, shape=shape_of(shape), level=level)
    flat = nodes.reshape(n_trees, n_nodes * n_classes, n_rows)
    left = _batched(flat, columns.transpose(0, 2, 1))
    left = left.reshape(n_trees, n_nodes, n_classes, columns.shape[1])
    total = jnp.sum(nodes, axis=3)
    chosen = _best_column(left, total[:, :, :, None] - left)
    return chosen, _children(nodes, columns, chosen)


def _children(nodes: Array, columns: Array, chosen: Array) -> Array:
    """The nodes of the next level, under the columns chosen."""
    import jax.numpy as jnp

    n_trees, n_nodes, n_classes, n_rows = nodes.shape
    picked = (chosen[:, :, None] == np.arange(columns.shape[1])).astype(nodes.dtype)
    to_left = nodes * _batched(picked, columns)[:, :, None, :]
    children = jnp.stack([to_left, nodes - to_left], axis=2)
    return children.reshape(n_trees, 2 * n_nodes, n_classes, n_rows)


def follow_splits(
    nodes: Array, below: Array, chosen: Array, *, level: int, shape: ShapeKey
) -> Array:
    """The nodes of the next level under splits that P0 chose beforehand."""
    columns = _level_columns(below, shape=shape_of(shape), level=level)
    return _children(nodes, columns, chosen)


def _level_columns(below: Array, *, shape: ForestShape, level: int) -> Array:
    """The columns (trees, features_per_split * thresholds, M) of `level_features`."""
    import jax.numpy as jnp
    from jax import lax

    twice = jnp.concatenate([below, below], axis=0)
    width = shape.features_per_split
    # lax.slice on purpose: NumPy's notation becomes a gather, which is slow over shares.
    parts = [
        lax.slice_in_dim(twice, int(a), int(a + s * (width - 1) + 1), stride=int(s))
        for a, s in zip(*_progressions(shape, level), strict=True)
    ]
    return jnp.stack([part.reshape(width * below.shape[1], below.shape[2]) for part in parts])


def _batched(a: Array, b: Array) -> Array:
    """One matrix product per tree."""
    import jax.numpy as jnp

    return jnp.einsum("tij,tjk->tik", a, b)


def _best_column(left: Array, right: Array) -> Array:
    """Index of the best split along the last axis, by a tournament of fractions."""
    import jax.numpy as jnp

    n_left, n_right = jnp.sum(left, axis=2) + 1, jnp.sum(right, axis=2) + 1
    score = n_right * jnp.sum(left * left, axis=2) + n_left * jnp.sum(right * right, axis=2)
    scale = n_left * n_right
    index = jnp.broadcast_to(jnp.arange(left.shape[-1], dtype=left.dtype), score.shape)
    while score.shape[-1] > 1:
        score, scale, index = _play_round(score, scale, index)
    return index[..., 0]


def _play_round(score: Array, scale: Array, index: Array) -> tuple[Array, Array, Array]:
    import jax.numpy as jnp

    half = score.shape[-1] // 2
    entries = jnp.stack([score, scale, index])
    first, second = entries[..., :half], entries[..., half : 2 * half]
    better = second[0] * first[1] > first[0] * second[1]
    winners = jnp.where(better[None], second, first)
    rest = entries[..., 2 * half :]
    if rest.shape[-1]:
        winners = jnp.concatenate([winners, rest], axis=-1)
    return winners[0], winners[1], winners[2]


def leaf_labels(leaves: Array, *, n_rows: int) -> Array:
    """The majority class (trees, leaves) of each leaf; ancestors decide ties and empty leaves.

    The counts of a leaf, its parent, its grandparent and the root are digits of one number, so
    that one tournament settles all of it; the lower class wins what is still even.
    """
    import jax.numpy as jnp

    counts = leaf_counts(leaves)
    n_trees, n_leaves, n_classes = counts.shape
    base = n_rows + 1
    key = counts
    for span in sorted({min(2, n_leaves), min(4, n_leaves), n_leaves}):
        groups = counts.reshape(n_trees, n_leaves // span, span, n_classes)
        above = jnp.repeat(jnp.sum(groups, axis=2), span, axis=1)
        key = key * base + above
    return _largest_class(key)


def leaf_counts(leaves: Array) -> Array:
    """Class counts (trees, leaves, C) of the rows in each leaf; no communication."""
    import jax.numpy as jnp

    return jnp.sum(leaves, axis=3)


def noised_labels(counts: Array) -> Array:
    """The class with the largest noised count in each leaf, the lower class on a tie."""
    # Noise can be negative; the keys may not be, for their low bits hold the class.
    return _largest_class(counts + 2**45)


def _largest_class(key: Array) -> Array:
    import jax.numpy as jnp

    n_classes = key.shape[-1]
    width = next_power_of_two(n_classes)
    best = maximum_of_last_axis(key * width + (n_classes - 1 - np.arange(n_classes)))
    return n_classes - 1 - jnp.bitwise_and(best, width - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """The model that P0 ends with: per level the features and thresholds, and the leaf labels."""

    features: tuple[NDArray[np.intp], ...]
    thresholds: tuple[NDArray[np.int64], ...]
    labels: NDArray[np.intp]
    n_classes: int

    def leaves(self, features: Integers) -> NDArray[np.intp]:
        """The leaf (trees, n) that each row of `features` (K, n) reaches in each tree."""
        n_trees, n = self.labels.shape[0], features.shape[1]
        node = np.zeros((n_trees, n), dtype=np.intp)
        trees = np.arange(n_trees)[:, None]
        for which, limit in zip(self.features, self.thresholds, strict=True):
            values = features[which[trees, node], np.arange(n)[None, :]]
            node = 2 * node + (values > limit[trees, node])
        return node

    def votes(self, features: Integers) -> NDArray[np.float64]:
        """The share of trees that vote for each class, (n, C)."""
        chosen = self.labels[np.arange(len(self.labels))[:, None], self.leaves(features)]
        return np.stack([(chosen == c).mean(axis=0) for c in range(self.n_classes)], axis=1)

    def to_arrays(self) -> Arrays:
        """The forest as arrays for a file."""
        return {
            "split_features": np.concatenate(self.features, axis=1).astype(np.int64),
            "split_thresholds": np.concatenate(self.thresholds, axis=1),
            "leaf_labels": self.labels.astype(np.int64),
        }


def forest_from_arrays(arrays: Mapping[str, NDArray[Any]], *, n_classes: int) -> Forest:
    """Read back `Forest.to_arrays`."""
    labels = arrays["leaf_labels"].astype(np.intp)
    # A complete tree: level l takes 2**l columns, and the leaves are one more than the splits.
    ends = np.cumsum([2**level for level in range(int(labels.shape[1]).bit_length() - 1)])[:-1]
    return Forest(
        features=tuple(np.split(arrays["split_features"].astype(np.intp), ends, axis=1)),
        thresholds=tuple(np.split(arrays["split_thresholds"], ends, axis=1)),
        labels=labels,
        n_classes=n_classes,
    )


def assemble(
    chosen: list[NDArray[np.int64]],
    labels: NDArray[np.int64],
    thresholds: Integers,
    shape: ForestShape,
) -> Forest:
    """P0's model from the opened columns of each level and the opened labels."""
    features, limits = [], []
    for level, columns in enumerate(chosen):
        allowed = level_features(shape=shape, level=level)
        place, rank = np.divmod(columns, shape.n_thresholds)
        feature = allowed[np.arange(shape.n_trees)[:, None], place]
        features.append(feature)
        limits.append(thresholds[feature, rank])
    return Forest(
        features=tuple(features),
        thresholds=tuple(limits),
        labels=labels.astype(np.intp),
        n_classes=shape.n_classes,
    )
