"""The simulated clients of the published mode: their series, their batches, their updates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.published.networks import Parameters, TimeSeriesCnn, predict_scores, train_clients
from tacit.fleet.published.perturbation import flat_weights, flatten
from tacit.fleet.published.settings import PublishedConfig


@dataclass(frozen=True, slots=True)
class ClientData:
    """Series and labels in torch, and which rows belong to which client."""

    X: Tensor
    labels: Tensor
    rows: tuple[Integers, ...]


def client_data(X: Floats, labels: Integers, client: Integers, *, n_clients: int) -> ClientData:
    """Sort series by client; every client must hold at least one."""
    rows = tuple(np.flatnonzero(client == c) for c in range(n_clients))
    if any(len(held) == 0 for held in rows):
        raise TacitError("a client holds no series; use fewer clients.")
    return ClientData(torch.from_numpy(X).float(), torch.from_numpy(labels), rows)


def draw_batches(
    data: ClientData, members: Integers, config: PublishedConfig, rng: np.random.Generator
) -> list[tuple[Tensor, Tensor]]:
    """Shuffled mini-batches of all members side by side; short ones are padded with label -1."""
    most = max(len(data.rows[c]) for c in members)
    n_batches = math.ceil(most / config.batch_size)
    width = math.ceil(most / n_batches)
    batches = []
    for _ in range(config.local_epochs):
        index = np.zeros((len(members), n_batches * width), dtype=np.int64)
        held = np.zeros(index.shape, dtype=bool)
        for place, c in enumerate(members):
            own = rng.permutation(data.rows[c])
            index[place, : len(own)], held[place, : len(own)] = own, True
        for start in range(0, index.shape[1], width):
            chosen = torch.from_numpy(index[:, start : start + width])
            mask = torch.from_numpy(held[:, start : start + width])
            batches.append((data.X[chosen], data.labels[chosen].masked_fill(~mask, -1)))
    return batches


def local_updates(
    network: TimeSeriesCnn,
    weights: Parameters,
    data: ClientData,
    members: Integers,
    config: PublishedConfig,
    rng: np.random.Generator,
) -> Floats:
    """What every member sends as its gradient: the way back from its weights to the global ones."""
    if not len(members):
        return np.empty((0, sum(value.numel() for value in weights.values())))
    batches = draw_batches(data, members, config, rng)
    trained = train_clients(network, weights, batches, rate=config.rate)
    updates: Floats = flat_weights(weights)[None, :] - flatten(trained)
    return updates


def accuracy_on(
    network: TimeSeriesCnn, weights: Parameters, data: ClientData, members: Integers
) -> float:
    """Share of the members' own series that the weights classify rightly."""
    if not len(members):
        return math.nan
    rows = torch.from_numpy(np.concatenate([data.rows[c] for c in members]))
    guessed = predict_scores(network, weights, data.X[rows]).argmax(dim=1)
    return float((guessed == data.labels[rows]).double().mean())
