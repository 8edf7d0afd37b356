"""A budget per day and person in one small file, debited before a release leaves.

    budget = DayBudget.open("budget.json", epsilon_per_day=8.0)
    budget.debit("anna", epsilon=2.0)

Guarantee: the releases debited for one person on one day have epsilons that sum to at most
`epsilon_per_day`, so together they are that much-LDP when everything the person recorded on that
day is replaced. Sums are exact, in decimals.
Assumes: callers debit before they release, and the disk keeps what it acknowledged.
Composes: days add up; the last minutes of one day and the first of the next are two days.
Not covered: someone who may write, restore or delete the file, or restart the program at will with
a wrong clock (see below).

Days are those of UTC. The budget refills when a later day than any before has come, never because
the clock went back. While a program runs, its clock is believed only as far as time has really
passed since the file was opened, so setting the clock forward refills nothing; at a start it is
believed once, so a clock that stands days ahead refills one day's budget, not several. After such
a start the next refill waits until the true date has passed the wrong one.

NumPy is not needed either: standard library only, because devices carry this module.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from tacit.errors import BudgetExceeded, LedgerError, check_epsilon
from tacit.ledger.chain import add, exact, float_down, float_up
from tacit.ledger.subjects import account_of
from tacit.system.files import write_secret
from tacit.system.locks import locked

_FORMAT = "tacit-day-budget"
_DAY_SECONDS = 86400
_LOCK_SECONDS = 30.0


def elapsed_seconds() -> float:
    """Seconds that only go forward, sleep included where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    per_day: Decimal
    day: int  # days since 1970 of the latest day that was ever believed
    spent: dict[str, Decimal]  # account -> epsilon, on that day


@dataclass(slots=True, eq=False)
class DayBudget:
    """One file; any number of persons, threads and processes may share it."""

    path: Path
    clock: Callable[[], float] = time.time
    elapsed: Callable[[], float] = elapsed_seconds
    _start: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        self._start = (self.clock(), self.elapsed())

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon_per_day: float,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = elapsed_seconds,
    ) -> DayBudget:
        """Open a budget, or make a new file; an existing one must have the same budget."""
        check_epsilon(epsilon_per_day, name="epsilon_per_day")
        budget = cls(Path(path).absolute(), clock, elapsed)
        if not budget.path.parent.is_dir():
            raise LedgerError(f"the folder {budget.path.parent} does not exist; make it first.")
        with budget._locked():
            if not budget.path.exists():
                fresh = _State(per_day=exact(epsilon_per_day), day=budget._today(), spent={})
                budget._write(fresh)
            kept = budget._read().per_day
        if kept != exact(epsilon_per_day):
            raise LedgerError(
                f"{path} keeps epsilon {kept} a day, not {epsilon_per_day!r}; open it with "
                f"{kept}, or choose another file."
            )
        return budget

    def debit(self, person: str, *, epsilon: float) -> None:
        """Record one release before it leaves; when this raises, nothing was spent."""
        check_epsilon(epsilon)
        account = _account(person)
        with self._locked():
            state = self._current()
            spent = add(state.spent.get(account, Decimal(0)), exact(epsilon))
            if spent > state.per_day:
                raise BudgetExceeded(self._refusal(state, account, epsilon))
            self._write(
                _State(per_day=state.per_day, day=state.day, spent={**state.spent, account: spent})
            )

    def spent(self, person: str) -> float:
        """Epsilon that was spent today, rounded up."""
        with self._locked():
            return float_up(self._current().spent.get(_account(person), Decimal(0)))

    def remaining(self, person: str) -> float:
        """Epsilon that may still be spent today, rounded down."""
        with self._locked():
            state = self._current()
        return max(0.0, float_down(state.per_day - state.spent.get(_account(person), Decimal(0))))

    def _current(self) -> _State:
        """What is on disk, with nothing spent if a later day than any before has come."""
        state = self._read()
        today = self._today()
        return state if today <= state.day else _State(per_day=state.per_day, day=today, spent={})

    def _today(self) -> int:
        began, mark = self._start
        # Never later than the start plus what has really passed since: a jump refills nothing.
        believed = min(self.clock(), began + max(0.0, self.elapsed() - mark))
        return int(believed // _DAY_SECONDS)

    def _refusal(self, state: _State, account: str, epsilon: float) -> str:
        spent = float_up(state.spent.get(account, Decimal(0)))
        day = datetime.fromtimestamp(state.day * _DAY_SECONDS, UTC).date()
        behind = ""
        if self._today() < state.day:
            behind = f", although the clock now says an earlier day ({self.path.name} has seen it)"
        return (
            f"{account!r} has spent epsilon {spent:g} of {state.per_day} on {day}{behind}, and one "
            f"release costs {epsilon:g}; wait for the day after {day} (UTC)."
        )

    def _read(self) -> _State:
        try:
            plain = json.loads(self.path.read_text(encoding="utf-8"))
            if plain["format"] != _FORMAT or plain["sha256"] != _checksum(plain):
                raise ValueError("checksum")
            return _state(plain)
        except OSError as error:
            raise LedgerError(
                f"cannot read the budget {self.path}: {error.strerror or error}; nothing was "
                "released."
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation) as error:
            raise LedgerError(
                f"{self.path} is not a daily budget, or is damaged; nothing was released, restore "
                "it, or start a new file, which forgets what was spent today."
            ) from error

    def _write(self, state: _State) -> None:
        plain: dict[str, Any] = {
            "format": _FORMAT,
            "format_version": 1,
            "epsilon_per_day": str(state.per_day),
            "day": state.day,
            "spent": {name: str(value) for name, value in sorted(state.spent.items())},
        }
        text = json.dumps({**plain, "sha256": _checksum(plain)}, indent=1)
        try:
            write_secret(self.path, text.encode())
        except OSError as error:
            raise LedgerError(
                f"cannot write the budget {self.path}: {error.strerror or error}; nothing was "
                "released."
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            with locked(lock, timeout_seconds=_LOCK_SECONDS):
                yield
        except TimeoutError as error:
            raise LedgerError(
                f"the budget {self.path} stayed locked for {_LOCK_SECONDS:g} s; nothing was "
                "released, end the other program."
            ) from error
        except OSError as error:
            raise LedgerError(
                f"cannot lock the budget {self.path}: {error.strerror or error}; nothing was "
                "released."
            ) from error


def _state(plain: dict[str, Any]) -> _State:
    spent = {str(name): Decimal(value) for name, value in plain["spent"].items()}
    per_day, day = Decimal(plain["epsilon_per_day"]), plain["day"]
    amounts_fit = all(Decimal(0) <= value <= per_day for value in spent.values())
    if type(day) is not int or not (per_day.is_finite() and per_day > 0 and amounts_fit):
        raise ValueError("values")
    return _State(per_day=per_day, day=day, spent=spent)


def _account(person: str) -> str:
    account = account_of(person)
    if not account:
        raise LedgerError(f"a person needs a name, got {person!r}.")
    return account


def _checksum(plain: dict[str, Any]) -> str:
    content = {name: value for name, value in plain.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
