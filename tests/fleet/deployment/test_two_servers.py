"""`distributed` over two servers: each of them cheats in turn, and so do clients.

The attack that a blind shuffler allowed: forward one victim among reports of its own making, read
the public model, subtract. Here neither server can make a report, and neither gets a sum of fewer
than `n_min` reports or a second sum of a round.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fleet_servers import RUN, SignedReport, TwoServers
from tacit.features.feature_map import generated_signals
from tacit.fleet.deployment.batches import agreement
from tacit.fleet.deployment.batches.pools import Refused, cut
from tacit.fleet.deployment.batches.records import SignedRecord, read_records, set_digest
from tacit.fleet.deployment.batches.signatures import digest_of, new_signing_key, sign
from tacit.fleet.deployment.seal import Opener
from tacit.fleet.deployment.shuffler import Batch
from tacit.fleet.learning.learner import model_from_bytes
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports import shares
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.distributed import DistributedReport
from tacit.fleet.reports.protocol import Parts
from tacit.noise import SYSTEM_NOISE

N, N_MIN, LENGTH = 12, 8, 24
X = generated_signals(1, 1, LENGTH, np.random.default_rng(1))


def plan() -> FleetPlan:
    return make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=LENGTH,
        mechanism="distributed",
        n_clients=N,
        n_min=N_MIN,
        n_rounds=2,
        n_kernels=4,
    )


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[TwoServers]:
    servers = TwoServers(plan(), tmp_path, n=N)
    servers.shuffler.open_round(1)
    yield servers
    servers.close()


def report(fleet: TwoServers, name: str, *, round_number: int = 1) -> SignedReport:
    return fleet.report(name, X, ["a"], round_number=round_number)


def all_report(fleet: TwoServers, count: int = N) -> list[SignedReport]:
    sent = [report(fleet, name) for name in fleet.names[:count]]
    for one in sent:
        fleet.send(one, round_number=1)
    return sent


def batch_of(fleet: TwoServers, *records: SignedRecord) -> Batch:
    """What a cheating share helper delivers: any records, in any order."""
    return Batch(
        run=RUN,
        round_number=1,
        batch_id=secrets.token_hex(16),
        n_nodes=len(records),
        messages=b"".join(record.to_bytes() for record in records),
    )


def record_of(fleet: TwoServers, sent: SignedReport, *, key: bytes | None = None) -> SignedRecord:
    size = fleet.sealed_bytes
    return SignedRecord(
        key or fleet.signing[sent.node][1],
        digest_of(sent.body[size:]),
        sent.signature,
        sent.body[:size],
    )


def nothing_was_released(fleet: TwoServers, batch: Batch) -> None:
    """The analyser took the batch and neither asks for a sum nor moves the model."""
    fleet.analyser.receive(batch)
    assert fleet.analyser.agreement is None
    history = fleet.analyser.state.history
    assert (history[-1].n, history[-1].released) == (0, False)
    assert fleet.analyser.state.model == fleet.learner.initial()


def zero_parts(fleet: TwoServers) -> Parts:
    """A report that adds nothing, not even noise: what a cheat would pad a round with."""
    zeros = np.zeros(fleet.plan.dimension, dtype=np.int64)
    return Parts(*shares.split(zeros, source=SYSTEM_NOISE))


def test_honest_servers_release_the_sum_of_all(fleet: TwoServers) -> None:
    all_report(fleet)
    fleet.finish_round()
    (record,) = fleet.analyser.state.history
    assert (record.n, record.left_out, record.released) == (N, 0, True)
    assert not list((fleet.folder / "shuffler").glob("batch*")), "no seed outlives its round"
    left = [path.name for path in (fleet.folder / "analyser").iterdir()]
    assert not {"inbox.npz", "agreed.json"} & set(left)
    guarantee = fleet.analyser.guarantee()
    assert guarantee == fleet.learner.spent([N])


# The share helper cheats.


def test_the_victim_among_forged_reports_is_not_released(fleet: TwoServers) -> None:
    """The attack: reports under keys of the helper's own making, or without any signature."""
    victim = record_of(fleet, report(fleet, fleet.names[0]))
    forged = []
    for name in fleet.names[1:]:
        keys = new_signing_key()
        made = fleet.signed(name, zero_parts(fleet), round_number=1, keys=keys)
        forged.append(record_of(fleet, made, key=keys[1]))
    known = [fleet.signing[name][1] for name in fleet.names[1:]]
    unsigned = [replace(one, key=key) for one, key in zip(forged, known, strict=True)]
    nothing_was_released(fleet, batch_of(fleet, victim, *forged[:6], *unsigned[6:]))


