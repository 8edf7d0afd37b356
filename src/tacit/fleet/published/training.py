"""DP-TimeFL as published, complete, and without the promise it does not keep.

Clients train a 1D-CNN, take the difference to the global weights as their gradient, clip it, scale
extractor and classifier to (0, 1) by their own minimum and maximum, and add Laplace noise of scale
k/epsilon_t to the extractor and (1-k)/epsilon_t to the classifier (Eqs. 1-3). A shuffler delays
each upload by U(0, T), T the median of the clients' proposals; the server undoes the scaling with
the minima and maxima sent beside, averages and broadcasts. After every round a Gaussian moments
accountant gives delta, and the run stops when delta passes its limit.

Where the paper is silent: minima and maxima travel in clear (without them nothing can be
learned), the accountant's noise multiplier is 1 with sampling rate n/N, and epsilon_t shrinks
with the share of delta that is used up, to half of epsilon_0 at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon
from tacit.fleet.published.networks import (
    Parameters,
    TimeSeriesCnn,
    cnn_spec,
    new_network,
    parameters_of,
    predict_scores,
    train_clients,
)
from tacit.fleet.published.perturbation import (
    Part,
    clip_rows,
    delays,
    dynamic_epsilon,
    flatten,
    moments_delta,
    network_parts,
    perturb,
    unflatten,
)
from tacit.fleet.reports.linking import reidentification_rate
from tacit.guarantee import Unprotected
from tacit.noise import SYSTEM_NOISE, NoiseSource, float_gaussian
from tacit.system.progress import Progress, silent

Method = Literal["dptimefl", "fedavg", "cdpfl"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedConfig:
    """Table II of the paper where it says; `local_epochs` is 40 there."""

    method: Method = "dptimefl"
    n_rounds: int = 10
    clients_per_round: int = 40
    local_epochs: int = 5
    batch_size: int = 28
    rate: float = 0.1
    clip_norm: float = 5.0
    epsilon_0: float = 8.0
    delta_limit: float = 0.1
    noise_multiplier: float = 1.0
    light: bool = True

    def __post_init__(self) -> None:
        if self.method not in ("dptimefl", "fedavg", "cdpfl"):
            raise TacitError(f"unknown method {self.method!r}; use dptimefl, fedavg or cdpfl.")
        for name in ("n_rounds", "clients_per_round", "local_epochs", "batch_size"):
            check_at_least(getattr(self, name), 1, name=name)
        for name in ("rate", "clip_norm", "epsilon_0", "noise_multiplier"):
            check_epsilon(getattr(self, name), name=name)
        check_delta(self.delta_limit, name="delta_limit")


def table_two(*, n_clients: int, **changes: object) -> PublishedConfig:
    """The paper's settings for N = 100 or 1000; fewer clients keep the rate of 40 in 100."""
    many = n_clients >= 500
    settings: dict[str, object] = {
        "clients_per_round": 100 if many else max(1, round(0.4 * min(n_clients, 100))),
        "delta_limit": 0.001 if many else 0.1,
        "batch_size": 8 if many else 28,
        "n_rounds": 40 if many else 10,
    }
    return PublishedConfig(**{**settings, **changes})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRound:
    """One round: the nominal epsilon_t, the accountant's delta, and what linking achieved."""

    round_number: int
    epsilon_t: float
    delta: float
    reidentification: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """The weights, the guarantee there really is, and why the run ended."""

    network: TimeSeriesCnn
    weights: Parameters
    guarantee: Unprotected
    history: tuple[PublishedRound, ...]
    stopped: str
    trajectory: tuple[Parameters, ...]

    @property
    def reidentification(self) -> float | None:
        """Mean share of reports joined to their senders, over the rounds in which it was tried."""
        rates = [r.reidentification for r in self.history if r.reidentification is not None]
        return float(np.mean(rates)) if rates else None

    def scores(self, X: Floats, weights: Parameters | None = None) -> Floats:
        """Class scores of series (n, channels, length), with the last or any earlier weights."""
        chosen = self.weights if weights is None else weights
        values = predict_scores(self.network, chosen, torch.from_numpy(X).float())
        return values.double().numpy()


def true_guarantee(config: PublishedConfig, *, dimension: int) -> Unprotected:
    """What the published mechanism really gives, with the number that its claim hides."""
    if config.method == "fedavg":
        return Unprotected(reason="FedAvg sends every client's update in clear to the server")
    if config.method == "cdpfl":
        return Unprotected(
            reason=(
                "the clip norm is fixed but delta is taken from the leading term of the moments "
                "accountant, which is no bound, and the server sees every update in clear"
            ),
            nominal_epsilon=config.epsilon_0,
        )
    real = dimension * config.epsilon_0 / 0.5
    return Unprotected(
        reason=(
            f"the gradient has {dimension:,} coordinates of sensitivity 1 each, so one report is "
            f"about {real:,.0f}-LDP, minima and maxima travel in clear, and Laplace noise is "
            "accounted as if it were Gaussian"
        ),
        nominal_epsilon=config.epsilon_0,
    )


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


