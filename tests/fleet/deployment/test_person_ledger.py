"""One budget per person across runs: two runs on the same data add up, or the second is refused."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from command import tacit
from fleet_localhost import LocalFleet
from tacit.errors import BudgetExceeded, LedgerError, TacitError
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


def take_all_rounds(
    fleet: LocalFleet, persons: Path, *, person: str = "", node: str = "node-1"
) -> float:
    """All that a node does in a run, as far as its own machine goes; what the run cost it."""
    state = persons / node / fleet.fleet.run
    config = replace(fleet.node(node), state=state, ledgers=persons, person=person)
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
    state = tmp_path / "node-1" / runs[0].fleet.run
    assert state.is_dir()
    assert not list(state.rglob("*.db"))


def test_a_person_has_one_budget_whatever_the_data(runs: list[LocalFleet], tmp_path: Path) -> None:
    take_all_rounds(runs[0], tmp_path, person="Ann")
    with pytest.raises(BudgetExceeded):
        take_all_rounds(runs[1], tmp_path, person=" ann")
    take_all_rounds(runs[1], tmp_path, person="Bert", node="node-2")
    assert len(list(tmp_path.glob("*.db"))) == 2


def test_another_name_is_no_other_budget(runs: list[LocalFleet], tmp_path: Path) -> None:
    """Seen to succeed at 037c947: the same series under two names spent 8 each."""
    take_all_rounds(runs[0], tmp_path, person="Ann")
    with pytest.raises(LedgerError, match="counted under another name"):
        take_all_rounds(runs[1], tmp_path, person="Bert")
    with pytest.raises(BudgetExceeded):
        take_all_rounds(runs[1], tmp_path)  # without a name they are Ann's
    with Ledger.open(only_ledger(tmp_path), create=False) as ledger:
        assert ledger.spent().epsilon <= 8.0


def test_data_that_grow_between_rounds_keep_their_budget(
    runs: list[LocalFleet], tmp_path: Path
) -> None:
    """Seen to succeed at 037c947: one more series was a new ledger, in the middle of a run."""
    fleet, persons = runs[0], tmp_path / "persons"
    config = replace(fleet.node("node-1"), state=tmp_path / "state", ledgers=persons)
    X, y = load_series(config.data)
    learner = Learner(fleet.fleet.plan)
    for round_number in (1, 2):
        grown = replace(config, data=tmp_path / f"{round_number}.npz")
        more = X[:1] + round_number
        np.savez(grown.data, X=np.concatenate([X, more]), y=np.append(y, y[:1]))
        with contextlib.closing(Outbox(grown, fleet.fleet, learner)) as outbox:
            outbox.commit(
                round_number, lambda: learner.report(learner.initial(), *load_series(config.data))
            )
    with Ledger.open(only_ledger(persons), create=False) as ledger:
        assert ledger.spent().epsilon == pytest.approx(8.0)
    with pytest.raises(BudgetExceeded):
        take_all_rounds(runs[1], persons)


def test_a_plan_that_states_its_costs_too_small_is_refused(tmp_path: Path) -> None:
    """Seen before the repair: a report under a plan of epsilon 8 was debited as 1e-9."""
    fleet = LocalFleet(
        tmp_path / "run", rounds=2, n_kernels=8, epsilon=8.0, mechanism="distributed"
    )
    (epsilon, delta), *_ = fleet.fleet.node_costs
    config = replace(fleet.node("node-1"), ledgers=tmp_path / "persons")
    learner = Learner(fleet.fleet.plan)
    lying = replace(fleet.fleet, node_costs=((1e-9, delta), (1e-9, 0.0)))
    with pytest.raises(TacitError, match="less than its noise gives"):
        Outbox(config, lying, learner).commit(
            1, lambda: learner.report(learner.initial(), *load_series(config.data))
        )
    assert epsilon > 1.0
    assert not (tmp_path / "persons").exists()


@pytest.mark.parametrize("transport", ["flower", "https"])
def test_a_node_does_not_join_where_nothing_is_left(
    runs: list[LocalFleet], tmp_path: Path, capsys: pytest.CaptureFixture[str], transport: str
) -> None:
    """Seen to fail at 1aadbb1: a light node joined, and polled to the end of the run."""
    take_all_rounds(runs[0], tmp_path)
    path = runs[1].path("node-1")
    other = path.with_name("again.toml")
    text = path.read_text().replace('ledgers = "../../persons"', f'ledgers = "{tmp_path}"')
    other.write_text(text)
    refused = tacit(capsys, "fleet", "node", other, "--transport", transport, "--json")
    assert refused.code == 2
    assert "in all runs together" in refused.err
    assert "tacit ledger budget" in refused.err


def test_a_run_spends_no_more_than_its_plan_under_a_larger_budget(tmp_path: Path) -> None:
    cost = DpGuarantee(epsilon=1.0, model="local", unit="client")
    with Ledger.open(ledger_path(tmp_path, "p"), budget_epsilon=100.0):
        pass
    ledger = PersonLedger(
        tmp_path, person="p", run="a1", budget=NodeBudget(epsilon=2.0), series=frozenset()
    )
    ledger.debit(1, lambda _: cost)
    ledger.debit(2, lambda _: cost)
    with pytest.raises(BudgetExceeded, match="plan of run a1"):
        ledger.debit(3, lambda _: cost)
    assert ledger.spent() == ledger.spent_in_run() == 2.0
    other = PersonLedger(
        tmp_path, person="p", run="b2", budget=NodeBudget(epsilon=2.0), series=frozenset()
    )
    other.debit(1, lambda k: DpGuarantee(epsilon=float(k), model="local", unit="client"))
    assert (other.spent_in_run(), other.spent()) == (1.0, 3.0)


def test_the_advice_that_a_refusal_gives_lets_the_next_run_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a plan with a delta, which the second run needs anew too."""

    def cost(_: int) -> DpGuarantee:
        return DpGuarantee(epsilon=1.0, delta=1e-6, model="shuffle", unit="client")

    def ledger(run: str) -> PersonLedger:
        budget = NodeBudget(epsilon=1.0, delta=1e-6)
        return PersonLedger(tmp_path, person="Ann", run=run, budget=budget, series=frozenset())

    ledger("first").debit(1, cost)
    with pytest.raises(BudgetExceeded) as refused:
        ledger("second").check_room(cost)
    advice = str(refused.value).split("'tacit ", 1)[1].rsplit("'", 1)[0]
    assert tacit(capsys, *shlex.split(advice)).code == 0
    ledger("second").check_room(cost)
    ledger("second").debit(1, cost)


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
    with pytest.raises(LedgerError, match="is gone"):  # its list is not
        take_all_rounds(runs[1], persons)
    next(persons.glob("*.series")).unlink()
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


def test_another_plan_under_a_runs_name_does_not_inherit_its_first_report(tmp_path: Path) -> None:
    """Seen to succeed at 873851c: a first report of epsilon 5 was debited as a second one of 2."""

    def ledger(budget: float) -> PersonLedger:
        return PersonLedger(
            tmp_path,
            person="p",
            run="a1",
            budget=NodeBudget(epsilon=budget, delta=1e-5),
            series=frozenset(),
        )

    def costs(*stated: tuple[float, float]) -> Callable[[int], DpGuarantee]:
        return lambda k: DpGuarantee(
            epsilon=stated[k - 1][0], delta=stated[k - 1][1], model="distributed", unit="client"
        )

    with Ledger.open(ledger_path(tmp_path, "p"), budget_epsilon=100.0, budget_delta=1e-3):
        pass
    ledger(0.2).debit(1, costs((0.1, 1e-5), (0.05, 0.0)))
    other = ledger(8.0)
    with pytest.raises(LedgerError, match="under another plan"):
        other.debit(2, costs((5.0, 1e-5), (2.0, 0.0)))
    assert other.spent() == 0.1
    ledger(0.2).debit(2, costs((0.1, 1e-5), (0.05, 0.0)))
