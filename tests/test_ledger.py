"""The ledger: exact sums, budgets that hold, a chain that shows every change."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tacit.errors import BudgetExceeded, LedgerError, TacitError
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.ledger import Ledger


def cost(epsilon: float, delta: float = 0.0) -> DpGuarantee:
    return DpGuarantee(epsilon=epsilon, delta=delta, model="local", unit="series")


def test_ten_times_a_tenth_is_one_and_the_eleventh_is_refused(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db", per_subject_epsilon=1.0) as ledger:
        for _ in range(10):
            ledger.debit(subject="a", guarantee=cost(0.1), purpose="test")
        assert ledger.spent("a").epsilon == 1.0
        assert ledger.remaining("a").epsilon == 0.0
        with pytest.raises(BudgetExceeded, match="nothing was released"):
            ledger.debit(subject="a", guarantee=cost(0.1), purpose="test")
        assert ledger.spent("a").epsilon == 1.0
        assert ledger.debit(subject="b", guarantee=cost(0.5), purpose="test") == 12
        assert ledger.spent().epsilon == 1.5
        assert ledger.remaining().epsilon == math.inf
        assert ledger.verify()


def test_a_batch_is_debited_whole_or_not_at_all(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "l.db", budget_epsilon=1.0) as ledger:
        with pytest.raises(BudgetExceeded):
            ledger.debit_many(["a", "b", "c"], guarantee=cost(0.4), purpose="test")
        assert ledger.spent().epsilon == 0.0
        assert len(ledger.entries()) == 1
        ids = ledger.debit_many(["a", "b"], guarantee=cost(0.4), purpose="test")
        assert ids == [2, 3]


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf])
def test_a_budget_must_be_finite_and_positive(tmp_path: Path, budget: float) -> None:
    with pytest.raises(TacitError, match="budget_epsilon"):
        Ledger.open(tmp_path / "l.db", budget_epsilon=budget)


def test_what_has_no_epsilon_cannot_be_debited(tmp_path: Path) -> None:
    with (
        Ledger.open(tmp_path / "l.db") as ledger,
        pytest.raises(LedgerError, match="Unprotected"),
    ):
        ledger.debit(subject="a", guarantee=Unprotected(reason="x"), purpose="p")  # type: ignore[arg-type]
