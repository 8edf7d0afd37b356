"""One round: what a client sends, and what the server makes of the released mean.

NumPy only: clients carry this module.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.fleet.learning.clients import client_direction
from tacit.fleet.learning.head import HeadModel
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.reports.protocol import Parts
from tacit.noise import SYSTEM_NOISE, NoiseSource


def client_messages(
    model: HeadModel,
    X: Floats,
    y: Sequence[str] | NDArray[np.str_],
    plan: FleetPlan,
    *,
    source: NoiseSource = SYSTEM_NOISE,
) -> Parts:
    """Everything one client sends in one round.

    Guarantee, Assumes, Composes, Not covered: see `Report.randomize` of the plan's mechanism.
    """
    report = report_of(plan)
    direction = client_direction(model, X, y, plan)
    return report.encode(report.randomize(direction[None, :], source=source)[0], source=source)


def server_step(model: HeadModel, mean_direction: Floats, plan: FleetPlan) -> HeadModel:
    """Apply a round's mean: momentum and averaging are post-processing and cost no privacy."""
    training = plan.training
    velocity = training.momentum * model.velocity + mean_direction.reshape(model.weights.shape)
    weights = model.weights - training.server_rate * velocity
    done = model.round_number + 1
    first = int(plan.n_rounds * (1.0 - training.averaged_share))
    n_averaged = model.n_averaged + 1 if done > first else 1
    average = weights if n_averaged == 1 else model.average + (weights - model.average) / n_averaged
    return HeadModel(weights, velocity, average, n_averaged, done)
