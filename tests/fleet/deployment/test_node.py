"""A node: one report and one debit per round whatever happens, and no code but its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fleet_localhost import LocalFleet
from tacit.errors import LedgerError, TacitError
from tacit.fleet.deployment import node as node_module
from tacit.fleet.deployment.node import (
    NO_REPORT,
    Acknowledgement,
    Outbox,
    ShufflerClient,
    load_series,
    take_part,
)
from tacit.fleet.deployment.person_ledger import PersonLedger
from tacit.fleet.learning.learner import Learner
from tacit.fleet.reports.protocol import Parts
from tacit.ledger.persons import data_key, ledger_path
from tacit.system.files import write_secret


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> LocalFleet:
    return LocalFleet(tmp_path_factory.mktemp("node") / "fleet", rounds=2, n_kernels=8)


@pytest.fixture
def outbox(fleet: LocalFleet, tmp_path: Path) -> Iterator[Outbox]:
    opened = open_outbox(fleet, tmp_path)
    yield opened
    opened.close()


def open_outbox(fleet: LocalFleet, state: Path) -> Outbox:
    config = replace(fleet.node("node-1"), state=state, ledgers=state / "persons")
    return Outbox(config, fleet.fleet, Learner(fleet.fleet.plan))


def report(fleet: LocalFleet) -> Parts:
    learner = Learner(fleet.fleet.plan)
    return learner.report(learner.initial(), *load_series(fleet.node("node-1").data))


def unexpected() -> Parts:
    raise AssertionError("a report was made a second time")


class PowerCut(Exception):
    pass


def cut(*_: object, **__: object) -> None:
    raise PowerCut


def test_asked_again_it_sends_the_same_bytes_and_pays_once(
    fleet: LocalFleet, outbox: Outbox
) -> None:
    first = outbox.commit(1, lambda: report(fleet))
    cost = outbox.spent()
    assert cost == Learner(fleet.fleet.plan).node_cost(1).epsilon
    assert outbox.commit(1, unexpected) == first
    assert outbox.spent() == cost
    assert outbox.commit(2, lambda: report(fleet)) != first
    assert outbox.spent() == pytest.approx(2 * cost)


@pytest.mark.parametrize("step", ["making", "writing", "debiting", "sending"])
def test_a_power_cut_costs_at_most_one_debit(
    fleet: LocalFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    outbox = open_outbox(fleet, tmp_path)
    cost = Learner(fleet.fleet.plan).node_cost(1).epsilon
    with monkeypatch.context() as patch:
        if step == "writing":
            patch.setattr(node_module, "write_once", cut)
        elif step == "debiting":
            patch.setattr(PersonLedger, "debit", cut)
        if step == "sending":
            outbox.commit(1, lambda: report(fleet))
        else:
            with pytest.raises(PowerCut):
                outbox.commit(1, cut if step == "making" else lambda: report(fleet))  # type: ignore[arg-type]
    assert outbox.spent() == (cost if step == "sending" else 0.0), "nothing paid, nothing left"
    outbox.close()
    again = open_outbox(fleet, tmp_path)
    made_before = step in ("debiting", "sending")
    again.commit(1, unexpected if made_before else lambda: report(fleet))
    assert again.spent() == cost
    again.close()


def test_two_tasks_for_one_round_make_one_report(fleet: LocalFleet, tmp_path: Path) -> None:
    """Flower starts a process per task, so a server that asks twice is answered twice at once."""
    made: list[Parts] = []

    def slowly() -> Parts:
        made.append(report(fleet))
        time.sleep(0.5)  # long enough for the other to come in between
        return made[-1]

    def task(_: int) -> bytes:
        with contextlib.closing(open_outbox(fleet, tmp_path)) as outbox:
            return outbox.commit(1, slowly)

    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(task, range(4)))
    assert len(made) == 1
    assert len(set(sent)) == 1
    with contextlib.closing(open_outbox(fleet, tmp_path)) as outbox:
        assert outbox.spent() == Learner(fleet.fleet.plan).node_cost(1).epsilon
        assert outbox.commit(1, unexpected) == sent[0]


HOLD = """\
import sys, time
from pathlib import Path
from tacit.fleet.learning.learner import Learner
from tacit.fleet.deployment.node import Outbox, load_series
from tacit.fleet.deployment.config import NodeConfig, read_config, read_run
config = read_config(Path(sys.argv[1]), NodeConfig)
learner = Learner(read_run(config.plan).plan)
def report():
    print("making", flush=True)
    time.sleep(float(sys.argv[2]))
    return learner.report(learner.initial(), *load_series(config.data))
