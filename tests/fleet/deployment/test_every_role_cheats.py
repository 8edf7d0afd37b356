"""Two whole runs in which every role cheats in turn: what one client loses stays what was stated.

The attack that once worked: a shuffler that cheats alone forwards one victim among reports of its
own making, reads the public model and subtracts; the victim's epsilon was 51 where 4.18 was stated.
The cheats here know the bare directions of all clients but the victim, which is more than any does.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from fleet_servers import RUN, SignedReport, TwoServers
from tacit.fleet.deployment.batches.agreement import Agreement
from tacit.fleet.deployment.batches.pools import Refused
from tacit.fleet.deployment.batches.records import SignedRecord, read_records, set_digest
from tacit.fleet.deployment.batches.signatures import digest_of, new_signing_key
from tacit.fleet.deployment.shuffler import Batch
from tacit.fleet.learning.learner import model_from_bytes
from tacit.fleet.plan import DistributedSettings, FleetPlan
from tacit.fleet.reports import shares
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.distributed import DistributedReport
from tacit.fleet.reports.protocol import Parts
from tacit.noise import SYSTEM_NOISE

N, N_MIN, ROUNDS = 50, 40, 6
FALSE_ALARM = 1e-6


def plan() -> FleetPlan:
    return make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=64,
        mechanism="distributed",
        n_clients=N,
        n_min=N_MIN,
        n_rounds=ROUNDS,
        n_kernels=16,
        epsilon=8.0,
        delta=1e-5,
    )


@pytest.fixture(params=["first run", "second run"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoServers]:
    servers = TwoServers(plan(), tmp_path, n=N)
    yield servers
    servers.close()


def settings(fleet: TwoServers) -> DistributedSettings:
    assert isinstance(fleet.plan.settings, DistributedSettings)
    return fleet.plan.settings


def directions(fleet: TwoServers) -> NDArray[np.float64]:
    drawn = np.random.default_rng(5).standard_normal((N, fleet.plan.dimension))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def honest(fleet: TwoServers, i: int, round_number: int) -> SignedReport:
    mechanism = DistributedReport(fleet.plan)
    sent = mechanism.randomize(directions(fleet)[i : i + 1], source=SYSTEM_NOISE)[0]
    parts = mechanism.encode(sent, source=SYSTEM_NOISE)
    return fleet.signed(fleet.names[i], parts, round_number=round_number)


def all_report(fleet: TwoServers, round_number: int, who: range = range(N)) -> list[SignedReport]:
    fleet.shuffler.open_round(round_number)
    sent = [honest(fleet, i, round_number) for i in who]
    for one in sent:
        fleet.send(one, round_number=round_number)
    return sent


def mean_of_round(fleet: TwoServers, before: bytes) -> NDArray[np.float64]:
    """What anybody reads off the public model: the mean direction that was released."""
    old, new = (model_from_bytes(m, fleet.plan) for m in (before, fleet.analyser.state.model))
    moved = (old.weights - new.weights) / fleet.plan.training.server_rate
    return np.asarray(moved.reshape(-1))


def hidden_by_enough_noise(fleet: TwoServers, before: bytes, who: range) -> None:
    """Subtract all that the cheat knows: what is left hides the victim behind n_min shares.

    Chi-square on the variance; false alarm 1e-6. A victim that stood alone would be far below.
    """
    left = mean_of_round(fleet, before) * len(who) - directions(fleet)[who.start : who.stop].sum(0)
    scale = DistributedReport(fleet.plan).direction_scale
    sigma = settings(fleet).local_sigma / scale
    ratio = float(np.sum(left**2)) / (N_MIN * sigma**2)
    assert ratio > stats.chi2.ppf(FALSE_ALARM, fleet.plan.dimension)
    alone = float(np.sum(left**2)) / sigma**2 / N_MIN**2  # had it been one share's noise
    assert alone < stats.chi2.ppf(FALSE_ALARM, fleet.plan.dimension), "the check would notice"


def asked_of(fleet: TwoServers) -> Agreement | None:
    return fleet.analyser.agreement


def epsilon_of(fleet: TwoServers, counts: list[int]) -> float:
    """Worked out anew, by a Gaussian's exact curve: sums of so many honest shares were seen."""
    clip, sigma, delta = settings(fleet).clip_units, settings(fleet).local_sigma, fleet.plan.delta
    mu = math.sqrt(sum((2 * clip) ** 2 / (n * sigma**2) for n in counts))

    def excess(epsilon: float) -> float:
        first = stats.norm.cdf(mu / 2 - epsilon / mu)
        return float(first - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu) - delta)

    return float(optimize.brentq(excess, 0.0, 200.0))


