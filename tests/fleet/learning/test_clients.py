"""What clients compute: directions, gradients and local solutions."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.learning.clients import (
    group_clients,
    local_directions,
    local_moves,
    local_solutions,
)
from tacit.fleet.learning.head import class_scores, contrasts
from tacit.fleet.plan import Training


def test_batching_clients_changes_no_direction() -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 3, 5, 8, 13])
    client = np.repeat(np.arange(6), sizes)
    rows = rng.standard_normal((len(client), 7))
    labels = rng.integers(0, 3, len(client))
    weights = rng.standard_normal((2, 7))
    groups = group_clients(rows, labels, client, n_clients=6, n_classes=3)
    for group in groups:
        for place, c in enumerate(group.clients):
            own = client == c
            alone = group_clients(
                rows[own], labels[own], np.zeros(sizes[c], dtype=int), n_clients=1, n_classes=3
            )[0]
            np.testing.assert_allclose(
                local_moves(weights, group, n_steps=3, rate=4.0)[place],
                local_moves(weights, alone, n_steps=3, rate=4.0)[0],
                atol=1e-12,
            )
            np.testing.assert_allclose(
                local_solutions(weights, group, Training())[place],
                local_solutions(weights, alone, Training())[0],
                atol=1e-10,
            )


def test_the_local_step_is_the_gradient_of_the_softmax_loss() -> None:
    rng = np.random.default_rng(1)
    rows, labels = rng.standard_normal((6, 4)), rng.integers(0, 3, 6)
    group = group_clients(rows, labels, np.zeros(6, dtype=int), n_clients=1, n_classes=3)[0]
    weights = rng.standard_normal((2, 4))
    move = local_moves(weights, group, n_steps=1, rate=1.0)[0]

    def loss(w: Floats) -> float:
        scores = class_scores(rows, w)
        return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(6), labels]))

    for place in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[place] = 1e-6
        slope = (loss(weights + step) - loss(weights - step)) / 2e-6
        assert move[place] == pytest.approx(slope, abs=1e-8)


def test_the_local_solution_is_the_ridge_regression_of_the_balanced_errors() -> None:
    rng = np.random.default_rng(2)
    rows, labels = rng.standard_normal((7, 4)), np.array([0, 0, 0, 0, 1, 1, 2])
    group = group_clients(rows, labels, np.zeros(7, dtype=int), n_clients=1, n_classes=3)[0]
    weights = rng.standard_normal((2, 4))
    training = Training()
    scores = np.exp(class_scores(rows, weights))
    errors = scores / scores.sum(axis=1, keepdims=True) - np.eye(3)[labels]
    errors /= np.sqrt(np.bincount(labels)[labels])[:, None]
    contrast = contrasts(3)
    # The primal normal equations, where the code solves the dual ones.
    hessian = rows.T @ rows / 7 + training.local_ridge * np.eye(4)
    expected = np.linalg.solve(hessian, rows.T @ errors @ contrast.T).T
    np.testing.assert_allclose(local_solutions(weights, group, training)[0], expected)
    with pytest.raises(TacitError, match="local_ridge"):
        local_solutions(weights, group, Training(local_ridge=1.0))


def test_short_solutions_count_for_less_and_none_for_more_than_one() -> None:
    rng = np.random.default_rng(6)
    client = np.repeat(np.arange(5), 3)
    rows, labels = rng.standard_normal((15, 7)), rng.integers(0, 3, 15)
    group = group_clients(rows, labels, client, n_clients=5, n_classes=3)[0]
    weights = np.zeros((2, 7))
    lengths = np.linalg.norm(local_solutions(weights, group, Training()).reshape(5, -1), axis=1)
    clip_norm = float(np.median(lengths))
    found = local_directions(weights, group, Training(clip_norm=clip_norm))
    np.testing.assert_allclose(
        np.linalg.norm(found, axis=1), np.minimum(1.0, lengths / clip_norm), rtol=1e-12
    )
    alone = local_directions(weights, group, Training(clip_norm=0.0))
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1.0, rtol=1e-12)
