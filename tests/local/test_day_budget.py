"""A budget per day and person: exact, on disk before a release, whatever the clock does."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.errors import BudgetExceeded, LedgerError, TacitError
from tacit.local import day_budget
from tacit.local.day_budget import DayBudget

DAY = 86400.0
NOON = 20_000 * DAY + DAY / 2


class Clock:
    """A wall clock that can be set, and the time that really passes."""

    def __init__(self, now: float = NOON) -> None:
        self.now, self.passed = now, 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.passed += seconds


def opened(folder: Path, clock: Clock, epsilon_per_day: float = 4.0) -> DayBudget:
    return DayBudget.open(
        folder / "budget.json",
        epsilon_per_day=epsilon_per_day,
        clock=lambda: clock.now,
        elapsed=lambda: clock.passed,
    )


def spend_all(budget: DayBudget, person: str = "anna") -> int:
    """How many releases of epsilon 2 were allowed."""
    for count in range(100):
        try:
            budget.debit(person, epsilon=2.0)
        except BudgetExceeded:
            return count
    return 100


def test_a_day_has_its_budget_and_the_next_has_another(tmp_path: Path) -> None:
    clock = Clock()
    budget = opened(tmp_path, clock)
    assert spend_all(budget) == 2
    assert (budget.spent("anna"), budget.remaining("anna")) == (4.0, 0.0)
    clock.sleep(DAY / 2 - 1)
    assert spend_all(budget) == 0
    clock.sleep(1)
    assert spend_all(budget) == 2


def test_persons_have_budgets_of_their_own_and_one_name_is_one_person(tmp_path: Path) -> None:
    budget = opened(tmp_path, Clock())
    assert spend_all(budget, "Anna") == 2
    assert spend_all(budget, " anna ") == 0
    assert spend_all(budget, "Ben") == 2
    with pytest.raises(LedgerError, match="needs a name"):
        budget.debit(" ", epsilon=1.0)


def test_sums_are_those_of_the_numbers_as_written(tmp_path: Path) -> None:
    budget = opened(tmp_path, Clock(), 0.3)
    for _ in range(3):  # as floats, 0.1 + 0.1 + 0.1 is above 0.3
        budget.debit("anna", epsilon=0.1)
    with pytest.raises(BudgetExceeded) as refused:
        budget.debit("anna", epsilon=1e-9)
    assert "wait for the day after" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_clock_that_jumps_back_refills_nothing(tmp_path: Path) -> None:
    clock = Clock()
    budget = opened(tmp_path, clock)
    assert spend_all(budget) == 2
    for days in (1, 3, 400):
        clock.now = NOON - days * DAY
        assert spend_all(budget) == 0
        assert spend_all(opened(tmp_path, clock)) == 0  # nor does a restart
    with pytest.raises(BudgetExceeded, match="the clock now says an earlier day"):
        budget.debit("anna", epsilon=2.0)


def test_a_clock_that_jumps_forward_while_running_refills_nothing(tmp_path: Path) -> None:
    clock = Clock()
    budget = opened(tmp_path, clock)
    assert spend_all(budget) == 2
    for days in (1, 2, 30):
        clock.now = NOON + days * DAY
        assert spend_all(budget) == 0
    clock.sleep(DAY)  # a day has really passed
    assert spend_all(budget) == 2


def test_a_start_with_a_clock_ahead_refills_one_day_until_it_is_past(tmp_path: Path) -> None:
    clock = Clock()
    assert spend_all(opened(tmp_path, clock)) == 2
    clock.now = NOON + 10 * DAY
    assert spend_all(opened(tmp_path, clock)) == 2  # one day's budget, not ten
    clock.now = NOON + DAY
    budget = opened(tmp_path, clock)  # the clock was set right
    assert spend_all(budget) == 0
    clock.sleep(9 * DAY)
    assert spend_all(budget) == 0
    clock.sleep(DAY)
    assert spend_all(budget) == 2


def test_every_person_is_refilled_by_the_same_day(tmp_path: Path) -> None:
    clock = Clock()
    budget = opened(tmp_path, clock)
    assert spend_all(budget, "anna") == spend_all(budget, "ben") == 2
    clock.sleep(DAY)
    assert spend_all(budget, "anna") == spend_all(budget, "ben") == 2
    assert spend_all(budget, "anna") == spend_all(budget, "ben") == 0


FAULTS: dict[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "cut": lambda text: text[: len(text) // 2],
    "not JSON": lambda text: "x" + text,
    "a list": lambda text: "[]",
    "edited": lambda text: text.replace('"anna": "2.0"', '"anna": "0.0"'),
    "foreign": lambda text: json.dumps({"format": "other"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_file_is_refused_and_stays(fault: str, tmp_path: Path) -> None:
    budget = opened(tmp_path, Clock())
    budget.debit("anna", epsilon=2.0)
    text = budget.path.read_text()
    damaged = FAULTS[fault](text)
    assert damaged != text
    budget.path.write_text(damaged)
    with pytest.raises(LedgerError, match="nothing was released"):
        budget.debit("anna", epsilon=2.0)
    with pytest.raises(LedgerError, match="nothing was released"):
        opened(tmp_path, Clock())
    assert budget.path.read_text() == damaged


def test_a_file_that_has_gone_is_not_a_new_budget(tmp_path: Path) -> None:
    budget = opened(tmp_path, Clock())
    budget.path.unlink()
    with pytest.raises(LedgerError, match="cannot read the budget"):
        budget.debit("anna", epsilon=2.0)
    assert not budget.path.exists()


def test_another_budget_a_missing_folder_and_bad_numbers_are_refused(tmp_path: Path) -> None:
    opened(tmp_path, Clock())
    with pytest.raises(LedgerError, match=r"keeps epsilon 4.0 a day, not 5.0"):
        opened(tmp_path, Clock(), 5.0)
    with pytest.raises(LedgerError, match="does not exist"):
        opened(tmp_path / "no", Clock())
    with pytest.raises(TacitError, match="epsilon_per_day"):
        opened(tmp_path, Clock(), float("nan"))
    with pytest.raises(TacitError, match="epsilon"):
        opened(tmp_path, Clock()).debit("anna", epsilon=-1.0)


def test_a_full_disk_spends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = opened(tmp_path, Clock())

    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(day_budget, "write_secret", full)
        with pytest.raises(LedgerError, match="No space left on device; nothing was released"):
            budget.debit("anna", epsilon=2.0)
    assert budget.spent("anna") == 0.0


@pytest.mark.seconds
def test_processes_share_one_budget(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from tacit.errors import BudgetExceeded\n"
        "from tacit.local.day_budget import DayBudget\n"
        "budget = DayBudget.open(sys.argv[1], epsilon_per_day=10.0,"
        f" clock=lambda: {NOON}, elapsed=lambda: 0.0)\n"
        "made = 0\n"
        "try:\n"
        "    while True:\n"
        "        budget.debit('anna', epsilon=0.5)\n"
        "        made += 1\n"
        "except BudgetExceeded:\n"
        "    print(made)\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "b.json")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    made = [int(process.communicate(timeout=120)[0]) for process in running]
    assert sum(made) == 20