@pytest.mark.parametrize("how", ["repeated", "under another node's key", "of another round"])
def test_a_report_counts_once_and_for_its_node_and_round_only(fleet: TwoServers, how: str) -> None:
    victim = report(fleet, fleet.names[0])
    if how == "repeated":
        records = [record_of(fleet, victim)] * N
    elif how == "under another node's key":
        records = [record_of(fleet, victim, key=public) for _, public in fleet.signing.values()]
    else:
        late = [report(fleet, name, round_number=2) for name in fleet.names]
        records = [record_of(fleet, one) for one in late]
    nothing_was_released(fleet, batch_of(fleet, *sorted(records, key=lambda one: one.key)))


def test_a_corrupt_client_cannot_double_the_victim(fleet: TwoServers) -> None:
    """It signs the victim's sealed part as its own; the part opens for its sender only."""
    sent = {one.node: record_of(fleet, one) for one in all_report(fleet)}
    thief, victim = fleet.names[0], fleet.names[1]
    stolen = sent[victim].sealed
    signature = sign(
        fleet.signing[thief][0],
        run=RUN,
        round_number=1,
        node=thief,
        analyser=digest_of(stolen),
        helper=sent[thief].helper_digest,
    )
    sent[thief] = replace(sent[thief], sealed=stolen, signature=signature)
    records = sorted(sent.values(), key=lambda one: one.key)
    fleet.analyser.receive(batch_of(fleet, *records))
    asked = fleet.analyser.agreement
    assert asked is not None
    assert [records[place].key for place in asked.left_out] == [fleet.signing[thief][1]]


def test_a_false_sum_spoils_the_round_and_shows_nothing(fleet: TwoServers) -> None:
    all_report(fleet)
    batch = fleet.shuffler.release()
    fleet.analyser.receive(batch)
    asked = fleet.analyser.agreement
    assert asked is not None
    for bad in ({"digest": "0" * 64}, {"batch_id": "0" * 32}, {"content": b"short"}):
        good = {"batch_id": batch.batch_id, "digest": asked.digest, "content": b""}
        with pytest.raises(Refused):
            fleet.analyser.take_sum(**(good | bad))  # type: ignore[arg-type]
    false = secrets.token_bytes(fleet.learner.message_bytes)
    fleet.analyser.take_sum(batch_id=batch.batch_id, digest=asked.digest, content=false)
    fleet.analyser.work()
    (record,) = fleet.analyser.state.history
    assert (record.n, record.released) == (N, False), "paid for, because a sum was seen"
    assert fleet.analyser.state.model == fleet.learner.initial()
    assert not fleet.analyser.finished, "the next round goes on"


def test_what_the_helper_holds_is_independent_of_the_report(fleet: TwoServers) -> None:
    """Seeds are drawn before anything is known; what it forwards does not open for it."""
    sent = report(fleet, fleet.names[0])
    opener = Opener(fleet.helper_sealing[0], run=RUN, reader="helper")
    key = fleet.signing[sent.node][1]
    size = fleet.sealed_bytes
    assert opener.open(sent.body[size:], round_number=1, sender=key) is not None
    assert opener.open(sent.body[:size], round_number=1, sender=key) is None
    as_analyser = Opener(fleet.helper_sealing[0], run=RUN)
    assert as_analyser.open(sent.body[:size], round_number=1, sender=key) is None


# The analyser cheats.


def digest_without(batch: Batch, left_out: set[int]) -> str:
    size = len(batch.messages) // batch.n_nodes
    keys = [record.key for record in read_records(batch.messages, size=size)]
    return set_digest(RUN, 1, (key for i, key in enumerate(keys) if i not in left_out))


def test_the_helper_adds_no_set_below_the_fewest(fleet: TwoServers) -> None:
    all_report(fleet)
    batch = fleet.shuffler.release()
    for left_out in (set(range(1, N)), set(range(N_MIN - 1, N)), set(range(N))):
        with pytest.raises(Refused, match=f"at least {N_MIN} are needed"):
            fleet.sums.give(batch, left_out=left_out, digest=digest_without(batch, left_out))
    fewest = set(range(N_MIN, N))
    fleet.sums.give(batch, left_out=fewest, digest=digest_without(batch, fewest))


