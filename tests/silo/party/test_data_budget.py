"""Owners that run apart debit their own ledgers, keyed by their series, before they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from silo_parties import own_series, plan_of
from tacit.errors import BudgetExceeded, LedgerError
from tacit.guarantee import DpGuarantee, from_dict
from tacit.ledger import Ledger
from tacit.ledger.known_series import marks_of, remembered
from tacit.ledger.persons import data_key, open_person_ledger
from tacit.silo.fedst.settings import Settings
from tacit.silo.party.data_budget import DataBudget, opened_privacy
from tacit.silo.party.receipts import guarantee_of
from tacit.silo.plan import Plan


def plan(**params: Any) -> Plan:
    return plan_of("distances_program", 3, **params)[0]


def budget(folder: Path, rank: int = 1, name: str | None = None) -> DataBudget:
    return DataBudget(own_series(rank)[0], name=name, folder=folder)


def spent(place: DataBudget) -> float:
    with Ledger.open(place.path, create=False) as ledger:
        assert ledger.verify()
        return ledger.spent().epsilon


def test_a_run_without_epsilon_costs_nothing(tmp_path: Path) -> None:
    assert budget(tmp_path).debit(plan(), rank=1) is None
    assert not list(tmp_path.iterdir())


def test_a_second_run_on_the_same_series_is_refused(tmp_path: Path) -> None:
    own = budget(tmp_path)
    cost = own.debit(plan(epsilon=2.0), rank=1)
    assert cost is not None
    assert (cost.epsilon, cost.unit) == (2.0, "series")
    with pytest.raises(BudgetExceeded, match="is left after 2 in earlier runs"):
        budget(tmp_path).debit(plan(epsilon=2.0, k=3), rank=1)
    assert spent(own) == 2.0


def test_a_check_finds_a_spent_budget_and_writes_nothing(tmp_path: Path) -> None:
    own = budget(tmp_path)
    own.check({"epsilon": 2.0}, rank=1)
    assert not own.path.exists()
    own.debit(plan(epsilon=2.0), rank=1)
    own.check({"k": 3}, rank=1)
    own.check({"epsilon": 1.0}, rank=0)
    with pytest.raises(BudgetExceeded, match="after 2 in earlier runs"):
        own.check({"epsilon": 1.0}, rank=1)
    assert spent(own) == 2.0


def test_other_series_have_a_budget_of_their_own_unless_they_are_named(tmp_path: Path) -> None:
    budget(tmp_path, rank=1).debit(plan(epsilon=2.0), rank=1)
    budget(tmp_path, rank=2).debit(plan(epsilon=2.0), rank=2)
    named = tmp_path / "named"
    budget(named, rank=1, name="ward 4").debit(plan(epsilon=2.0), rank=1)
    with pytest.raises(BudgetExceeded):
        budget(named, rank=2, name="Ward  4").debit(plan(epsilon=2.0), rank=2)


def test_a_name_is_no_second_budget_for_series_that_had_one(tmp_path: Path) -> None:
    """Seen before the repair: 2 were spent without a name and 2 with one."""
    own = budget(tmp_path)
    own.debit(plan(epsilon=2.0), rank=1)
    with pytest.raises(LedgerError, match="counted under another name"):
        budget(tmp_path, name="ward 4").debit(plan(epsilon=2.0), rank=1)
    more = np.concatenate([own_series(1)[0], own_series(2)[0][:1]])
    with pytest.raises(BudgetExceeded):
        DataBudget(more, folder=tmp_path).debit(plan(epsilon=2.0), rank=1)
    assert spent(own) == 2.0


def test_the_initiator_pays_nothing_for_what_is_opened_to_itself(tmp_path: Path) -> None:
    assert budget(tmp_path, rank=0).debit(plan(epsilon=2.0), rank=0) is None
    assert not list(tmp_path.iterdir())


def test_the_sum_is_allowed_when_the_owner_raises_the_budget(tmp_path: Path) -> None:
    own = budget(tmp_path)
    own.debit(plan(epsilon=2.0), rank=1)
    with Ledger.open(own.path, create=False) as ledger:
        ledger.change_budgets(reason="second study", budget_epsilon=4.0)
    own.debit(plan(epsilon=2.0), rank=1)
    assert spent(own) == 4.0


def test_receipt_and_guarantee_state_the_privacy_of_what_is_opened() -> None:
    stated = guarantee_of(plan(epsilon=2.0), ())
    assert stated.also == opened_privacy({"epsilon": 2.0})
    assert stated.also is not None
    assert any(words.startswith("computational") for words in stated.also.assumptions)
    assert from_dict(stated.to_dict()) == stated
    assert guarantee_of(plan(), ()).also is None


def test_a_search_that_others_decide_rests_on_exact_gains() -> None:
    for scope, quality, exact in (("federated", "ig", True), ("local-search", "f", False)):
        settings = Settings(epsilon=1.0, scope=scope, quality=quality, classifier="forest")
        found = opened_privacy(settings.to_params())
        assert found is not None
        assert any("information gains" in words for words in found.assumptions) == exact


def test_order_and_sign_of_zero_do_not_make_other_series(tmp_path: Path) -> None:
    X = own_series(1)[0].copy()
    X[0, 0, 0] = 0.0
    other = X[::-1].copy()
    other[-1, 0, 0] = np.negative(0.0)
    assert DataBudget(X, folder=tmp_path).path == DataBudget(other, folder=tmp_path).path


def test_a_fleet_and_a_silo_share_the_budget_of_their_data(tmp_path: Path) -> None:
    """A fleet's debit, per client, is added to a silo's, per series, and not the reverse."""
    client = DpGuarantee(epsilon=1.0, model="local", unit="client")
    own = budget(tmp_path)
    own.debit(plan(epsilon=2.0), rank=1)
    with Ledger.open(own.path, create=False) as ledger:
        ledger.change_budgets(reason="a fleet", budget_epsilon=3.0)
        (subject,) = ledger.subjects()
        ledger.debit(subject=subject, guarantee=client, purpose="a round")
    with pytest.raises(BudgetExceeded):
        own.debit(plan(epsilon=2.0), rank=1)
    X = own_series(2)[0]
    other = DataBudget(X, folder=tmp_path)
    fleet = open_person_ledger(other.path, budget_epsilon=8.0, budget_delta=None)
    with remembered(tmp_path, data_key(X), marks_of(X)):
        fleet.debit(subject=data_key(X), guarantee=client, purpose="a round")
    with pytest.raises(LedgerError, match="cannot be added"):
        other.debit(plan(epsilon=2.0), rank=2)


def test_a_run_that_costs_nothing_asks_no_ledger(tmp_path: Path) -> None:
    (tmp_path / "ann.series").write_text("not a list\n")
    own = DataBudget(own_series(1)[0], folder=tmp_path)
    assert own.debit(plan(), rank=1) is None
    assert own.debit(plan(epsilon=2.0), rank=0) is None
    own.check({"k": 3}, rank=1)
    with pytest.raises(LedgerError):
        own.debit(plan(epsilon=2.0), rank=1)
