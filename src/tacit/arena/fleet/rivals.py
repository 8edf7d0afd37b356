"""Rivals of the sound fleet: the same clients, features and client-level guarantee, other rules.

All train the fleet's linear head. Their clip norms, steps and rounds were chosen in their favour on
training parts (docs/decisions/2026-11-18-fleet-small-epsilons.md), and their noise is calibrated to
the real total when one client is replaced, whatever their papers or packages call epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.accounting import compose_gaussian
from tacit.arena.fleet import flower
from tacit.arena.fleet.problem import (
    DELTA,
    Problem,
    client_moves,
    clipped,
    multiplier,
    nominal,
    problem,
)
from tacit.arena.outcome import Method, Outcome
from tacit.arena.task import Task
from tacit.data import Dataset
from tacit.fleet.learning.clients import local_moves
from tacit.noise import SYSTEM_NOISE, float_gaussian

_FEDAVG_ROUNDS, _MOMENTUM = 40, 0.9
_FEDAVG_CLIPS = ((0.05, 0.1), (0.01, 0.3), (0.002, 1.0))  # by `one_shot_noise` above
_SPREAD = 1.2  # of the noise in every coordinate of the last iterate: the fleet's own rule
_DPSGD_STEPS, _DPSGD_CLIP = 80, 0.3


def _fedavg_clip(noise: float) -> float:
    """Best of .1, .3, 1 and 3 on the training parts, 100 and 1000 clients, epsilon 8, 3 and 1."""
    return next((clip for least, clip in _FEDAVG_CLIPS if noise > least), 3.0)


def _dp_fedavg(given: Problem) -> Outcome:
    """Central DP-FedAvg: clipped moves, Gaussian noise on their mean, then server momentum."""
    clip_norm = _fedavg_clip(given.one_shot_noise)
    noise = multiplier(given.epsilon, rounds=_FEDAVG_ROUNDS)
    weights, velocity = np.zeros(given.shape), np.zeros(given.shape)
    for _ in range(_FEDAVG_ROUNDS):
        mean = clipped(client_moves(given.fleet, weights), clip_norm).mean(axis=0)
        sigma = noise * clip_norm / given.fleet.n_clients
        mean += float_gaussian(given.shape, sigma=sigma, source=SYSTEM_NOISE)
        velocity = _MOMENTUM * velocity + mean
        weights = weights - velocity
    spent = compose_gaussian(
        noise_multiplier=noise, delta=DELTA, rounds=_FEDAVG_ROUNDS, noise="continuous"
    )
    details = {"rounds": _FEDAVG_ROUNDS, "clip_norm": clip_norm}
    return given.outcome(weights, nominal(spent), **details)


def gaussian_epsilon(noise: float, *, steps: int) -> float:
    """Epsilon by dp-accounting of Gaussian sums; `noise` is in clip norms, twice that is moved."""
    import dp_accounting
    from dp_accounting import pld

    accountant = pld.PLDAccountant()
    event = dp_accounting.GaussianDpEvent(noise / 2.0)
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, steps))
    return float(accountant.get_epsilon(DELTA))


def _client_dpsgd(given: Problem) -> Outcome:
    """DP-SGD as in Opacus with a client as the unit: one clipped gradient of every client.

    Batches are whole: with so few clients, sampling amplifies less than it loses in signal.
    """
    noise = multiplier(given.epsilon, rounds=_DPSGD_STEPS)
    sigma = noise * _DPSGD_CLIP / given.fleet.n_clients
    rate = _SPREAD / (sigma * math.sqrt(_DPSGD_STEPS))
    weights = np.zeros(given.shape)
    for _ in range(_DPSGD_STEPS):
        gradients = [local_moves(weights, g, n_steps=1, rate=1.0) for g in given.fleet.groups()]
        total = sum(clipped(part, _DPSGD_CLIP).sum(axis=0) for part in gradients)
        mean = np.asarray(total) / given.fleet.n_clients
        mean += float_gaussian(given.shape, sigma=sigma, source=SYSTEM_NOISE)
        weights = weights - rate * mean
    guarantee = nominal(gaussian_epsilon(noise, steps=_DPSGD_STEPS))
    return given.outcome(weights, guarantee, rounds=_DPSGD_STEPS, clip_norm=_DPSGD_CLIP)


def _on(rival: Callable[[Problem], Outcome]) -> Method:
    def run(task: Task, data: Dataset) -> Outcome:
        return rival(problem(task, data))

    return run


FLEET_METHODS: dict[str, Method] = {
    "dp-fedavg": _on(_dp_fedavg),
    "client-dpsgd": _on(_client_dpsgd),
    "flower-fixed": _on(flower.fixed_clipping),
    "flower-adaptive": _on(flower.adaptive_clipping),
    "flower-local": _on(flower.local_noise),
}
