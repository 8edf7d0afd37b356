"""DP-TimeFL as published, complete, and without the promise it does not keep.

Clients train a 1D-CNN, take the difference to the global weights as their gradient, clip it, scale
extractor and classifier to (0, 1) by their own minimum and maximum, and add Laplace noise of scale
k/epsilon_t to the extractor and (1-k)/epsilon_t to the classifier (Eqs. 1-3). A shuffler delays
each upload by U(0, T), T the median of the clients' proposals; the server undoes the scaling with
the minima and maxima sent beside, averages and broadcasts. After every round a Gaussian moments
accountant gives delta, and the run ends before delta passes its limit; else when it converged.

Where the paper is silent: minima and maxima travel in clear (without them nothing can be
learned), the accountant's noise multiplier is 1 with sampling rate n/N, epsilon_t shrinks with the
share of delta that is used up, to half of epsilon_0 at most, and a run has converged when the
asked clients' training accuracy no longer rises (`PublishedConfig`). CDP-FL draws each client with
probability n/N, because its accountant assumes it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tacit.accounting import calibrate_gaussian
from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.published.clients import ClientData, accuracy_on, local_updates
from tacit.fleet.published.networks import (
    Parameters,
    TimeSeriesCnn,
    cnn_spec,
    new_network,
    parameters_of,
    predict_scores,
)
from tacit.fleet.published.perturbation import (
    Part,
    clip_rows,
    delays,
    dynamic_epsilon,
    flat_weights,
    moments_delta,
    network_parts,
    perturb,
    unflatten,
)
from tacit.fleet.published.settings import PublishedConfig
from tacit.fleet.reports.linking import reidentification_rate
from tacit.guarantee import Unprotected
from tacit.noise import SYSTEM_NOISE, NoiseSource, float_gaussian
from tacit.system.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRound:
    """One round: the nominal epsilon_t, the accountant's delta, and what linking achieved.

    `training_accuracy` is the share of the asked clients' own series that the weights before the
    round classify rightly; the server learns it in clear, to see when the run has converged.
    """

    round_number: int
    epsilon_t: float
    delta: float
    reidentification: float | None
    training_accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """The weights, the guarantee there really is, and why the run ended.

    `ended_by` is "delta", "convergence" or "rounds"; `stopped` says it in words.
    """

    network: TimeSeriesCnn
    weights: Parameters
    guarantee: Unprotected
    history: tuple[PublishedRound, ...]
    ended_by: str
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
                f"the server sees every update in clear; its noise is calibrated to "
                f"({config.epsilon_0:g}, {config.delta_limit:g}) per client against all others, "
                "but the clip norm may have been chosen on the clients' series, which no account "
                "covers, and clients are drawn by a seeded generator"
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
class _Fleet:
    """What stays the same over a run."""

    data: ClientData
    network: TimeSeriesCnn
    parts: tuple[Part, Part]
    k: Floats
    proposals: Floats
    config: PublishedConfig
    source: NoiseSource

    @property
    def rate(self) -> float:
        """The share of clients that a round asks."""
        return min(1.0, self.config.clients_per_round / len(self.data.rows))


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
    suggested longest delays T_i, one for all or one per client.
    """
    network = _network(data, config, n_classes=n_classes, seed=seed)
    fleet = _Fleet(
        data,
        network,
        network_parts(network),
        _coefficients(k, len(data.rows)),
        _proposals(proposals, len(data.rows)),
        config,
        source,
    )
    noise = central_noise(config, rate=fleet.rate) if config.method == "cdpfl" else 0.0
    return _run(fleet, seed=seed, noise=noise, progress=progress)


def _run(fleet: _Fleet, *, seed: int, noise: float, progress: Progress) -> PublishedRun:
    config, rng = fleet.config, np.random.default_rng(seed)
    weights = parameters_of(fleet.network)
    history: list[PublishedRound] = []
    trajectory: list[Parameters] = []
    end: tuple[str, str] | None = None
    while end is None:
        number, delta = len(history) + 1, history[-1].delta if history else 0.0
        after = _delta_after(fleet, number)
        end = _reason_to_end(config, [r.training_accuracy for r in history], after)
        if end is not None:
            break
        epsilon_t = dynamic_epsilon(config.epsilon_0, delta, config.delta_limit)
        members = _members(fleet, rng)
        accuracy = accuracy_on(fleet.network, weights, fleet.data, members)
        updates = local_updates(fleet.network, weights, fleet.data, members, config, rng)
        mean, linked = _aggregate(fleet, updates, members, epsilon_t, noise)
        weights = unflatten(flat_weights(weights) - mean, weights)
        trajectory.append(weights)
        history.append(
            PublishedRound(
                round_number=number,
                epsilon_t=epsilon_t,
                delta=after,
                reidentification=linked,
                training_accuracy=accuracy,
            )
        )
        progress(number, config.n_rounds, f"nominal delta {after:.3g}")
    dimension = sum(value.numel() for value in weights.values())
    return PublishedRun(
        network=fleet.network,
        weights=weights,
        guarantee=true_guarantee(config, dimension=dimension),
        history=tuple(history),
        ended_by=end[0],
        stopped=end[1],
        trajectory=tuple(trajectory),
    )


