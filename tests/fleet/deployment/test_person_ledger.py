"""One budget per person across runs: two runs on the same data add up, or the second is refused."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command import tacit
from fleet_localhost import LocalFleet
from tacit.errors import BudgetExceeded, LedgerError
from tacit.fleet.deployment.config import NodeConfig, read_config
from tacit.fleet.deployment.node import Outbox, load_series, person_ledger
from tacit.fleet.deployment.person_ledger import PersonLedger
from tacit.fleet.learning.learner import Learner
from tacit.fleet.reports.protocol import NodeBudget
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger
from tacit.ledger.persons import data_key, ledger_folder, ledger_path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[LocalFleet]:
    """Two runs of a fleet over the same series, each with a budget of 8."""
    folder = tmp_path_factory.mktemp("runs")
    return [
        LocalFleet(folder / name, rounds=2, n_kernels=8, epsilon=8.0)
        for name in ("first", "second")
    ]


def take_all_rounds(fleet: LocalFleet, persons: Path, *, person: str = "") -> float:
    """All that node 1 does in a run, as far as its own machine goes; what the run cost it."""
    state = persons / fleet.fleet.run
    config = replace(fleet.node("node-1"), state=state, ledgers=persons, person=person)
    learner = Learner(fleet.fleet.plan)
    with contextlib.closing(Outbox(config, fleet.fleet, learner)) as outbox:
        for round_number in (1, 2):
            outbox.commit(
                round_number,
                lambda: learner.report(learner.initial(), *load_series(config.data)),
            )
        return outbox.spent()


def only_ledger(persons: Path) -> Path:
    found = list(persons.glob("*.db"))
    assert len(found) == 1
    return found[0]


def test_a_second_run_on_the_same_data_is_refused(runs: list[LocalFleet], tmp_path: Path) -> None:
    assert take_all_rounds(runs[0], tmp_path) == pytest.approx(8.0)
    with pytest.raises(BudgetExceeded, match="have spent epsilon 8 in all runs together"):
        take_all_rounds(runs[1], tmp_path)
    with Ledger.open(only_ledger(tmp_path), create=False) as ledger:
        assert ledger.spent().epsilon <= 8.0


def test_a_budget_that_the_owner_raises_states_the_sum(
    runs: list[LocalFleet], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take_all_rounds(runs[0], tmp_path)
    db = only_ledger(tmp_path)
    raised = tacit(
        capsys, "ledger", "budget", "--db", db, "--budget-epsilon", "16", "--reason", "two studies"
    )
    assert raised.code == 0
    assert take_all_rounds(runs[1], tmp_path) == pytest.approx(8.0)
    with Ledger.open(db, create=False) as ledger:
        assert ledger.spent().epsilon == pytest.approx(16.0)
        assert ledger.verify()


def test_the_folder_of_a_run_holds_no_ledger(runs: list[LocalFleet], tmp_path: Path) -> None:
    """Deleting a run, or beginning a new one, forgets nothing."""
    take_all_rounds(runs[0], tmp_path)
    assert not list((tmp_path / runs[0].fleet.run).rglob("*.db"))


def test_a_person_has_one_budget_whatever_the_data(runs: list[LocalFleet], tmp_path: Path) -> None:
    take_all_rounds(runs[0], tmp_path, person="Ann")
    with pytest.raises(BudgetExceeded):
        take_all_rounds(runs[1], tmp_path, person=" ann")
    take_all_rounds(runs[1], tmp_path, person="Bert")
    assert len(list(tmp_path.glob("*.db"))) == 2


def test_a_node_does_not_join_where_nothing_is_left(
    runs: list[LocalFleet], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take_all_rounds(runs[0], tmp_path)
    path = runs[1].path("node-1")
    other = path.with_name("again.toml")
    text = path.read_text().replace('ledgers = "../../persons"', f'ledgers = "{tmp_path}"')
    other.write_text(text)
    refused = tacit(capsys, "fleet", "node", other, "--json")
    assert refused.code == 2
    assert "in all runs together" in refused.err
    assert "tacit ledger budget" in refused.err


def test_a_run_spends_no_more_than_its_plan_under_a_larger_budget(tmp_path: Path) -> None:
    cost = DpGuarantee(epsilon=1.0, model="local", unit="client")
    with Ledger.open(ledger_path(tmp_path, "p"), budget_epsilon=100.0):
        pass
    ledger = PersonLedger(tmp_path, person="p", run="a1", budget=NodeBudget(epsilon=2.0))
    ledger.debit(1, lambda _: cost)
    ledger.debit(2, lambda _: cost)
    with pytest.raises(BudgetExceeded, match="plan of run a1"):
        ledger.debit(3, lambda _: cost)
    assert ledger.spent() == ledger.spent_in_run() == 2.0
    other = PersonLedger(tmp_path, person="p", run="b2", budget=NodeBudget(epsilon=2.0))
    other.debit(1, lambda k: DpGuarantee(epsilon=float(k), model="local", unit="client"))
    assert (other.spent_in_run(), other.spent()) == (1.0, 3.0)


def test_series_are_the_same_in_any_order_and_otherwise_not() -> None:
    X = np.random.default_rng(0).standard_normal((5, 1, 8))
    assert data_key(X) == data_key(X[::-1])
    changed = X.copy()
    changed[2, 0, 3] = np.nextafter(changed[2, 0, 3], 1.0)
    assert len({data_key(X), data_key(changed), data_key(X[:4]), data_key(X[:, :, :7])}) == 4


def test_a_restored_ledger_is_noticed_where_anchors_are_kept(
    runs: list[LocalFleet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    persons, anchors = tmp_path / "persons", tmp_path / "elsewhere"
    anchors.mkdir()
    monkeypatch.setenv("TACIT_ANCHORS", str(anchors))
    take_all_rounds(runs[0], persons)
    only_ledger(persons).unlink()
    for leftover in persons.glob("*.db-*"):
        leftover.unlink()
    with pytest.raises(LedgerError, match="restored an old copy"):
        take_all_rounds(runs[1], persons)


def test_where_ledgers_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ledger_folder(tmp_path) == tmp_path
    monkeypatch.setenv("TACIT_LEDGERS", str(tmp_path / "named"))
    assert ledger_folder(None) == tmp_path / "named"
    monkeypatch.delenv("TACIT_LEDGERS")
    assert ledger_folder(None) == Path.home() / ".tacit" / "persons"


def test_bad_settings_are_refused(runs: list[LocalFleet], tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="needs a name"):
        ledger_path(tmp_path, " \u200b")
    blocked = tmp_path / "file"
    blocked.write_text("")
    config = replace(runs[0].node("node-1"), ledgers=blocked)
    with pytest.raises(LedgerError, match="cannot make the folder"):
        person_ledger(config, runs[0].fleet, Learner(runs[0].fleet.plan))
    assert read_config(runs[0].path("node-2"), NodeConfig).person == ""
