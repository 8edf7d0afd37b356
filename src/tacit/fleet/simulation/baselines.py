"""What a fleet run is compared with: FedAvg without privacy, and a trusted central server.

Both train the same head on the same public features, so that the difference is the mechanism.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.fleet.learning.clients import ClientGroup, local_moves
from tacit.fleet.learning.head import HeadModel, initial_model
from tacit.fleet.learning.rounds import server_step
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import default_training, run_noise
from tacit.fleet.simulation.fleet import Fleet, plain_sum
from tacit.guarantee import Unprotected
from tacit.noise import SYSTEM_NOISE, NoiseSource, float_gaussian
from tacit.system.progress import Progress, silent

FLOAT_NOISE = (
    "a baseline whose noise is drawn and added in float64: its last bits may give values away"
)
FEDAVG_ROUNDS = 200  # where it is best on UCIHAR's test persons; its loss still falls after them
_MOMENTUM = 0.9


def train_fedavg(
    fleet: Fleet, plan: FleetPlan, *, n_rounds: int = FEDAVG_ROUNDS, progress: Progress = silent
) -> HeadModel:
    """Federated averaging without noise, weighted by size, with server momentum."""
    model = initial_model(plan)
    n_series = sum(int(block.sizes.sum()) for block in fleet.blocks)
    weights, velocity = model.weights, model.velocity
    for number in range(n_rounds):
        moves = [_weighted_move(weights, group) for group in fleet.groups()]
        velocity = _MOMENTUM * velocity + np.sum(moves, axis=0) / n_series
        weights = weights - velocity
        progress(number + 1, n_rounds, "FedAvg")
    return HeadModel(weights, velocity, weights, 1, n_rounds)


def _weighted_move(weights: Floats, group: ClientGroup) -> Floats:
    """The sum of a block's moves, each as often as its client has series."""
    moves = local_moves(weights, group, n_steps=5, rate=4.0)
    total: Floats = np.tensordot(group.sizes[:, 0, 0], moves, axes=1)
    return total


def train_central(
    fleet: Fleet,
    plan: FleetPlan,
    *,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress = silent,
) -> tuple[HeadModel, Unprotected]:
    """A trusted server that sees every direction and adds Gaussian noise to their sum.

    Guarantee: none, because float64 draws the noise; its nominal epsilon is that of the exact
    Gaussian curve over all rounds, with full participation.
    """
    from tacit.accounting import calibrate_gaussian, compose_gaussian

    accounted = {"delta": plan.delta, "rounds": plan.n_rounds, "noise": "continuous"}
    multiplier = calibrate_gaussian(epsilon=plan.epsilon, **accounted)  # type: ignore[arg-type]
    sigma = multiplier / fleet.n_clients
    noise = run_noise(sigma * np.sqrt(plan.dimension), plan)
    noisy = plan.with_training(default_training(noise, plan))
    model, everybody = initial_model(noisy), np.arange(fleet.n_clients)
    for number in range(plan.n_rounds):
        total = fleet.total(everybody, model.weights, noisy.training, plain_sum)
        mean: Floats = total / fleet.n_clients
        mean += float_gaussian(mean.shape, sigma=sigma, source=source)
        model = server_step(model, mean, noisy)
        progress(number + 1, plan.n_rounds, "central DP")
    spent = compose_gaussian(noise_multiplier=multiplier, **accounted)  # type: ignore[arg-type]
    return model, Unprotected(reason=FLOAT_NOISE, nominal_epsilon=spent)
