"""Ledgers of persons: found again by name or by data, and watched by anchors kept elsewhere."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BudgetExceeded, LedgerError
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger
from tacit.ledger.anchors import configured_anchor
from tacit.ledger.persons import data_key, ledger_path, open_person_ledger

ONE = DpGuarantee(epsilon=1.0, model="local", unit="client")


def opened(path: Path, epsilon: float = 1.0) -> Ledger:
    return open_person_ledger(path, budget_epsilon=epsilon, budget_delta=None)


def test_an_earlier_ledger_keeps_its_budget(tmp_path: Path) -> None:
    path = ledger_path(tmp_path / "persons", "Ann")
    opened(path).debit(subject="Ann", guarantee=ONE, purpose="first run")
    assert path == ledger_path(tmp_path / "persons", " ANN")
    with pytest.raises(BudgetExceeded):
        opened(path, epsilon=100.0).debit(subject="Ann", guarantee=ONE, purpose="second run")


def test_the_name_of_the_file_does_not_tell_the_person(tmp_path: Path) -> None:
    assert "ann" not in str(ledger_path(tmp_path, "Ann").name).lower()
    assert ledger_path(tmp_path, "Ann") != ledger_path(tmp_path, "Anna")


def test_runs_that_begin_at_once_share_one_ledger(tmp_path: Path) -> None:
    path = tmp_path / "p.db"
    with ThreadPoolExecutor(4) as pool:
        ledgers = list(pool.map(lambda k: opened(path, epsilon=float(k)), (1, 2, 3, 4)))
    assert len({ledger.budgets()["budget_epsilon"] for ledger in ledgers}) == 1


def test_anchors_are_found_by_the_place_of_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TACIT_ANCHORS", raising=False)
    assert configured_anchor(tmp_path / "a.db") is None
    monkeypatch.setenv("TACIT_ANCHORS", str(tmp_path / "elsewhere"))
    first, second = (configured_anchor(tmp_path / name / "a.db") for name in ("x", "y"))
    assert first is not None
    assert first.parent == tmp_path / "elsewhere"
    assert first != second


def test_a_restored_copy_is_refused_where_anchors_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("TACIT_ANCHORS", str(tmp_path / "elsewhere"))
    path = tmp_path / "p.db"
    opened(path, epsilon=2.0)
    shutil.copy(path, tmp_path / "old.db")
    opened(path).debit(subject="p", guarantee=ONE, purpose="run")
    shutil.copy(tmp_path / "old.db", path)
    for name in ("p.db-wal", "p.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="restored an old copy"):
        opened(path)


def test_data_have_one_key_in_any_order() -> None:
    X = np.random.default_rng(1).standard_normal((6, 2, 5))
    assert data_key(X) == data_key(X[[3, 1, 2, 0, 5, 4]])
    assert data_key(X) == data_key(np.where(X == X, X, 0.0))
    assert data_key(X) != data_key(X[:5])
    assert data_key(X) != data_key(X.reshape(6, 1, 10))


def test_a_ledger_begun_without_a_limit_on_delta_gets_the_first_one(tmp_path: Path) -> None:
    """A silo states no delta; a fleet that comes after it must not find an unlimited one."""
    path = ledger_path(tmp_path, "ann")
    open_person_ledger(path, budget_epsilon=8.0, budget_delta=None).close()
    for _ in range(2):  # once: a later run keeps it
        with open_person_ledger(path, budget_epsilon=8.0, budget_delta=0.25) as ledger:
            assert ledger.remaining().delta == 0.25