def run_published(
    data: ClientData,
    config: PublishedConfig,
    *,
    n_classes: int,
    k: float | Sequence[float] = 0.5,
    proposals: Sequence[float] | None = None,
    seed: int,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress = silent,
) -> PublishedRun:
    """Train as published, or one of its two rivals, and measure how well reports can be linked.

    `k` is the privacy coefficient, one for all or one per client; `proposals` are the clients'
    suggested longest delays.
    """
    n_clients = len(data.rows)
    coefficients = _coefficients(k, n_clients)
    proposed_delays = (
        np.ones(n_clients) if proposals is None else np.asarray(proposals, dtype=np.float64)
    )
    rng = np.random.default_rng(seed)
    spec = cnn_spec(
        n_channels=data.X.shape[1],
        length=data.X.shape[2],
        n_classes=n_classes,
        light=config.light,
    )
    network = new_network(spec, seed=seed)
    weights, parts = parameters_of(network), network_parts(network)
    history: list[PublishedRound] = []
    trajectory: list[Parameters] = []
    stopped = "all rounds done"
    delta = 0.0
    for number in range(1, config.n_rounds + 1):
        epsilon_t = dynamic_epsilon(config.epsilon_0, delta, config.delta_limit)
        after = _delta_after(number, n_clients, config)
        if config.method != "fedavg" and after > config.delta_limit:
            stopped = f"delta {after:.3g} would pass its limit {config.delta_limit:g}"
            break
        delta = after
        members = rng.choice(n_clients, min(config.clients_per_round, n_clients), replace=False)
        updates = _local_updates(network, weights, data, members, config, rng)
        mean, linked = _aggregate(
            updates, parts, coefficients[members], proposed_delays, epsilon_t, config, source
        )
        weights = unflatten(_flat(weights) - mean, weights)
        trajectory.append(weights)
        history.append(
            PublishedRound(
                round_number=number, epsilon_t=epsilon_t, delta=delta, reidentification=linked
            )
        )
        progress(number, config.n_rounds, f"nominal delta {delta:.3g}")
    dimension = sum(value.numel() for value in weights.values())
    return PublishedRun(
        network=network,
        weights=weights,
        guarantee=true_guarantee(config, dimension=dimension),
        history=tuple(history),
        stopped=stopped,
        trajectory=tuple(trajectory),
    )


def _coefficients(k: float | Sequence[float], n_clients: int) -> Floats:
    values = np.broadcast_to(np.asarray(k, dtype=np.float64), (n_clients,))
    if not np.all((values > 0.0) & (values < 1.0)):
        raise TacitError(f"the privacy coefficient k must lie strictly in (0, 1), got {k!r}.")
    return values


def _delta_after(rounds: int, n_clients: int, config: PublishedConfig) -> float:
    return moments_delta(
        rounds=rounds,
        rate=min(1.0, config.clients_per_round / n_clients),
        noise_multiplier=config.noise_multiplier,
        epsilon=config.epsilon_0,
    )


def _flat(weights: Parameters) -> Floats:
    flat: Floats = flatten({name: value[None] for name, value in weights.items()})[0]
    return flat


def _local_updates(
    network: TimeSeriesCnn,
    weights: Parameters,
    data: ClientData,
    members: Integers,
    config: PublishedConfig,
    rng: np.random.Generator,
) -> Floats:
    batches = draw_batches(data, members, config, rng)
    trained = train_clients(network, weights, batches, rate=config.rate)
    updates: Floats = _flat(weights)[None, :] - flatten(trained)
    return updates


def _aggregate(
    updates: Floats,
    parts: tuple[Part, Part],
    k: Floats,
    proposed_delays: Floats,
    epsilon_t: float,
    config: PublishedConfig,
    source: NoiseSource,
) -> tuple[Floats, float | None]:
    """The server's mean update, and the share of messages it could join to their senders."""
    if config.method == "fedavg":
        return updates.mean(axis=0), None
    clipped = clip_rows(updates, config.clip_norm)
    if config.method == "cdpfl":
        sigma = config.noise_multiplier * config.clip_norm / len(clipped)
        noise = float_gaussian(clipped.shape[1:], sigma=sigma, source=source)
        return clipped.mean(axis=0) + noise, None
    noisy, undone = perturb(clipped, parts, k=k, epsilon=epsilon_t, source=source)
    # The server reads messages in the order in which the delays let them arrive.
    order = np.argsort(delays(len(noisy), proposed_delays, source=source))
    linked = reidentification_rate(noisy[order], clipped, order)
    return undone[order].mean(axis=0), linked