def test_the_helper_adds_one_set_a_round_also_after_a_crash(fleet: TwoServers) -> None:
    """All, and then all but the victim: the difference would be the victim's mask."""
    all_report(fleet)
    batch = fleet.shuffler.release()
    everybody, without = set[int](), {3}
    first = fleet.sums.give(batch, left_out=everybody, digest=digest_without(batch, everybody))
    for _ in range(2):
        with pytest.raises(Refused, match="summed over another set"):
            fleet.sums.give(batch, left_out=without, digest=digest_without(batch, without))
        again = fleet.sums.give(batch, left_out=everybody, digest=digest_without(batch, everybody))
        assert again == first, "the same sum, as often as it gets lost"
        fleet.start_shuffler()
        waiting = fleet.shuffler.waiting()
        assert waiting is not None
        assert waiting == batch


def test_the_helper_adds_only_what_it_agrees_on(fleet: TwoServers) -> None:
    all_report(fleet)
    batch = fleet.shuffler.release()
    with pytest.raises(Refused, match="not this server's"):
        fleet.sums.give(batch, left_out={1}, digest=digest_without(batch, {2}))
    assert fleet.shuffler.record.agreed is None, "a refused set is not the one of the round"


def test_what_the_analyser_holds_of_one_report_is_uniform(fleet: TwoServers) -> None:
    """Chi-square on the top 4 bits of masked zeros; false alarm 1e-6; the twin lacks the mask."""
    zeros = np.zeros(fleet.plan.dimension, dtype=np.int64)
    masked = [shares.split(zeros, source=SYSTEM_NOISE)[0] for _ in range(400)]
    words = np.frombuffer(b"".join(masked), dtype="<u4")
    assert stats.chisquare(np.bincount(words >> 28, minlength=16)).pvalue > 1e-6
    bare = DistributedReport(fleet.plan).randomize(
        np.zeros((400, fleet.plan.dimension)), source=SYSTEM_NOISE
    )
    assert stats.chisquare(np.bincount(bare.ravel() >> 28, minlength=16)).pvalue < 1e-6


# Crashes of honest servers.


def test_a_crash_after_the_agreement_leads_to_the_same_set(fleet: TwoServers) -> None:
    all_report(fleet)
    batch = fleet.shuffler.release()
    fleet.analyser.receive(batch)
    first = fleet.analyser.agreement
    fleet.close()
    # Meanwhile a node is revoked: the set that was named must not change.
    nodes = fleet.registry.nodes()
    nodes.pop(fleet.names[2])
    fleet.registry._take(nodes)
    fleet.start_analyser()
    fleet.analyser.work()
    second = fleet.analyser.agreement
    assert first is not None
    assert second == first
    content = fleet.sums.give(batch, left_out=first.left_out, digest=first.digest)
    fleet.analyser.take_sum(batch_id=batch.batch_id, digest=first.digest, content=content)
    fleet.analyser.work()
    assert [record.n for record in fleet.analyser.state.history] == [N]
    debits = [entry for entry in fleet.analyser._books._ledger.entries() if entry.subject]
    assert len(debits) == 1


def test_a_helper_that_stays_away_is_a_trouble_that_shows(
    fleet: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agreement, "_PATIENCE_SECONDS", 0.0)
    all_report(fleet)
    fleet.analyser.receive(fleet.shuffler.release())
    assert fleet.analyser.status()["processing"]
    assert "has not sent its sum" in fleet.analyser.status()["trouble"]


# Clients cheat.


def test_a_client_can_move_the_mean_within_its_honest_length_and_no_further(
    fleet: TwoServers,
) -> None:
    mechanism = DistributedReport(fleet.plan)
    longest = mechanism.longest_sum(N)
    for length, released in ((0.8 * longest, True), (1.5 * longest, False), (2.0**30, False)):
        total = np.zeros(fleet.plan.dimension, dtype=np.int64)
        total[0] = int(length)
        if released:
            assert np.linalg.norm(mechanism.mean_direction(total, N)) < longest / N
        else:
            with pytest.raises(Exception, match="honest reports"):
                mechanism.mean_direction(total, N)


def test_a_poisoned_report_beyond_the_range_spoils_one_round_only(fleet: TwoServers) -> None:
    for name in fleet.names[1:]:
        fleet.send(report(fleet, name), round_number=1)
    huge = np.full(fleet.plan.dimension, 2**30, dtype=np.int64)
    poison = Parts(*shares.split(huge, source=SYSTEM_NOISE))
    fleet.send(fleet.signed(fleet.names[0], poison, round_number=1), round_number=1)
    fleet.finish_round()
    assert [record.released for record in fleet.analyser.state.history] == [False]
    assert not fleet.analyser.finished
    fleet.shuffler.open_round(2)
    for name in fleet.names:
        fleet.send(report(fleet, name, round_number=2), round_number=2)
    fleet.finish_round()
    assert [record.released for record in fleet.analyser.state.history] == [False, True]
    assert model_from_bytes(fleet.analyser.state.model, fleet.plan).round_number == 1


