"""A budget ledger on disk: debit first, release after, and nothing leaves when the debit fails.

Guarantee: when `debit` returns, the entry is on disk (SQLite, write-ahead log, synchronous=FULL)
and survives the death of the process or the machine; when it raises, nothing was debited unless
the commit itself was interrupted, which can only over-count. Entries form a hash chain with a head
record, so an edited, inserted or removed entry is found by `verify`, the last ones included; if the
entries of the subject at hand or the budgets were edited or removed, the next debit is refused.
One subject is one budget: names that differ in case, spaces or invisible characters are the same.
Assumes: callers debit before they release, and the disk keeps what it acknowledged.
Composes: basically, epsilons and deltas add up per subject and over the whole store, in decimal
arithmetic that rounds up; a composed guarantee for many rounds is debited as one entry.
Not covered: someone who may write the file can rewrite the whole chain, or restore or delete the
file; open it with an `anchor` file kept elsewhere, and debits are refused on a ledger that is
older than its anchor.

Standard library only, because devices carry this module.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Literal

from tacit.errors import LedgerError, check_delta, check_epsilon, check_positive
from tacit.guarantee import DpGuarantee
from tacit.ledger import accounts as summaries
from tacit.ledger import rows as rows
from tacit.ledger.anchors import Anchor, parse_anchor, read_anchor, write_anchor
from tacit.ledger.chain import Budgets, Entry, exact, float_down, float_up, replay
from tacit.ledger.export import write_entries
from tacit.ledger.store import Store
from tacit.ledger.subjects import account_of

__all__ = ["Amount", "Entry", "Ledger", "SubjectKind", "Verification"]

SubjectKind = Literal["series", "device", "client", "model"]
_SUBJECT_KINDS = ("series", "device", "client", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount of epsilon and delta; infinite where there is no budget."""

    epsilon: float
    delta: float

    def to_dict(self) -> dict[str, float]:
        """Plain values for JSON."""
        return {"epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Whether the chain is intact, and if not, the first thing that does not fit."""

    intact: bool
    entries: int
    problem: str | None
    anchor: str

    def __bool__(self) -> bool:
        return self.intact


class Ledger:
    """One store of debits; use as a context manager, from any number of threads and processes."""

    def __init__(
        self, path: Path, *, timeout_seconds: float, anchor_path: Path | None = None
    ) -> None:
        self.path = path.absolute()
        self.anchor_path = None if anchor_path is None else anchor_path.absolute()
        self._store = Store(self.path, timeout_seconds=timeout_seconds)
        self._identity: str | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        budget_epsilon: float | None = None,
        budget_delta: float | None = None,
        per_subject_epsilon: float | None = None,
        per_subject_delta: float | None = None,
        new_per_subject_epsilon: float | None = None,
        create: bool = True,
        timeout_seconds: float = 30.0,
        anchor: str | os.PathLike[str] | None = None,
    ) -> Ledger:
        """Open a ledger, or create it with these budgets; budgets are fixed at creation.

        Opening an existing ledger with other budgets is refused: use `change_budgets`, which
        records the change in the chain. `new_per_subject_epsilon` is the budget of a ledger that
        this call creates, and says nothing about an existing one.

        `anchor` names a file, best on another disk, that is renewed after every debit. A ledger
        that is older than its anchor is refused: somebody restored a copy from before.
        """
        asked = Budgets(
            budget_epsilon=_limit(budget_epsilon, "budget_epsilon"),
            budget_delta=_limit(budget_delta, "budget_delta"),
            per_subject_epsilon=_limit(per_subject_epsilon, "per_subject_epsilon"),
            per_subject_delta=_limit(per_subject_delta, "per_subject_delta"),
        )
        check_positive(timeout_seconds, name="timeout_seconds")
        default = _limit(new_per_subject_epsilon, "new_per_subject_epsilon")
        anchor_path = None if anchor is None else Path(anchor)
        ledger = cls(Path(path), timeout_seconds=timeout_seconds, anchor_path=anchor_path)
        ledger._store.touch(create=create)
        ledger._begin_or_check(asked, default, create=create)
        ledger._check_anchor()
        return ledger

    @staticmethod
    def begun(path: Path) -> bool:
        """Whether the file holds anything: who dies while creating a ledger leaves it blank."""
        store = Store(path.absolute(), timeout_seconds=30.0)
        with store.transaction("DEFERRED") as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return bool(version or tables)

    def debit(
        self,
        *,
        subject: str,
        guarantee: DpGuarantee,
        purpose: str,
        subject_kind: SubjectKind = "series",
        series_list: str | None = None,
    ) -> int:
        """Record one release before it happens; returns the entry's id once it is on disk.

        `series_list` is the state of the list of the subject's series (`known_series`). Raises
        BudgetExceeded or LedgerError; then nothing may leave.
        """
        return self.debit_many(
            [subject],
            guarantee=guarantee,
            purpose=purpose,
            subject_kind=subject_kind,
            series_list=series_list,
        )[0]

    def debit_many(
        self,
        subjects: Sequence[str],
        *,
        guarantee: DpGuarantee,
        purpose: str,
        subject_kind: SubjectKind = "series",
        series_list: str | None = None,
    ) -> list[int]:
        """Record one release per subject, all or none, in one transaction."""
        _check_debit(subjects, guarantee, subject_kind)
        ids = []
        with self._appending() as (connection, last, accounts):
            budgets = rows.budgets_now(connection, accounts)
            for subject in subjects:
                wanted = rows.debit_entry(subject, guarantee, purpose, subject_kind, series_list)
                last = rows.append(connection, wanted, last=last, accounts=accounts)
                rows.check_fits(last, budgets)
                ids.append(last.id)
        return ids

    def change_budgets(
        self,
        *,
        reason: str,
        budget_epsilon: float | None = None,
        budget_delta: float | None = None,
        per_subject_epsilon: float | None = None,
        per_subject_delta: float | None = None,
    ) -> int:
        """Replace the budgets that are given and record who may spend what from now on, and why."""
        given = {
            "budget_epsilon": _limit(budget_epsilon, "budget_epsilon"),
            "budget_delta": _limit(budget_delta, "budget_delta"),
            "per_subject_epsilon": _limit(per_subject_epsilon, "per_subject_epsilon"),
            "per_subject_delta": _limit(per_subject_delta, "per_subject_delta"),
        }
        new = {name: value for name, value in given.items() if value is not None}
        if not new or not reason.strip():
            raise LedgerError("change_budgets needs a reason and at least one new budget.")
        with self._appending() as (connection, last, accounts):
            budgets = rows.budgets_now(connection, accounts).changed(new)
            wanted = rows.budget_entry("budget", budgets, reason=reason)
            return rows.append(connection, wanted, last=last, accounts=accounts).id

    def spent(self, subject: str | None = None) -> Amount:
        """What was debited for one subject, or in all, rounded up."""
        with self._transaction("DEFERRED") as connection:
            epsilon, delta = rows.spent(connection, subject)
        return Amount(epsilon=float_up(epsilon), delta=float_up(delta))

    def remaining(self, subject: str | None = None) -> Amount:
        """What may still be debited for one subject, or in all, rounded down."""
        with self._transaction("DEFERRED") as connection:
            budgets = rows.budgets_now(connection, rows.trusted(connection)[1])
            total = rows.spent(connection, None)
            left = [(budgets.budget_epsilon, total[0]), (budgets.budget_delta, total[1])]
            if subject is not None:
                own = rows.spent(connection, subject)
                left += [(budgets.per_subject_epsilon, own[0]), (budgets.per_subject_delta, own[1])]
        return Amount(epsilon=_least(left[0::2]), delta=_least(left[1::2]))

    def budgets(self) -> dict[str, float | None]:
        """The budgets in force; None means no limit."""
        with self._transaction("DEFERRED") as connection:
            now = rows.budgets_now(connection, rows.trusted(connection)[1])
        return {
            name: None if value is None else float(value) for name, value in now.limits().items()
        }

    def entries(self, subject: str | None = None) -> list[Entry]:
        """The debits and budget entries in order, of one subject or all."""
        with self._transaction("DEFERRED") as connection:
            rows.check_complete(connection)
            if subject is None:
                return list(rows.read(connection, " ORDER BY id"))
            account = rows.trusted(connection)[1].find(subject)
            name = subject if account is None else account.name
            return list(rows.read(connection, " WHERE subject = ? ORDER BY id", (name,)))

    def last_debit(self, subject: str) -> Entry | None:
        """The last debit of a subject, unaltered; None if there is none."""
        with self._transaction("DEFERRED") as connection:
            return rows.last_of(connection, rows.trusted(connection)[1], subject)

    def subjects(self) -> dict[str, Amount]:
        """What was debited per subject, under the name it was first given."""
        with self._transaction("DEFERRED") as connection:
            rows.check_complete(connection)
            totals = rows.totals_of_subjects(connection)
        return {
            subject: Amount(epsilon=float_up(Decimal(epsilon)), delta=float_up(Decimal(delta)))
            for subject, epsilon, delta in totals
        }

    def amounts(self) -> list[tuple[str, str, Decimal, int]]:
        """Purpose, subject and epsilon of the debits, with how many of these there are."""
        with self._transaction("DEFERRED") as connection:
            rows.check_complete(connection)
            return rows.amounts(connection)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all entries to a .csv or .json file; returns how many."""
        entries = self.entries()
        write_entries(entries, Path(path))
        return len(entries)

    def anchor(self) -> str:
        """Count and hash of the last entry: write it down elsewhere, and `verify` against it."""
        with self._transaction("DEFERRED") as connection:
            last = rows.trusted_last(connection)
        return f"{last.id}:{last.hash}"

    def verify(self, anchor: str | None = None) -> Verification:
        """Recompute every hash and total; with `anchor`, also that history was not rewritten."""
        given = [] if anchor is None else [parse_anchor(anchor)]
        if self.anchor_path is not None:
            given += [found for found in [read_anchor(self.anchor_path)] if found is not None]
        with self._transaction("DEFERRED") as connection:
            head = rows.head(connection)
            problem = _first_problem(connection, head, given)
        return Verification(
            intact=problem is None, entries=head[0], problem=problem, anchor=f"{head[0]}:{head[1]}"
        )

    def close(self) -> None:
        """Nothing to do: a ledger holds its file only while it reads or writes it."""

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(
        self, kind: str, *, committed: Callable[[], None] | None = None
    ) -> Iterator[sqlite3.Connection]:
        """One transaction on the ledger that was opened, and on no other."""
        with self._store.transaction(kind, committed=committed) as connection:
            rows.check_tables(connection)
            if rows.identity(connection) != self._identity:
                raise LedgerError(
                    f"{self.path} is not the ledger that was opened under this name; nothing was "
                    "released, open it again."
                )
            yield connection

    @contextmanager
    def _appending(self) -> Iterator[tuple[sqlite3.Connection, Entry, summaries.Accounts]]:
        """A transaction that ends with the accounts saved, and the anchor renewed after it."""
        renewed: list[Anchor] = []

        def renew() -> None:
            if self.anchor_path is not None:
                write_anchor(self.anchor_path, renewed[0])

        with self._transaction("IMMEDIATE", committed=renew) as connection:
            self._compare_anchor(connection)
            last, accounts = rows.trusted(connection)
            yield connection, last, accounts
            head = rows.head(connection)
            accounts.save(head)
            renewed.append(Anchor(*head))

    def _check_anchor(self) -> None:
        if self.anchor_path is None:
            return
        with self._transaction("IMMEDIATE") as connection:
            head = Anchor(*rows.head(connection))
            if read_anchor(self.anchor_path) is None and head.count == 1:
                write_anchor(self.anchor_path, head)  # nothing was debited yet: nothing to miss
            self._compare_anchor(connection)

    def _compare_anchor(self, connection: sqlite3.Connection) -> None:
        if self.anchor_path is None:
            return
        anchor = read_anchor(self.anchor_path)
        if anchor is None:
            raise LedgerError(
                f"there is no anchor at {self.anchor_path}; nothing was released, find it, or "
                "verify the ledger and write one with 'tacit ledger anchor'."
            )
        found = [entry.hash for entry in rows.read(connection, " WHERE id = ?", (anchor.count,))]
        if found != [anchor.hash]:
            raise LedgerError(
                f"{self.path} is not the ledger that its anchor {self.anchor_path} knows, which "
                f"has {anchor.count} entries or more; somebody restored an old copy or rewrote "
                "it, nothing was released."
            )

    def _begin_or_check(self, asked: Budgets, default: Decimal | None, *, create: bool) -> None:
        kind = "IMMEDIATE" if create or self._is_old() else "DEFERRED"
        with self._store.transaction(kind) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if create and not tables:
                if asked.per_subject_epsilon is None and default is not None:
                    asked = asked.changed({"per_subject_epsilon": default})
                rows.begin(connection, asked)
            elif version == rows.WITHOUT_ACCOUNTS and tables:
                rows.upgrade(connection)
            elif version != rows.SCHEMA:
                raise LedgerError(
                    f"{self.path} is not a ledger of this version; give the path of a ledger."
                )
            elif any(value is not None for value in asked.limits().values()):
                accounts = rows.trusted(connection)[1]
                _check_same_budgets(rows.budgets_now(connection, accounts), asked, self.path)
            self._identity = rows.identity(connection)

    def _is_old(self) -> bool:
        with self._store.transaction("DEFERRED") as connection:
            found = connection.execute("PRAGMA user_version").fetchone()[0]
        return bool(found == rows.WITHOUT_ACCOUNTS)


def _first_problem(
    connection: sqlite3.Connection, head: tuple[int, str], anchors: Sequence[Anchor]
) -> str | None:
    for named in [{anchor.count: anchor.hash} for anchor in anchors] or [{}]:
        problem = replay(rows.read(connection, " ORDER BY id"), head=head, anchors=named)
        if problem is not None:
            return problem
    return summaries.problem_with(connection, rows.read(connection, " ORDER BY id"), head=head)


def _limit(value: float | None, name: str) -> Decimal | None:
    if value is None:
        return None
    if name == "per_subject_delta":
        return exact(check_delta(value, name=name))
    if name == "budget_delta":  # a sum over many subjects: above 1 it still says something of each
        advice = "give what the deltas of all releases may add up to, for example 1e-5"
        return exact(check_positive(value, name=name, advice=advice))
    return exact(check_epsilon(value, name=name))


def _check_same_budgets(recorded: Budgets, asked: Budgets, path: Path) -> None:
    for name, value in asked.limits().items():
        now = recorded.limits()[name]
        if value is not None and value != now:
            raise LedgerError(
                f"the ledger {path} was opened with {name} = {now}, not {value}; leave it out, "
                "or record the change with change_budgets."
            )


def _check_debit(subjects: Sequence[str], guarantee: DpGuarantee, subject_kind: str) -> None:
    if not isinstance(guarantee, DpGuarantee):
        raise LedgerError(
            f"only a DpGuarantee can be debited, got {type(guarantee).__name__}: what has no "
            "epsilon cannot be counted against a budget."
        )
    if subject_kind not in _SUBJECT_KINDS:
        raise LedgerError(f"subject_kind must be one of {_SUBJECT_KINDS}, got {subject_kind!r}.")
    if isinstance(subjects, str) or not all(isinstance(s, str) and account_of(s) for s in subjects):
        raise LedgerError("every subject must be a text that is not empty.")
    if not subjects:
        raise LedgerError("there is no subject to debit; name at least one.")


def _least(pairs: Sequence[tuple[Decimal | None, Decimal]]) -> float:
    left = [limit - spent for limit, spent in pairs if limit is not None]
    return float_down(max(min(left), Decimal(0))) if left else math.inf
