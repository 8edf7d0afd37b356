"""Make a plan: the noise, the step and the rounds that keep a promised total."""

from __future__ import annotations

import math
from dataclasses import replace

from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon
from tacit.features.feature_map import FeatureKind
from tacit.fleet.plan import FleetPlan, PrivUnitSettings, Training
from tacit.fleet.reports.mechanisms import report_named, report_of


def make_plan(
    *,
    classes: tuple[str, ...],
    n_channels: int,
    length: int,
    mechanism: str,
    n_clients: int,
    epsilon: float = 8.0,
    delta: float = 1e-5,
    n_rounds: int = 40,
    clients_per_round: int | None = None,
    n_min: int | None = None,
    n_kernels: int = 256,
    training: Training | None = None,
) -> FleetPlan:
    """Calibrate a run so that its client-level total never passes (epsilon, delta).

    The calibration counts on `n_min` reports a round, by default all that are asked; more
    reports only strengthen it. With `clients_per_round` below `n_clients` the rounds go through
    the clients in turn, so that each takes part in ceil(n_rounds * per_round / n_clients) rounds.
    """
    per_round = n_clients if clients_per_round is None else clients_per_round
    check_at_least(n_clients, 2, name="n_clients")
    check_at_least(per_round, 2, name="clients_per_round")
    check_at_least(n_rounds, 1, name="n_rounds")
    if per_round > n_clients:
        raise TacitError(f"clients_per_round = {per_round} is above n_clients = {n_clients}.")
    _check_delta_of(delta, n_clients)
    least = per_round if n_min is None else check_at_least(n_min, 2, name="n_min")
    if least > per_round:
        raise TacitError(f"n_min = {least} is above the {per_round} clients asked per round.")
    draft = FleetPlan(
        classes=tuple(str(label) for label in classes),
        n_channels=n_channels,
        length=length,
        n_rounds=n_rounds,
        client_rounds=math.ceil(n_rounds * per_round / n_clients),
        n_min=least,
        epsilon=check_epsilon(epsilon),
        delta=check_delta(delta),
        settings=PrivUnitSettings(local_epsilon=1.0),
        n_kernels=n_kernels,
    )
    return _calibrated(draft, mechanism, per_round, training)


def _check_delta_of(delta: float, n_clients: int) -> None:
    """Of all clients, not of `n_min`: that is how many reports a batch may really hold."""
    if check_delta(delta) >= 1.0 / n_clients:
        raise TacitError(
            f"delta = {delta:g} is not below 1/{n_clients}, one over the number of clients: it "
            "would allow publishing one client's data outright; choose a smaller delta."
        )


def _calibrated(
    draft: FleetPlan, mechanism: str, n_most: int, training: Training | None
) -> FleetPlan:
    settings = report_named(mechanism).calibrate(draft, n_most=n_most)
    plan = replace(draft, settings=settings)
    noise = run_noise(report_of(plan).noise_norm(), plan)
    kind: FeatureKind = "coarse" if noise > _NOISY and plan.n_channels > 1 else "fine"
    return replace(plan, feature_kind=kind, training=training or default_training(noise, plan))


_LONG_RUN = 16  # rounds from which on the step is the fitted one
_NOISY = 0.015  # of `run_noise`: about epsilon 6 with 100 clients
_SPREAD = (1.2, 1.5)  # of the noise in a coordinate of the last iterate: least if noisy, most
_LAST = 0.01  # share of rounds that are averaged in a noisy run: the last, or very few


def run_noise(noise_norm: float, plan: FleetPlan) -> float:
    """The noise of one coordinate beside unit updates, if a run's rounds were added up.

    `noise_norm` is the expected L2 norm of the noise on a round's mean, a public number. Under a
    given total it hardly depends on how many rounds share it.
    """
    return max(noise_norm, 1e-3) / math.sqrt(plan.dimension * plan.n_rounds)


def default_training(noise: float, plan: FleetPlan) -> Training:
    """Public defaults for a run of this `run_noise`: the noisier, the shorter the server's step.

    The rules were fitted on public data: docs/decisions. A run steps by `noise_norm`^-1.5, but
    never so far that its noise spreads by more than 1.5 in a coordinate. A noisy run goes on at
    least until it has spread by 1.2, and keeps its last iterate: an average would throw away
    signal. Updates hardly shrink near the optimum, so a run of few rounds takes shorter steps, or
    it would end in the middle of a swing.
    """
    noise_norm = noise * math.sqrt(plan.dimension * plan.n_rounds)
    least, most = (spread / (noise * plan.n_rounds) for spread in _SPREAD)
    rate = min(60.0, most, 10.0 * noise_norm**-1.5)
    ramp = min(1.0, plan.n_rounds / _LONG_RUN)
    if noise <= _NOISY:
        return Training(server_rate=ramp * rate)
    return Training(server_rate=ramp * max(rate, least), averaged_share=_LAST)


def default_rounds(*, mechanism: str, n_clients: int) -> int:
    """A public default for the number of rounds when all clients take part in each."""
    return report_named(mechanism).default_rounds(n_clients)
