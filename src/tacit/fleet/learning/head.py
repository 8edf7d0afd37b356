"""The model: a linear head on the public features, as the server broadcasts it.

Softmax scores do not change when the same vector is added to every class, so weights live in the
space of class contrasts: K - 1 rows, not K, which saves part of the noise. NumPy only: clients
carry this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.features.feature_map import FeatureMap, public_features
from tacit.fleet.plan import FleetPlan


@dataclass(frozen=True, slots=True)
class HeadModel:
    """The server's state after `round_number` rounds; all of it is public.

    `weights` is what clients train from, `average` the mean of the last iterates, which predicts.
    """

    weights: Floats
    velocity: Floats
    average: Floats
    n_averaged: int
    round_number: int


def initial_model(plan: FleetPlan) -> HeadModel:
    """The zero head: a public start that favours no class."""
    zero = np.zeros((len(plan.classes) - 1, plan.n_features))
    return HeadModel(zero, zero, zero, 0, 0)


def feature_map(plan: FleetPlan) -> FeatureMap:
    """The public features that the plan names."""
    return public_features(
        n_channels=plan.n_channels,
        length=plan.length,
        n_kernels=plan.n_kernels,
        seed=plan.feature_seed,
        kind=plan.feature_kind,
    )


@lru_cache(maxsize=32)
def contrasts(n_classes: int) -> Floats:
    """Orthonormal rows (K - 1, K) that are orthogonal to the constant vector."""
    rows = np.tril(np.ones((n_classes - 1, n_classes)))
    rows[np.arange(n_classes - 1), np.arange(1, n_classes)] = -np.arange(1, n_classes)
    unit: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    unit.flags.writeable = False
    return unit


def class_scores(rows: Floats, weights: Floats) -> Floats:
    """Scores (n, K) of feature rows; softmax of them are the class probabilities."""
    scores: Floats = rows @ weights.T @ contrasts(len(weights) + 1)
    return scores


def label_indices(y: Sequence[str] | NDArray[np.str_], classes: tuple[str, ...]) -> Integers:
    """Position of every label in `classes`, or a refusal that names the first unknown one."""
    position = {label: index for index, label in enumerate(classes)}
    unknown = next((str(label) for label in y if str(label) not in position), None)
    if unknown is not None:
        raise TacitError(f"label {unknown!r} is not one of the plan's classes {list(classes)}.")
    return np.fromiter((position[str(label)] for label in y), dtype=np.int64, count=len(y))
