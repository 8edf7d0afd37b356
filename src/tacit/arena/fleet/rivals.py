"""Rivals of the sound fleet: the same clients, features and client-level guarantee, other rules.

All train the fleet's linear head. Their clip norms, steps and rounds were chosen in their favour on
training parts (docs/decisions/2026-11-18-fleet-small-epsilons.md), and their noise is calibrated to
the real total when one client is replaced, whatever their papers or packages call epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.accounting import calibrate_gaussian, compose_gaussian
from tacit.arena.outcome import Method, Outcome
from tacit.arena.task import Task
from tacit.arrays import Floats, Integers
from tacit.data import Dataset
from tacit.errors import TacitError
from tacit.fleet.learning.clients import local_moves
from tacit.fleet.learning.head import class_scores, label_indices
from tacit.fleet.simulation.feature_rows import feature_rows
from tacit.fleet.simulation.fleet import Fleet, make_fleet
from tacit.guarantee import DpGuarantee
from tacit.noise import SYSTEM_NOISE, float_gaussian

DELTA = 1e-5
_LOCAL_STEPS, _LOCAL_RATE = 5, 4.0  # of a client's gradient descent, as in FedAvg
_FEDAVG_ROUNDS, _MOMENTUM = 40, 0.9
_FEDAVG_CLIPS = ((0.05, 0.1), (0.01, 0.3), (0.002, 1.0))  # by `one_shot_noise` above
_SPREAD = 1.2  # of the noise in every coordinate of the last iterate: the fleet's own rule
_DPSGD_STEPS, _DPSGD_CLIP = 80, 0.3
_CENTRAL = ("the server is trusted with every update", "idealised real arithmetic")


@dataclass(frozen=True, slots=True)
class Problem:
    """What every rival trains on; `plan` is that of our own mechanism, for its features."""

    fleet: Fleet
    test_rows: Floats
    truth: Integers
    shape: tuple[int, int]
    epsilon: float
    seed: int

    @property
    def one_shot_noise(self) -> float:
        """Noise of the mean of unit updates if all rounds were one: what steps are chosen by."""
        return multiplier(self.epsilon, rounds=1) / self.fleet.n_clients

    def outcome(self, weights: Floats, guarantee: DpGuarantee, **details: Any) -> Outcome:
        """The accuracy on series that no client holds."""
        chosen = class_scores(self.test_rows, weights).argmax(axis=1)
        return Outcome(
            accuracy=float(np.mean(chosen == self.truth)), guarantee=guarantee, details=details
        )


def multiplier(epsilon: float, *, rounds: int) -> float:
    """Gaussian noise of a sum, in clip norms, when one of its clients is replaced."""
    return calibrate_gaussian(epsilon=epsilon, delta=DELTA, rounds=rounds, noise="continuous")


def problem(task: Task, data: Dataset) -> Problem:
    """The deal and the features of `tacit train timefl` with these options."""
    from tacit.fleet.experiment import deal_out
    from tacit.fleet.reports.calibration import make_plan

    if task.epsilon is None:
        raise TacitError(f"{task.method} has no variant without noise; give an epsilon.")
    options: dict[str, Any] = dict(task.options)
    deal = deal_out(data, split=options["split"], n_clients=options["n_clients"], seed=task.seed)
    plan = make_plan(
        classes=tuple(sorted(data.classes)),
        n_channels=data.channels,
        length=data.length,
        mechanism="distributed",
        n_clients=options["n_clients"],
        epsilon=task.epsilon,
        delta=DELTA,
        n_rounds=80,
    )
    fleet = make_fleet(
        feature_rows(plan, deal.X_train),
        label_indices(deal.y_train, plan.classes),
        deal.client,
        n_clients=options["n_clients"],
        n_classes=len(plan.classes),
    )
    shape = (len(plan.classes) - 1, plan.n_features)
    truth = label_indices(deal.y_test, plan.classes)
    return Problem(fleet, feature_rows(plan, deal.X_test), truth, shape, task.epsilon, task.seed)


def client_moves(fleet: Fleet, weights: Floats) -> Floats:
    """How far FedAvg's local training moves every client's weights, (clients, K - 1, features)."""
    out = np.empty((fleet.n_clients, *weights.shape))
    for group in fleet.groups():
        out[group.clients] = local_moves(weights, group, n_steps=_LOCAL_STEPS, rate=_LOCAL_RATE)
    return out


def clipped(moves: Floats, clip_norm: float) -> Floats:
    """Every client's move, at most `clip_norm` long."""
    norms = np.linalg.norm(moves.reshape(len(moves), -1), axis=1)
    scale = np.minimum(1.0, clip_norm / np.maximum(norms, 1e-12))
    short: Floats = moves * scale[:, None, None]
    return short


def central_guarantee(epsilon: float) -> DpGuarantee:
    """What a trusted server's noise gives against everybody else."""
    return DpGuarantee(
        epsilon=epsilon, delta=DELTA, model="central", unit="client", assumptions=_CENTRAL
    )


def _fedavg_clip(noise: float) -> float:
    """Best of .1, .3, 1 and 3 on the training parts, 100 and 1000 clients, epsilon 8, 3 and 1."""
    return next((clip for least, clip in _FEDAVG_CLIPS if noise > least), 3.0)


def _dp_fedavg(task: Task, data: Dataset) -> Outcome:
    """Central DP-FedAvg: clipped moves, Gaussian noise on their mean, then server momentum."""
    given = problem(task, data)
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
    return given.outcome(weights, central_guarantee(spent), **details)


def gaussian_epsilon(noise: float, *, steps: int) -> float:
    """Epsilon by dp-accounting of Gaussian sums; `noise` is in clip norms, twice that is moved."""
    import dp_accounting
    from dp_accounting import pld

    accountant = pld.PLDAccountant()
    event = dp_accounting.GaussianDpEvent(noise / 2.0)
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, steps))
    return float(accountant.get_epsilon(DELTA))


def _client_dpsgd(task: Task, data: Dataset) -> Outcome:
    """DP-SGD as in Opacus with a client as the unit: one clipped gradient of every client.

    Batches are whole: with so few clients, sampling amplifies less than it loses in signal.
    """
    given = problem(task, data)
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
    guarantee = central_guarantee(gaussian_epsilon(noise, steps=_DPSGD_STEPS))
    return given.outcome(weights, guarantee, rounds=_DPSGD_STEPS, clip_norm=_DPSGD_CLIP)


def _flower(name: str) -> Method:
    def run(task: Task, data: Dataset) -> Outcome:
        from tacit.arena.fleet import flower

        rival: Callable[[Problem], Outcome] = getattr(flower, name)
        return rival(problem(task, data))

    return run


FLEET_METHODS: dict[str, Method] = {
    "dp-fedavg": _dp_fedavg,
    "client-dpsgd": _client_dpsgd,
    "flower-fixed": _flower("fixed_clipping"),
    "flower-adaptive": _flower("adaptive_clipping"),
    "flower-local": _flower("local_noise"),
}
