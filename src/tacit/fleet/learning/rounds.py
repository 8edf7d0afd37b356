"""What a round makes of the model; momentum and averaging see only what was released."""

from __future__ import annotations

from tacit.arrays import Floats
from tacit.fleet.learning.head import HeadModel
from tacit.fleet.plan import FleetPlan


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