def _reason_to_end(
    config: PublishedConfig, accuracies: Sequence[float], delta: float
) -> tuple[str, str] | None:
    """Why no further round is run, `delta` being what it would bring the accountant to."""
    if len(accuracies) >= config.n_rounds:
        return "rounds", "all rounds done"
    if config.method == "dptimefl" and delta > config.delta_limit:
        return "delta", f"delta {delta:.3g} would pass its limit {config.delta_limit:g}"
    if config.method != "cdpfl" and converged(
        accuracies, window=config.window, least_gain=config.least_gain
    ):
        return "convergence", (
            f"training accuracy rose by less than {config.least_gain:g} in {config.window} rounds"
        )
    return None


def converged(accuracies: Sequence[float], *, window: int, least_gain: float) -> bool:
    """Whether the mean over the last `window` rounds is hardly above that of those before."""
    if len(accuracies) < 2 * window:
        return False
    last, before = accuracies[-window:], accuracies[-2 * window : -window]
    return float(np.mean(last) - np.mean(before)) < least_gain


def _network(
    data: ClientData, config: PublishedConfig, *, n_classes: int, seed: int
) -> TimeSeriesCnn:
    spec = cnn_spec(
        n_channels=data.X.shape[1],
        length=data.X.shape[2],
        n_classes=n_classes,
        light=config.network == "light",
    )
    return new_network(spec, seed=seed)


def _coefficients(k: float | Sequence[float], n_clients: int) -> Floats:
    values = np.broadcast_to(np.asarray(k, dtype=np.float64), (n_clients,))
    if not np.all((values > 0.0) & (values < 1.0)):
        raise TacitError(f"the privacy coefficient k must lie strictly in (0, 1), got {k!r}.")
    return values


def _proposals(proposals: Sequence[float] | None, n_clients: int) -> Floats:
    values = np.asarray([1.0] if proposals is None else proposals, dtype=np.float64)
    if len(values) not in (1, n_clients) or not np.all((values > 0.0) & np.isfinite(values)):
        raise TacitError(
            "the proposed delays T_i must be above 0, one for all or one for each of the "
            f"{n_clients} clients; got {len(values)}."
        )
    return values


def _delta_after(fleet: _Fleet, rounds: int) -> float:
    """What the published accountant says; the rivals have none that runs along."""
    if fleet.config.method != "dptimefl":
        return 0.0
    return moments_delta(
        rounds=rounds,
        rate=fleet.rate,
        noise_multiplier=fleet.config.noise_multiplier,
        epsilon=fleet.config.epsilon_0,
    )


def central_noise(config: PublishedConfig, *, rate: float) -> float:
    """CDP-FL's noise multiplier: all planned rounds together are (epsilon, delta) per client."""
    return _calibrated(config.epsilon_0, config.delta_limit, config.n_rounds, rate)


@functools.lru_cache(maxsize=16)
def _calibrated(epsilon: float, delta: float, rounds: int, rate: float) -> float:
    """Kept, because it takes seconds and every clip norm that is tried needs the same."""
    return calibrate_gaussian(
        epsilon=epsilon,
        delta=delta,
        rounds=rounds,
        neighbours="add-remove",
        noise="continuous",
        sampling_rate=rate,
    )


def _members(fleet: _Fleet, rng: np.random.Generator) -> Integers:
    n_clients = len(fleet.data.rows)
    if fleet.config.method == "cdpfl":
        return np.flatnonzero(rng.random(n_clients) < fleet.rate)
    return rng.choice(n_clients, min(fleet.config.clients_per_round, n_clients), replace=False)


def _aggregate(
    fleet: _Fleet, updates: Floats, members: Integers, epsilon_t: float, noise: float
) -> tuple[Floats, float | None]:
    """The server's mean update, and the share of messages it could join to their senders."""
    config, source = fleet.config, fleet.source
    if config.method == "fedavg":
        return updates.mean(axis=0), None
    clipped = clip_rows(updates, config.clip_norm)
    if config.method == "cdpfl":
        expected = fleet.rate * len(fleet.data.rows)
        sigma = noise * config.clip_norm / expected
        return clipped.sum(axis=0) / expected + float_gaussian(
            clipped.shape[1:], sigma=sigma, source=source
        ), None
    noisy, undone = perturb(
        clipped, fleet.parts, k=fleet.k[members], epsilon=epsilon_t, source=source
    )
    # The server reads messages in the order in which the delays let them arrive.
    order = np.argsort(delays(len(noisy), fleet.proposals, source=source))
    linked = reidentification_rate(noisy[order], clipped, order) if len(noisy) > 1 else None
    return undone[order].mean(axis=0), linked
