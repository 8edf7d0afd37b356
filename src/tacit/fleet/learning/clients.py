"""What a client computes before anything is randomized: the direction of its local update.

NumPy only: clients carry this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.learning.head import HeadModel, contrasts, feature_map, label_indices
from tacit.fleet.plan import FleetPlan, Training

_BATCH = 128  # clients whose directions are computed together


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """Clients of about equal size, padded with zero rows, which have no gradient."""

    clients: Integers
    rows: Floats  # (clients, series, features)
    truth: Floats  # (clients, series, classes), zero where padded
    sizes: Floats  # (clients, 1, 1)
    products: Floats  # (clients, series, series), inner products of the rows
    solver: Floats  # (clients, series, series), (products / size + ridge I)^-1
    ridge: float


@dataclass(frozen=True, slots=True)
class ClientBlock:
    """A `ClientGroup` that only knows where its rows lie; they are fetched for as long as needed.

    What it holds does not grow with the number of features.
    """

    clients: Integers
    places: Integers  # (clients, series), of the rows; any place where padded
    labels: Integers  # (clients, series), -1 where padded
    sizes: Integers  # (clients,)
    products: Floats
    solver: Floats
    ridge: float

    def fetched(
        self, rows: Floats, n_classes: int, chosen: NDArray[np.bool_] | None = None
    ) -> ClientGroup:
        """The chosen clients of the block with their rows."""
        wanted = slice(None) if chosen is None or np.all(chosen) else chosen
        own, truth = _padded(rows, self.places[wanted], self.labels[wanted], n_classes)
        return ClientGroup(
            self.clients[wanted],
            own,
            truth,
            self.sizes[wanted, None, None].astype(np.float64),
            self.products[wanted],
            self.solver[wanted],
            self.ridge,
        )


def _padded(
    rows: Floats, places: Integers, labels: Integers, n_classes: int
) -> tuple[Floats, Floats]:
    own = np.asarray(rows[places], dtype=np.float64)
    own[labels < 0] = 0.0
    # A row of zeros beyond the last class is the truth of what is not there.
    truth: Floats = np.eye(n_classes + 1, n_classes)[labels]
    return own, truth


def client_blocks(
    rows: Floats,
    labels: Integers,
    client: Integers,
    *,
    n_clients: int,
    n_classes: int,
    ridge: float = Training().local_ridge,
    series: Integers | None = None,
) -> list[ClientBlock]:
    """Clients of about equal size in blocks; every client must hold a series.

    `labels` and `client` go along with the rows, or with `series`, which says for every series of
    the fleet which row it is.
    """
    sizes = np.bincount(client, minlength=n_clients)
    if np.any(sizes == 0):
        raise TacitError(
            f"client {int(np.argmin(sizes))} holds no series; give every client at least one."
        )
    # Rounding sizes up to quarter octaves wastes at most a fifth on padding.
    padded = np.ceil(2.0 ** (np.ceil(np.log2(sizes) * 4) / 4)).astype(np.int64)
    order = np.argsort(client, kind="stable")
    starts = np.concatenate(([0], np.cumsum(sizes)))
    blocks = []
    for members in _alike(padded):
        width = padded[members[0]]
        held = np.arange(width) < sizes[members, None]
        index = order[np.where(held, starts[members, None] + np.arange(width), 0)]
        places = index if series is None else series[index]
        own_labels = np.where(held, labels[index], -1)
        own, _ = _padded(rows, places, own_labels, n_classes)
        products = own @ own.transpose(0, 2, 1)
        solver = np.linalg.inv(products / sizes[members, None, None] + ridge * np.eye(width))
        blocks.append(
            ClientBlock(members, places, own_labels, sizes[members], products, solver, ridge)
        )
    return blocks


def group_clients(
    rows: Floats,
    labels: Integers,
    client: Integers,
    *,
    n_clients: int,
    n_classes: int,
    ridge: float = Training().local_ridge,
) -> list[ClientGroup]:
    """All clients with their rows, for one matrix product per group."""
    blocks = client_blocks(
        rows, labels, client, n_clients=n_clients, n_classes=n_classes, ridge=ridge
    )
    return [block.fetched(rows, n_classes) for block in blocks]


def _alike(padded: Integers) -> list[Integers]:
    """Clients of one padded size, in batches that one core takes at a time."""
    same = [np.flatnonzero(padded == width) for width in np.unique(padded)]
    return [part for group in same for part in np.array_split(group, -(-len(group) // _BATCH))]


def _start_scores(weights: Floats, group: ClientGroup) -> Floats:
    """Contrast scores of every client's series; one product, not one per client."""
    flat = group.rows.reshape(-1, weights.shape[1]) @ weights.T
    return flat.reshape(*group.rows.shape[:2], len(weights))


