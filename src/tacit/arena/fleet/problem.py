"""What every rival of the sound fleet trains on, and how its noise is calibrated.

The same clients, features and client-level guarantee as ours; the noise is calibrated to the real
total when one client is replaced, whatever a paper or package calls epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.accounting import calibrate_gaussian
from tacit.arena.outcome import Outcome
from tacit.arena.task import Task
from tacit.arrays import Floats, Integers
from tacit.data import Dataset
from tacit.errors import TacitError
from tacit.fleet.learning.clients import local_moves
from tacit.fleet.learning.head import class_scores, label_indices
from tacit.fleet.simulation.baselines import FLOAT_NOISE
from tacit.fleet.simulation.feature_rows import feature_rows
from tacit.fleet.simulation.fleet import Fleet, make_fleet
from tacit.guarantee import Guarantee, Unprotected

DELTA = 1e-5
_LOCAL_STEPS, _LOCAL_RATE = 5, 4.0  # of a client's gradient descent, as in FedAvg


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

    def outcome(self, weights: Floats, guarantee: Guarantee, **details: Any) -> Outcome:
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


def nominal(epsilon: float) -> Unprotected:
    """The epsilon of a rival's noise in real numbers; nothing stands behind it in float64."""
    return Unprotected(reason=FLOAT_NOISE, nominal_epsilon=epsilon)