def test_a_report_whose_seed_does_not_open_is_refused_at_the_door(fleet: TwoServers) -> None:
    sent = report(fleet, fleet.names[0])
    broken = sent.body[: fleet.sealed_bytes] + bytes(len(sent.body) - fleet.sealed_bytes)
    signature = sign(
        fleet.signing[sent.node][0],
        run=RUN,
        round_number=1,
        node=sent.node,
        analyser=digest_of(broken[: fleet.sealed_bytes]),
        helper=digest_of(broken[fleet.sealed_bytes :]),
    )
    with pytest.raises(Refused, match="does not open"):
        fleet.send(SignedReport(sent.node, broken, signature), round_number=1)
    assert fleet.shuffler.received == 0
    fleet.send(sent, round_number=1)


def test_a_vector_that_does_not_open_is_left_out_and_its_mask_is_not_added(
    fleet: TwoServers,
) -> None:
    all_report(fleet, N - 1)
    sent = report(fleet, fleet.names[-1])
    broken = bytes(fleet.sealed_bytes) + sent.body[fleet.sealed_bytes :]
    signature = sign(
        fleet.signing[sent.node][0],
        run=RUN,
        round_number=1,
        node=sent.node,
        analyser=digest_of(broken[: fleet.sealed_bytes]),
        helper=digest_of(broken[fleet.sealed_bytes :]),
    )
    fleet.send(SignedReport(sent.node, broken, signature), round_number=1)
    fleet.finish_round()
    (record,) = fleet.analyser.state.history
    assert (record.n, record.left_out, record.released) == (N - 1, 1, True)


@pytest.mark.parametrize("how", ["renamed by its operator", "given up and taken by another"])
def test_one_key_under_two_names_counts_once_and_wedges_nothing(
    fleet: TwoServers, how: str
) -> None:
    """Two records under one key were one record and two reports, and no sum ever fitted."""
    first, second = fleet.names[:2]
    fleet.send(report(fleet, first), round_number=1)
    nodes, keys = fleet.registry.nodes(), fleet.signing[first]
    if how == "renamed by its operator":
        second = "renamed"
        del nodes[first]
    else:
        fleet.signing[first] = new_signing_key()
        nodes[first] = fleet.signing[first][1]
    fleet.registry._take({**nodes, second: keys[1]})
    fleet.signing[second] = keys
    with pytest.raises(Refused, match="counts once"):
        fleet.send(report(fleet, second), round_number=1)
    for name in fleet.names[2:]:
        fleet.send(report(fleet, name), round_number=1)
    batch = fleet.finish_round()
    assert batch.n_nodes == len(batch.messages) // fleet.record_bytes
    (record,) = fleet.analyser.state.history
    assert (record.n, record.released) == (N - 2, True), "the first was signed as another node's"


def test_a_sum_that_the_helper_will_never_give_ends_the_round(fleet: TwoServers) -> None:
    all_report(fleet)
    batch = fleet.shuffler.release()
    fleet.analyser.receive(batch)
    asked = fleet.analyser.agreement
    assert asked is not None
    about = {"batch_id": batch.batch_id, "content": b"", "refused": "another set was added"}
    with pytest.raises(Refused):
        fleet.analyser.take_sum(**about, digest="0" * 64)  # type: ignore[arg-type]
    fleet.analyser.take_sum(**about, digest=asked.digest)  # type: ignore[arg-type]
    fleet.analyser.work()
    (record,) = fleet.analyser.state.history
    assert (record.n, record.released) == (N_MIN, False), "the debit stands"
    debited = fleet.learner.spent([N_MIN])
    assert debited is not None
    assert fleet.analyser.status()["spent"]["epsilon"] == pytest.approx(debited.epsilon)
    assert not fleet.analyser.finished
    assert not fleet.analyser.processing


def test_records_say_nothing_about_the_order_of_arrival(fleet: TwoServers) -> None:
    for name in reversed(fleet.names):
        fleet.send(report(fleet, name), round_number=1)
    batch = fleet.shuffler.release()
    keys = [piece[:32] for piece in cut(batch.messages, fleet.record_bytes)]
    assert keys == sorted(keys)