def _errors(scores: Floats, truth: Floats) -> Floats:
    """Class probabilities minus the truth, (clients, series, classes)."""
    scores = scores - scores.max(axis=2, keepdims=True)
    chances: Floats = np.exp(scores)
    chances /= chances.sum(axis=2, keepdims=True)
    return chances - truth


def local_moves(weights: Floats, group: ClientGroup, *, n_steps: int, rate: float) -> Floats:
    """How far every client's weights move in plain gradient steps, (clients, K - 1, features).

    What FedAvg averages. Every step stays in the span of the client's rows, so the steps are
    taken on its errors with the inner products of its rows, and only the end is carried back.
    """
    contrast = contrasts(len(weights) + 1)
    start = _start_scores(weights, group)
    per_series = rate / group.sizes
    errors = np.zeros_like(start)
    for _ in range(n_steps):
        scores = (start - per_series * (group.products @ errors)) @ contrast
        errors = errors + _errors(scores, group.truth) @ contrast.T
    moves: Floats = (per_series * errors).transpose(0, 2, 1) @ group.rows
    return moves


def local_solutions(weights: Floats, group: ClientGroup, training: Training) -> Floats:
    """The update that would undo each client's errors, (clients, K - 1, features).

    The ridge regression of a client's softmax errors on its rows, series of rare classes
    weighted up. Against a plain gradient it asks for more in directions in which the client's
    rows vary little, which isotropic noise would otherwise drown.
    """
    if group.ridge != training.local_ridge:
        raise TacitError(
            f"these clients were prepared for local_ridge = {group.ridge:g}, the plan says "
            f"{training.local_ridge:g}; make the fleet with the plan's value."
        )
    contrast = contrasts(len(weights) + 1)
    errors = _errors(_start_scores(weights, group) @ contrast, group.truth)
    of_class = np.maximum(group.truth.sum(axis=1, keepdims=True), 1.0)
    errors *= (group.truth / of_class).sum(axis=2, keepdims=True) ** training.balance
    moves: Floats = (group.solver @ (errors @ contrast.T)).transpose(0, 2, 1) @ group.rows
    return moves


def local_directions(weights: Floats, group: ClientGroup, training: Training) -> Floats:
    """Every client's local solution for its report, (clients, dimension), of norm at most 1.

    A solution longer than `clip_norm` keeps only its direction; a shorter one is divided by
    `clip_norm`, so that a client whose series are fitted says little. The sensitivity is 2 whatever
    the data are. A `clip_norm` of 0 keeps directions alone.
    """
    moves = local_solutions(weights, group, training).reshape(len(group.clients), -1)
    norms = np.linalg.norm(moves, axis=1, keepdims=True)
    lengths = np.maximum(norms, training.clip_norm)
    return np.divide(moves, lengths, out=np.zeros_like(moves), where=norms > 1e-12)


def client_direction(
    model: HeadModel, X: Floats, y: Sequence[str] | NDArray[np.str_], plan: FleetPlan
) -> Floats:
    """One client's direction from its own series, as a deployed node computes it."""
    if len(X) == 0 or len(X) != len(y):
        raise TacitError(f"a client needs as many labels as series, got {len(X)} and {len(y)}.")
    rows = feature_map(plan).transform(np.asarray(X, dtype=np.float64))
    labels = label_indices(y, plan.classes)
    alone = np.zeros(len(y), dtype=np.int64)
    group = group_clients(
        rows,
        labels,
        alone,
        n_clients=1,
        n_classes=len(plan.classes),
        ridge=plan.training.local_ridge,
    )[0]
    direction: Floats = local_directions(model.weights, group, plan.training)[0]
    return direction
