"""A whole fleet without a network: block by block of clients, with the real randomizers.

Deterministic given the split and the schedule, except for the noise, which comes from the
operating system; a test may pass a seeded source. What the simulator returns is what the deployed
analyser would know, and the same guarantee that it would state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.learning.head import HeadModel
from tacit.fleet.learning.rounds import server_step
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.reports.protocol import Report, RoundNotReleased
from tacit.fleet.simulation.checkpoint import (
    Schedule,
    SimulationCheckpoint,
    fresh,
    resume_checkpoint,
    save_checkpoint,
)
from tacit.fleet.simulation.fleet import Clients
from tacit.guarantee import DpGuarantee, Unprotected, rounded_up
from tacit.noise import SYSTEM_NOISE, NoiseSource
from tacit.system.progress import Progress, silent

_ACCOUNTED_ROUNDS = 8  # how often a run is accounted on its way


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRound:
    """One round as the public sees it. `epsilon_spent` bounds the total from above."""

    round_number: int
    n_reports: int
    released: bool
    epsilon_spent: float
    mean_norm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """The trained model with its guarantee; `client_epsilon` is what each client spent.

    `averages` are the weights that would have predicted after each round of this process; the
    models of all rounds are public.
    """

    model: HeadModel
    plan: FleetPlan
    guarantee: DpGuarantee | Unprotected
    history: tuple[SimulatedRound, ...]
    client_epsilon: Floats
    averages: tuple[Floats, ...]


def simulate(
    fleet: Clients,
    plan: FleetPlan,
    *,
    clients_per_round: int | None = None,
    local_epsilon: Sequence[float] | None = None,
    dropout: float = 0.0,
    rng: np.random.Generator,
    source: NoiseSource = SYSTEM_NOISE,
    progress: Progress = silent,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> SimulatedRun:
    """Run all rounds of the plan.

    Guarantee: the plan's client-level (epsilon, delta) under replacement; `SimulatedRun.guarantee`
    counts the reports that were really received.
    Assumes: the public `rng` decides only the order of clients and who drops out. A resumed run
    keeps the order of its checkpoint, so that no client's turn comes too often.
    Not covered: `local_epsilon` per client splits a batch: clients of different epsilon have
    different randomizers, so each hides only among those of equal epsilon, and is so accounted.
    """
    if not 0.0 <= dropout < 1.0:
        raise TacitError(f"dropout must lie in [0, 1), got {dropout!r}.")
    per_round = fleet.n_clients if clients_per_round is None else clients_per_round
    _check_turns(plan, n_clients=fleet.n_clients, per_round=per_round)
    groups = _epsilon_groups(plan, local_epsilon, fleet.n_clients, per_round)
    # Drawn by a resumed run as well: its dropouts then follow as in a run that was not stopped.
    drawn = Schedule(
        order=tuple(int(client) for client in rng.permutation(fleet.n_clients)),
        clients_per_round=per_round,
        local_epsilon=None if local_epsilon is None else tuple(float(e) for e in local_epsilon),
        deal=fleet.deal,
    )
    state = _start(plan, drawn, checkpoint, resume=resume)
    order = np.array(state.schedule.order)
    history: list[SimulatedRound] = []
    averages: list[Floats] = []
    for number in range(plan.n_rounds):
        places = (number * per_round + np.arange(per_round)) % fleet.n_clients
        members = order[places]
        # Drawn even for rounds that a resumed run skips, so that both see the same fleet.
        reporting = members[rng.random(per_round) >= dropout]
        if number < len(state.received):
            history.append(_remembered(number + 1, state.received[number], plan))
            continue
        state, record = _round(fleet, state, reporting, groups, source, checkpoint)
        history.append(record)
        averages.append(state.model.average)
        message = (
            f"epsilon spent {rounded_up(record.epsilon_spent)}" if record.epsilon_spent else ""
        )
        progress(number + 1, plan.n_rounds, message)
    return _finish(state, groups, history, averages)


def _check_turns(plan: FleetPlan, *, n_clients: int, per_round: int) -> None:
    """Refuse turns that come more often than the plan has calibrated and will account for."""
    if not 1 <= per_round <= n_clients:
        raise TacitError(
            f"clients_per_round must lie in 1..{n_clients}, the number of clients, got {per_round}."
        )
    most = -(-plan.n_rounds * per_round // n_clients)
    if most > plan.client_rounds:
        raise TacitError(
            f"{per_round} of {n_clients} clients per round would report in {most} rounds each and "
            f"the plan counts on {plan.client_rounds}; plan with the same clients_per_round."
        )


def _start(
    plan: FleetPlan, drawn: Schedule, checkpoint: Path | None, *, resume: bool
) -> SimulationCheckpoint:
    if not resume:
        if checkpoint is not None and checkpoint.exists():
            raise TacitError(
                f"{checkpoint} exists, and what a run has spent is in its checkpoint; go on with "
                "--resume, or choose another file."
            )
        return fresh(plan, drawn)
    if checkpoint is None:
        raise TacitError("resume needs the checkpoint of the run to continue; give its file.")
    return resume_checkpoint(checkpoint, plan, drawn)


def _remembered(round_number: int, n_reports: int, plan: FleetPlan) -> SimulatedRound:
    """A round before the resumption; its mean is gone, its cost is not."""
    return SimulatedRound(
        round_number=round_number,
        n_reports=n_reports,
        released=n_reports >= plan.n_min,
        epsilon_spent=0.0,
        mean_norm=0.0,
    )


@dataclass(frozen=True, slots=True)
class _EpsilonGroup:
    """Clients with one and the same randomizer, who hide among each other alone."""

    members: NDArray[np.bool_]
    report: Report


def _epsilon_groups(
    plan: FleetPlan, local_epsilon: Sequence[float] | None, n_clients: int, per_round: int
) -> list[_EpsilonGroup]:
    report = report_of(plan)
    if local_epsilon is None:
        return [_EpsilonGroup(np.ones(n_clients, dtype=bool), report)]
    values = np.asarray(local_epsilon, dtype=np.float64)
    if per_round != n_clients or values.shape != (n_clients,):
        raise TacitError(
            "a local epsilon per client needs full participation and one value for each of the "
            f"{n_clients} clients."
        )
    groups = []
    for value in np.unique(values):
        members = values == value
        size = int(np.count_nonzero(members))
        own = report.with_local_epsilon(float(value), n_min=size)
        promised = own.guarantee([size] * plan.n_rounds)
        if promised is None or promised.epsilon > plan.epsilon:
            raise TacitError(
                f"{size} clients with local epsilon {value:g} in {plan.n_rounds} rounds would "
                f"pass the total of {plan.epsilon:g}; give them a smaller one."
            )
        groups.append(_EpsilonGroup(members, own))
    return groups


def _round(
    fleet: Clients,
    state: SimulationCheckpoint,
    reporting: Integers,
    groups: list[_EpsilonGroup],
    source: NoiseSource,
    checkpoint: Path | None,
) -> tuple[SimulationCheckpoint, SimulatedRound]:
    """One round, entered in the books before anything of it is drawn."""
    plan = state.plan
    state = replace(state, received=(*state.received, max(1, len(reporting))))
    if checkpoint:
        save_checkpoint(checkpoint, state)
    try:
        mean = _release(fleet, state.model, reporting, groups, source)
        model, released = server_step(state.model, mean, plan), True
        norm = float(np.linalg.norm(mean))
    except RoundNotReleased:
        model, released, norm = state.model, False, 0.0
    state = replace(state, model=model)
    if checkpoint:
        save_checkpoint(checkpoint, state)
    return state, SimulatedRound(
        round_number=len(state.received),
        n_reports=len(reporting),
        released=released,
        epsilon_spent=_on_the_way(state, groups),
        mean_norm=norm,
    )


def _release(
    fleet: Clients,
    model: HeadModel,
    reporting: Integers,
    groups: list[_EpsilonGroup],
    source: NoiseSource,
) -> Floats:
    """The released mean; groups are weighted by the inverse variance of their means."""
    present = [reporting[group.members[reporting]] for group in groups]
    for group, members in zip(groups, present, strict=True):
        group.report.check_enough(len(members))
    means, weights = [], []
    for group, members in zip(groups, present, strict=True):
        total = fleet.total(
            members,
            model.weights,
            group.report.plan.training,
            partial(group.report.block_total, source=source),
            in_order=source is not SYSTEM_NOISE,
        )
        means.append(group.report.released_mean(total, len(members), source=source))
        weights.append(group.report.weight(len(members)))
    mean: Floats = np.average(np.array(means), axis=0, weights=weights)
    return mean


def _spent(received: Sequence[int], group: _EpsilonGroup) -> DpGuarantee | None:
    """What protects the clients of a group; a round with too few reports was never drawn."""
    n_min = group.report.plan.n_min
    released = [n for n in received if n >= n_min]
    # A group that is only a part of the batch is released complete or not at all.
    counted = released if np.all(group.members) else [n_min] * len(released)
    found = group.report.guarantee(counted)
    if found is None:
        return None
    return found


def _stated(spent: DpGuarantee, groups: list[_EpsilonGroup]) -> DpGuarantee | Unprotected:
    """What was spent, unless a shortcut that only a simulation takes left nothing to prove."""
    apart = next(filter(None, (group.report.simulated_apart for group in groups)), "")
    return Unprotected(reason=apart, nominal_epsilon=spent.epsilon) if apart else spent


def _on_the_way(state: SimulationCheckpoint, groups: list[_EpsilonGroup]) -> float:
    """Epsilon spent so far, accounted a few times per run; 0.0 in between means not accounted."""
    done, total = len(state.received), state.plan.n_rounds
    if done % max(1, total // _ACCOUNTED_ROUNDS) and done != total:
        return 0.0
    spent = [_spent(state.received, group) for group in groups]
    return max((g.epsilon for g in spent if g is not None), default=0.0)


def _finish(
    state: SimulationCheckpoint,
    groups: list[_EpsilonGroup],
    history: list[SimulatedRound],
    averages: list[Floats],
) -> SimulatedRun:
    plan = state.plan
    client_epsilon = np.zeros(len(groups[0].members))
    guarantees: list[DpGuarantee] = []
    for group in groups:
        spent = _spent(state.received, group)
        if spent is None:
            n_min = group.report.plan.n_min
            raise RoundNotReleased(
                f"no round had the {n_min} reports it needs; nothing was learned. Lower n_min when "
                "planning, or ask more clients per round."
            )
        client_epsilon[group.members] = spent.epsilon
        guarantees.append(spent)
    return SimulatedRun(
        model=state.model,
        plan=plan,
        guarantee=_stated(max(guarantees, key=lambda spent: spent.epsilon), groups),
        history=tuple(history),
        client_epsilon=client_epsilon,
        averages=tuple(averages),
    )
