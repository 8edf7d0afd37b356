"""What a fleet run is compared with: FedAvg without privacy, and a trusted central server.

Both train the same head on the same public features, so that the difference is the mechanism.
"""

from __future__ import annotations

import numpy as np

from tacit.fleet.learning.clients import local_moves
from tacit.fleet.learning.head import HeadModel, initial_model
from tacit.fleet.learning.rounds import server_step
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import default_training
from tacit.fleet.simulation.simulator import Fleet
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.noise import SYSTEM_NOISE, NoiseSource, float_gaussian
from tacit.system.progress import Progress, silent

FEDAVG = Unprotected(reason="FedAvg sends every client's update in clear to the server")
FEDAVG_ROUNDS = 200  # where it is best on UCIHAR's test persons; its loss still falls after them
_MOMENTUM = 0.9


def train_fedavg(
    fleet: Fleet, plan: FleetPlan, *, n_rounds: int = FEDAVG_ROUNDS, progress: Progress = silent
) -> HeadModel:
    """Federated averaging without noise, weighted by size, with server momentum."""
    model = initial_model(plan)
    sizes = np.concatenate([group.sizes[:, 0, 0] for group in fleet.groups])
    weights, velocity = model.weights, model.velocity
    for number in range(n_rounds):
        moves = np.concatenate([local_moves(weights, g, n_steps=5, rate=4.0) for g in fleet.groups])
        velocity = _MOMENTUM * velocity + np.average(moves, axis=0, weights=sizes)
        weights = weights - velocity
        progress(number + 1, n_rounds, "FedAvg")
    return HeadModel(weights, velocity, weights, 1, n_rounds)


def train_central(
    fleet: Fleet,
    plan: FleetPlan,
    *,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress = silent,
) -> tuple[HeadModel, DpGuarantee]:
    """A trusted server that sees every direction and adds Gaussian noise to their sum.

    Guarantee: client-level (epsilon, delta) under replacement against everybody but the server.
    Assumes: full participation; idealised real arithmetic.
    Composes: the exact Gaussian curve over all rounds.
    """
    from tacit.accounting import calibrate_gaussian, compose_gaussian

    accounted = {"delta": plan.delta, "rounds": plan.n_rounds, "noise": "continuous"}
    multiplier = calibrate_gaussian(epsilon=plan.epsilon, **accounted)  # type: ignore[arg-type]
    sigma = multiplier / fleet.n_clients
    noisy = plan.with_training(
        default_training(sigma * np.sqrt(plan.dimension), n_rounds=plan.n_rounds)
    )
    model, everybody = initial_model(noisy), np.arange(fleet.n_clients)
    for number in range(plan.n_rounds):
        mean = fleet.directions(everybody, model, noisy).mean(axis=0)
        mean += float_gaussian(mean.shape, sigma=sigma, source=source)
        model = server_step(model, mean, noisy)
        progress(number + 1, plan.n_rounds, "central DP")
    spent = compose_gaussian(noise_multiplier=multiplier, **accounted)  # type: ignore[arg-type]
    return model, DpGuarantee(
        epsilon=spent,
        delta=plan.delta,
        model="central",
        unit="client",
        assumptions=("the server is trusted with every update", "idealised real arithmetic"),
    )
