"""The wire form of a round, the same for both mechanisms: what a client sends, what comes of it.

Client:   `client_messages(model, X, y, plan)` -> `messages_per_client(plan)` byte strings of
          `message_bytes(plan)` each, to be sealed one by one and handed to the shuffler.
Analyser: `collect(messages, plan)` -> `RoundSum`, or `RoundNotReleased` with too few reports;
          `round_update(model, round_sum, plan)` -> the next model;
          `guarantee_after(plan, received)` -> what a client in these rounds has spent.

NumPy only on the client's side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.learning.clients import client_direction
from tacit.fleet.learning.head import HeadModel
from tacit.fleet.learning.rounds import server_step
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports import distributed, privunit, shares
from tacit.guarantee import DpGuarantee
from tacit.noise import SYSTEM_NOISE, NoiseSource

Report = NDArray[np.float64] | NDArray[np.int64]


class RoundNotReleased(TacitError):
    """Too few valid reports came: nothing of the round is used or published."""


@dataclass(frozen=True, slots=True)
class RoundSum:
    """What a round reveals: the mean of `n` randomized directions; `refused` were out of range."""

    mean: Floats
    n: int
    refused: int


def local_report(
    model: HeadModel,
    X: Floats,
    y: Sequence[str] | NDArray[np.str_],
    plan: FleetPlan,
    *,
    source: NoiseSource = SYSTEM_NOISE,
) -> Report:
    """One client's randomized report. A `distributed` one must leave only as shares.

    Guarantee, Assumes, Composes, Not covered: see `privunit.randomize`, `distributed.randomize`.
    """
    direction = client_direction(model, X, y, plan)[None, :]
    if plan.mechanism == "privunit":
        real: Floats = privunit.randomize(direction, plan, source=source)[0]
        return real
    whole: NDArray[np.int64] = distributed.randomize(direction, plan, source=source)[0]
    return whole


def encode_report(
    report: Report, plan: FleetPlan, *, source: NoiseSource = SYSTEM_NOISE
) -> list[bytes]:
    """A report as messages of one size; `distributed` ones are split into shares here."""
    if plan.mechanism == "privunit":
        return [privunit.encode(np.asarray(report, dtype=np.float64), plan)]
    return shares.encode(shares.split(report.astype(np.int64), plan, source=source))


def decode_report(message: bytes, plan: FleetPlan) -> Floats:
    """A `privunit` report read back, or a refusal; shares mean nothing one by one."""
    return privunit.decode(message, plan)


def client_messages(
    model: HeadModel,
    X: Floats,
    y: Sequence[str] | NDArray[np.str_],
    plan: FleetPlan,
    *,
    source: NoiseSource = SYSTEM_NOISE,
) -> list[bytes]:
    """Everything one client sends in one round."""
    return encode_report(local_report(model, X, y, plan, source=source), plan, source=source)


def messages_per_client(plan: FleetPlan) -> int:
    """How many messages each client sends per round."""
    return 1 if plan.mechanism == "privunit" else shares.messages_per_client(plan)


def message_bytes(plan: FleetPlan) -> int:
    """The one size of every message of the run."""
    if plan.mechanism == "privunit":
        return privunit.message_bytes(plan)
    return shares.message_bytes(plan)


def collect(messages: Iterable[bytes], plan: FleetPlan) -> RoundSum:
    """Check and average a shuffled batch; the n that counts is the number of valid reports."""
    if plan.mechanism == "privunit":
        reports, refused = _valid_reports(messages, plan)
        return average(np.array(reports).reshape(-1, plan.dimension), plan, refused=refused)
    mixed = shares.combine(messages, plan)
    check_enough(mixed.n, plan)
    return RoundSum(distributed.mean_direction(mixed.total, mixed.n, plan), mixed.n, 0)


def _valid_reports(messages: Iterable[bytes], plan: FleetPlan) -> tuple[list[Floats], int]:
    valid, refused = [], 0
    for message in messages:
        try:
            valid.append(privunit.decode(message, plan))
        except TacitError:
            refused += 1
    return valid, refused


def average(reports: Floats, plan: FleetPlan, *, refused: int = 0) -> RoundSum:
    """The mean of `privunit` reports, if there are enough."""
    check_enough(len(reports), plan)
    return RoundSum(reports.mean(axis=0), len(reports), refused)


def check_enough(n: int, plan: FleetPlan) -> None:
    """Refuse to release a round with fewer valid reports than the calibration counts on."""
    if n < plan.n_min:
        raise RoundNotReleased(
            f"the round has {n} valid reports and needs {plan.n_min}; nothing of it is released."
        )


def round_update(model: HeadModel, round_sum: RoundSum, plan: FleetPlan) -> HeadModel:
    """The next model; post-processing of the released mean."""
    return server_step(model, round_sum.mean, plan)


def guarantee_after(plan: FleetPlan, received: Sequence[int]) -> DpGuarantee | None:
    """What protects every client of a run whose rounds had these numbers of valid reports.

    The one statement of a run, in simulation and in deployment. It is that of the worst client: in
    the rounds with the fewest reports, as often as the plan lets it take part.
    """
    received = sorted(received)[: plan.client_rounds]
    if plan.mechanism == "privunit":
        return privunit.spent(plan, received)
    return distributed.spent(plan, received)