@pytest.mark.seconds
def test_the_victims_epsilon_stays_within_the_stated_one(fleet: TwoServers) -> None:
    seen: list[int] = []

    # Round 1: the share helper forwards the victim among reports of its own making.
    victim = honest(fleet, 0, 1)
    fleet.shuffler.open_round(1)
    fleet.analyser.receive(forged_around(fleet, victim))
    assert asked_of(fleet) is None, "no sum is asked for"
    assert not fleet.analyser.state.history[-1].released
    assert fleet.analyser.state.model == fleet.learner.initial(), "nothing to subtract from"

    # Round 2: it leaves out as many as it can.
    fleet.shuffler.record._last = 1  # it may write what it likes into its own record
    before = fleet.analyser.state.model
    fewest = range(N_MIN)
    all_report(fleet, 2, fewest)
    fleet.finish_round()
    seen.append(N_MIN)
    hidden_by_enough_noise(fleet, before, fewest)

    # Round 3: the analyser wants the sum of fewer, then a second sum without the victim.
    all_report(fleet, 3)
    batch = fleet.shuffler.release()
    for left_out in (set(range(1, N)), set(range(N_MIN - 1, N))):
        with pytest.raises(Refused):
            fleet.sums.give(batch, left_out=left_out, digest=digest_without(batch, left_out))
    first = fleet.sums.give(batch, left_out=set(), digest=digest_without(batch, set()))
    with pytest.raises(Refused, match="summed over another set"):
        fleet.sums.give(batch, left_out={0}, digest=digest_without(batch, {0}))
    before = fleet.analyser.state.model
    fleet.analyser.receive(batch)
    asked = asked_of(fleet)
    assert asked is not None
    fleet.analyser.take_sum(batch_id=batch.batch_id, digest=asked.digest, content=first)
    fleet.analyser.work()
    fleet.shuffler.acknowledge()
    seen.append(N)
    hidden_by_enough_noise(fleet, before, range(N))

    # Round 4: the helper makes its sum up; the round is lost and counts as seen.
    all_report(fleet, 4)
    batch = fleet.shuffler.release()
    fleet.analyser.receive(batch)
    asked = asked_of(fleet)
    assert asked is not None
    false = secrets.token_bytes(fleet.learner.message_bytes)
    fleet.analyser.take_sum(batch_id=batch.batch_id, digest=asked.digest, content=false)
    before = fleet.analyser.state.model
    fleet.analyser.work()
    fleet.shuffler.acknowledge()
    assert fleet.analyser.state.model == before
    seen.append(N)

    # Round 5: ten clients leave their noise out; n_min honest shares are still there.
    fleet.shuffler.open_round(5)
    mechanism = DistributedReport(fleet.plan)
    for i in range(N):
        report = honest(fleet, i, 5)
        if i >= N_MIN:
            bare = mechanism.quantise(directions(fleet)[i : i + 1], source=SYSTEM_NOISE)[0]
            parts = mechanism.encode(bare, source=SYSTEM_NOISE)
            report = fleet.signed(fleet.names[i], parts, round_number=5)
        fleet.send(report, round_number=5)
    before = fleet.analyser.state.model
    fleet.finish_round()
    seen.append(N_MIN)
    hidden_by_enough_noise(fleet, before, range(N))

    # Round 6: one client sends a vector beyond all bounds; the round is refused, the run goes on.
    fleet.shuffler.open_round(6)
    huge = np.full(fleet.plan.dimension, 2**30, dtype=np.int64)
    parts = Parts(*shares.split(huge, source=SYSTEM_NOISE))
    fleet.send(fleet.signed(fleet.names[0], parts, round_number=6), round_number=6)
    for i in range(1, N):
        fleet.send(honest(fleet, i, 6), round_number=6)
    before = fleet.analyser.state.model
    fleet.finish_round()
    seen.append(N)
    assert fleet.analyser.state.model == before

    stated = fleet.analyser.guarantee()
    assert stated is not None
    assert fleet.analyser.finished
    assert epsilon_of(fleet, seen) <= fleet.plan.epsilon * 1.0001, (
        "the plan's promise holds against every cheat"
    )
    honest_only = epsilon_of(fleet, [N_MIN, N, N, N, N])
    assert honest_only <= stated.epsilon * 1.0001, "and the stated one where clients keep to it"
    assert stated.epsilon <= fleet.plan.epsilon
    assert epsilon_of(fleet, [1]) > 3 * fleet.plan.epsilon, "alone, the victim would be bare"


def forged_around(fleet: TwoServers, victim: SignedReport) -> Batch:
    """The victim's true report among the helper's own, under stolen names and its own keys."""
    zeros = np.zeros(fleet.plan.dimension, dtype=np.int64)
    records = [record_of(fleet, victim, fleet.signing[victim.node][1])]
    for i, name in enumerate(fleet.names[1:]):
        keys = new_signing_key()
        parts = Parts(*shares.split(zeros, source=SYSTEM_NOISE))
        made = fleet.signed(name, parts, round_number=1, keys=keys)
        records.append(record_of(fleet, made, keys[1] if i % 2 else fleet.signing[name][1]))
    records.sort(key=lambda one: one.key)
    return Batch(
        run=RUN,
        round_number=1,
        batch_id=secrets.token_hex(16),
        n_nodes=len(records),
        messages=b"".join(one.to_bytes() for one in records),
    )


def record_of(fleet: TwoServers, sent: SignedReport, key: bytes) -> SignedRecord:
    size = fleet.sealed_bytes
    return SignedRecord(key, digest_of(sent.body[size:]), sent.signature, sent.body[:size])


def digest_without(batch: Batch, left_out: set[int]) -> str:
    size = len(batch.messages) // batch.n_nodes
    keys = [record.key for record in read_records(batch.messages, size=size)]
    kept = (key for i, key in enumerate(keys) if i not in left_out)
    return set_digest(RUN, batch.round_number, kept)