Outbox(config, read_run(config.plan), learner).commit(1, report)
"""


@pytest.mark.seconds
def test_another_process_is_waited_for_and_a_dead_one_is_not(fleet: LocalFleet) -> None:
    config = fleet.node("node-3")
    command = [sys.executable, "-c", HOLD, str(fleet.path("node-3"))]
    with subprocess.Popen([*command, "60"], stdout=subprocess.PIPE) as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"making\n"
        dying.kill()
    with subprocess.Popen([*command, "1"], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"making\n"
        outbox = Outbox(config, fleet.fleet, Learner(fleet.fleet.plan))
        with contextlib.closing(outbox):
            outbox.commit(1, unexpected)
            assert outbox.spent() == Learner(fleet.fleet.plan).node_cost(1).epsilon


def test_a_report_on_disk_is_never_overwritten(fleet: LocalFleet, outbox: Outbox) -> None:
    """Not even where the lock does not hold, as on some network drives."""

    def overtaken() -> Parts:
        write_secret(outbox._path(1), b"the report that was first")
        return report(fleet)

    assert outbox.commit(1, overtaken) == b"the report that was first"
    assert [path.name for path in outbox._folder.glob("*round*")] == ["round-000001.sealed"]


def test_a_deleted_report_is_not_made_twice(fleet: LocalFleet, outbox: Outbox) -> None:
    outbox.commit(1, lambda: report(fleet))
    outbox.commit(2, lambda: report(fleet))
    spent = outbox.spent()
    with pytest.raises(LedgerError, match="not made twice"):
        outbox.commit(1, lambda: report(fleet))
    assert outbox.spent() == spent


def test_its_own_budget_bounds_what_a_server_can_ask(fleet: LocalFleet, outbox: Outbox) -> None:
    for round_number in (1, 2):
        outbox.commit(round_number, lambda: report(fleet))
    spent = outbox.spent()
    with pytest.raises(TacitError, match="budget"):
        outbox.commit(3, lambda: report(fleet))
    assert outbox.spent() == spent


def test_a_question_for_another_run_or_round_spends_nothing(fleet: LocalFleet) -> None:
    config = fleet.node("node-2")
    model = Learner(fleet.fleet.plan).initial()
    for run, round_number in (("other", 1), (fleet.fleet.run, 0), (fleet.fleet.run, 3)):
        answer = take_part(config, run=run, round_number=round_number, model=model)
        assert not answer.accepted
    # No shuffler is running: the node finds out before it spends.
    answer = take_part(config, run=fleet.fleet.run, round_number=1, model=model)
    assert not answer.accepted
    assert answer.reason == "the shuffler does not answer: ConnectError"
    assert config.ledgers is not None
    assert not ledger_path(config.ledgers, data_key(load_series(config.data)[0])).exists()


def test_an_error_in_the_data_is_told_to_nobody_else(
    fleet: LocalFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShufflerClient, "open_round", lambda self: 1)
    series = tmp_path / "data.npz"
    config = replace(fleet.node("node-3"), data=series, state=tmp_path / "state")
    model = Learner(fleet.fleet.plan).initial()
    for label, X in (("secret-label", np.ones((1, 1, 24))), ("1", np.ones((1, 1, 7)))):
        np.savez(series, X=X, y=np.array([label]))
        answer = take_part(config, run=fleet.fleet.run, round_number=1, model=model)
        assert answer == Acknowledgement(accepted=False, reason=NO_REPORT)


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.zeros((3, 1, 24))},
        {"X": np.zeros((3, 1, 24)), "y": np.array(["1", "2"])},
        {"X": np.full((2, 1, 24), np.nan), "y": np.array(["1", "2"])},
        {"X": np.zeros((0, 1, 24)), "y": np.array([], dtype=str)},
        {"X": np.zeros(24), "y": np.array(["1"])},
    ],
)
def test_bad_series_are_refused_in_one_sentence(
    tmp_path: Path, arrays: dict[str, NDArray[Any]]
) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    with pytest.raises(TacitError, match=r"data\.npz"):
        load_series(path)
    path.write_bytes(b"no archive")
    with pytest.raises(TacitError, match="npz file with X and y"):
        load_series(path)


@pytest.mark.seconds
def test_a_node_loads_nothing_heavy() -> None:
    """A fresh process per task: torch or aeon would cost half a minute a round."""
    code = (
        "import sys, tacit.fleet.deployment.node; "
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    heavy = {"torch", "aeon", "sklearn", "scipy", "pandas", "numba", "dp_accounting", "fastapi"}
    assert not heavy & set(done.stdout.split())
