"""The time contract: counted from the start, with sharing and ranking, to the nearest batch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from silo_parties import environment, plan_of
from tacit.silo.fedst import contract
from tacit.silo.fedst.settings import Settings
from tacit.silo.party.localhost import run_federation

CONTRACT = 1.5
N_CANDIDATES = 800  # one per batch; each takes several message rounds, in all much more than 1.5 s


class Watch:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("sharing", "ranking", "batches"),
    [(0.0, 0.0, 10), (2.0, 0.0, 8), (2.4, 0.0, 8), (2.6, 0.0, 7), (50.0, 9.0, 1), (2.0, 2.0, 4)],
)
def test_sharing_rehearsing_and_ranking_count(
    monkeypatch: pytest.MonkeyPatch, sharing: float, ranking: float, batches: int
) -> None:
    """Ten seconds, batches of one second: what else is done leaves room for fewer of them."""
    watch = Watch()
    monkeypatch.setattr(contract, "time", watch)
    clock = contract.SearchClock(contract=10.0)
    watch.now += sharing
    answer = contract.GO_ON
    while answer == contract.GO_ON:
        clock.begin_batch()
        watch.now += 1.0
        clock.end_batch(30)
        while (answer := clock.verdict()) == contract.REHEARSE:
            watch.now += ranking
            clock.note_rehearsal()
    assert answer == contract.STOP
    assert len(clock.ends) == batches
    assert abs(clock.spent + ranking - 10.0) <= 0.5 or batches == 1
    assert clock.seconds_left(batches_left=50) == pytest.approx(max(0.0, 10.0 - clock.spent))


def test_the_time_of_ranking_is_known_for_more_candidates_than_were_rehearsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch()
    monkeypatch.setattr(contract, "time", watch)
    clock = contract.SearchClock(contract=100.0)
    for n in (40, 200):
        clock.end_batch(n - clock.n_examined)
        assert clock.verdict() == contract.REHEARSE
        watch.now += 0.5 + 1e-5 * n**2
        clock.note_rehearsal()
        assert clock.verdict() == contract.GO_ON
    clock.end_batch(300)
    assert clock.ranking == pytest.approx(0.5 + 1e-5 * 500**2)
    assert clock.verdict() == contract.GO_ON
    clock.end_batch(300)
    assert clock.verdict() == contract.REHEARSE


def test_without_a_contract_every_batch_is_examined() -> None:
    clock = contract.SearchClock(contract=None)
    clock.begin_batch()
    clock.end_batch(30)
    assert clock.verdict() == contract.GO_ON
    assert clock.info == {}


@pytest.mark.slow
def test_the_search_ends_within_one_batch_of_the_contract(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No chance is involved: the bounds hold for the batches that this run had, fast or slow."""
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    asked, inputs = plan_of("unused", 3)
    settings = Settings(
        n_candidates=N_CANDIDATES,
        n_shapelets=2,
        lengths=(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12),
        batch_size=1,
        time_contract=CONTRACT,
        classifier="forest",
        n_trees=1,
        depth=1,
    )
    plan = replace(asked, program="fedst", params=settings.to_params(), counts=(40, 5, 6))
    rng = np.random.default_rng(0)
    many = replace(inputs[0], X=rng.normal(size=(40, 1, 12)), y=np.arange(40) % 2)
    result = run_federation(plan, [many, *inputs[1:]])

    ends = np.array(result.info["batch_ends"])
    assert len(ends) == result.info["n_examined"] < N_CANDIDATES
    clock = result.info["contract"]
    assert (clock["ranking_expected"] > 0.0) == (clock["rehearsals"] > 0)
    # P0 stopped at the boundary nearest to the contract, by what it knew at that moment ...
    reserved = clock["ranking_expected"] + clock["mean_batch"] / 2
    assert clock["ended_after"] >= ends[-1]
    assert clock["ended_after"] + reserved > CONTRACT
    assert all(ends[:-1] < CONTRACT)
    # ... and the whole search, from its first share to the opened indices, misses the contract by
    # no more than the last batch, the mean one and what the rehearsal of the ranking was off.
    whole = result.info["seconds"]["search"]
    off = abs(whole - clock["ended_after"] - clock["ranking_expected"])
    last = clock["ended_after"] - (ends[-2] if len(ends) > 1 else 0.0)
    assert abs(whole - CONTRACT) <= max(last, clock["mean_batch"]) + off + 0.001
    announced = [o for o in result.receipts[2].opened if o.what == "end of the search"]
    assert len(announced) == len(ends) + clock["rehearsals"]
    assert [o.what for o in result.receipts[0].opened][-1] == "forest leaf labels"
