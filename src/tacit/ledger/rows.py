"""What the ledger does inside one SQLite transaction: append an entry, read totals and head."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tacit._version import VERSION
from tacit.errors import BudgetExceeded, LedgerError
from tacit.guarantee import DpGuarantee
from tacit.ledger import accounts as summaries
from tacit.ledger.accounts import Accounts
from tacit.ledger.chain import (
    COLUMNS,
    NO_PREVIOUS,
    ZERO,
    Budgets,
    Entry,
    add,
    entry_hash,
    exact,
    replay,
)
from tacit.ledger.subjects import account_of

SCHEMA = 2
WITHOUT_ACCOUNTS = 1  # the schema before; such a ledger is checked whole and given its accounts
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM entries"
_INSERT = f"INSERT INTO entries VALUES ({', '.join('?' * len(COLUMNS))})"
_TABLES = (
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, "
    + ", ".join(f"{name} TEXT NOT NULL" for name in COLUMNS[1:])
    + ")",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER, hash TEXT)",
    "CREATE INDEX entries_by_subject ON entries (subject, id)",
    "CREATE INDEX entries_of_budgets ON entries (id) WHERE kind <> 'debit'",
)


def begin(connection: sqlite3.Connection, budgets: Budgets) -> None:
    """Create the tables and the first entry, in the transaction that is open."""
    for statement in (*_TABLES, *summaries.TABLES):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    accounts = Accounts.empty(connection)
    wanted = budget_entry("genesis", budgets, reason="opened")
    first = append(connection, wanted, last=None, accounts=accounts)
    accounts.save((first.id, first.hash))


def upgrade(connection: sqlite3.Connection) -> None:
    """Give a ledger from an earlier version its accounts, if its whole chain is intact."""
    check_tables(connection, _TABLES)
    entries = list(read(connection, " ORDER BY id"))
    names: dict[str, str] = {}
    for subject in dict.fromkeys(entry.subject for entry in entries):
        other = names.setdefault(account_of(subject), subject)
        if other != subject:
            raise LedgerError(
                f"this ledger from an earlier version counts {other!r} and {subject!r} apart, "
                "which are one subject now; start a new ledger with what both have left."
            )
    problem = replay(entries, head=head(connection), anchors={})
    if problem is not None:
        raise LedgerError(
            f"this ledger from an earlier version is not intact: {problem}; start a new ledger and "
            "find out who changed this one."
        )
    for statement in summaries.TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")
    summaries.rebuilt(connection, entries).save(head(connection))


def check_tables(
    connection: sqlite3.Connection, tables: Sequence[str] = (*_TABLES, *summaries.TABLES)
) -> None:
    """Refuse a file with other tables, or with triggers that could undo what is written."""
    found = connection.execute("SELECT sql FROM sqlite_master").fetchall()
    if sorted(str(row[0]) for row in found) != sorted(tables):
        raise LedgerError(
            "the tables of the ledger were changed after it was created; nothing was released, "
            "start a new ledger and find out who changed this one."
        )


def identity(connection: sqlite3.Connection) -> str | None:
    """The random id of the ledger as its first entry states it, altered or not."""
    found = list(read(connection, " WHERE id = 1"))
    try:
        return Budgets.from_text(found[0].guarantee).ledger_id
    except (IndexError, KeyError, TypeError, ValueError, ArithmeticError):
        return None


def budget_entry(kind: str, budgets: Budgets, *, reason: str) -> Entry:
    """The opening, or a recorded change of the budgets."""
    return _template(
        kind=kind, subject="", subject_kind="", purpose=reason, guarantee=budgets.to_text()
    )


def debit_entry(
    subject: str,
    guarantee: DpGuarantee,
    purpose: str,
    subject_kind: str,
    series_list: str | None = None,
) -> Entry:
    """One release that is about to happen."""
    stated = guarantee.to_dict()
    if series_list is not None:
        stated["series_list"] = series_list
    return replace(
        _template(
            kind="debit",
            subject=subject,
            subject_kind=subject_kind,
            purpose=purpose,
            guarantee=json.dumps(stated, sort_keys=True, allow_nan=False),
        ),
        epsilon=str(exact(guarantee.epsilon)),
        delta=str(exact(guarantee.delta)),
    )


def _template(*, kind: str, subject: str, subject_kind: str, purpose: str, guarantee: str) -> Entry:
    return Entry(
        id=0,
        kind=kind,
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        subject=subject,
        subject_kind=subject_kind,
        purpose=purpose,
        epsilon="0",
        delta="0",
        guarantee=guarantee,
        code_version=VERSION,
        subject_epsilon="0",
        subject_delta="0",
        total_epsilon="0",
        total_delta="0",
        previous=NO_PREVIOUS,
    )


def append(
    connection: sqlite3.Connection, template: Entry, *, last: Entry | None, accounts: Accounts
) -> Entry:
    """Number the entry, carry the totals forward, link it to `last` and insert it.

    The subject is written as it was the first time. The caller saves the accounts in the end.
    """
    epsilon, delta = Decimal(template.epsilon), Decimal(template.delta)
    own = last_of(connection, accounts, template.subject)
    if own is not None and template.kind == "debit":
        template = _added_to(own, template)
    entry = replace(
        template,
        id=1 if last is None else last.id + 1,
        subject=own.subject if own else template.subject,
        subject_epsilon=str(add(Decimal(own.subject_epsilon) if own else ZERO, epsilon)),
        subject_delta=str(add(Decimal(own.subject_delta) if own else ZERO, delta)),
        total_epsilon=str(add(Decimal(last.total_epsilon) if last else ZERO, epsilon)),
        total_delta=str(add(Decimal(last.total_delta) if last else ZERO, delta)),
        previous=last.hash if last else NO_PREVIOUS,
    ).sealed()
    connection.execute(_INSERT, [getattr(entry, name) for name in COLUMNS])
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (entry.id, entry.hash))
    accounts.note(entry)
    return entry


def _added_to(own: Entry, wanted: Entry) -> Entry:
    added = wanted.counted_with(own)
    if added is None:
        (unit, neighbours), (new_unit, new_neighbours) = own.relation, wanted.relation
        raise LedgerError(
            f"earlier debits of {own.subject!r} count per {unit} under {neighbours}, and this one, "
            f"per {new_unit} under {new_neighbours}, cannot be added to them; nothing was "
            f"released, make a release that counts per {unit}, or leave {own.subject!r} out of it."
        )
    return added.bound_as(own)


def check_fits(entry: Entry, budgets: Budgets) -> None:
    """Refuse an entry whose totals exceed a budget."""
    limits = (
        ("epsilon for the whole store", entry.total_epsilon, budgets.budget_epsilon),
        ("delta for the whole store", entry.total_delta, budgets.budget_delta),
        (f"epsilon for {entry.subject!r}", entry.subject_epsilon, budgets.per_subject_epsilon),
        (f"delta for {entry.subject!r}", entry.subject_delta, budgets.per_subject_delta),
    )
    if Decimal(entry.subject_delta) >= 1:
        raise BudgetExceeded(
            f"this release would bring delta for {entry.subject!r} to {entry.subject_delta}, and a "
            "delta of 1 or more promises nothing; nothing was released."
        )
    for what, total, limit in limits:
        if limit is not None and Decimal(total) > limit:
            raise BudgetExceeded(
                f"this release would bring {what} to {total}, above the budget of {limit}; "
                "nothing was released."
            )


def read(
    connection: sqlite3.Connection, tail: str, values: Sequence[str | int] = ()
) -> Iterator[Entry]:
    """Entries selected by the end of a query."""
    for row in connection.execute(_SELECT + tail, values):
        yield Entry(**dict(zip(COLUMNS, row, strict=True)))


def last_of(connection: sqlite3.Connection, accounts: Accounts, subject: str) -> Entry | None:
    """The last entry of a subject, whose totals are the subject's.

    Refused if it was altered or is gone although the subject has an account.
    """
    account = accounts.find(subject)
    if account is None:
        return None
    found = list(read(connection, " WHERE id = ?", (account.last,)))
    if (
        not found
        or found[0].hash != account.hash
        or account_of(found[0].subject) != account.account
    ):
        raise LedgerError(
            f"entries of {account.name!r} were removed from the ledger or altered; nothing was "
            "released, run 'tacit ledger verify'."
        )
    return _unaltered(found[0])


def head(connection: sqlite3.Connection) -> tuple[int, str]:
    """How many entries there are and the hash of the last one, as recorded apart from them."""
    row: Any = connection.execute("SELECT count, hash FROM head WHERE one = 1").fetchone()
    return (int(row[0]), str(row[1])) if row else (0, NO_PREVIOUS)


def trusted_last(connection: sqlite3.Connection) -> Entry:
    """The last entry of all, refused unless it is the one that the head names."""
    found = list(read(connection, " ORDER BY id DESC LIMIT 1"))
    if not found or (found[0].id, found[0].hash) != head(connection):
        raise LedgerError(
            "the last entry of the ledger is not the one that was written last; nothing was "
            "released, run 'tacit ledger verify'."
        )
    return _unaltered(found[0])


def check_complete(connection: sqlite3.Connection) -> None:
    """Refuse to list a ledger that has lost entries; they are numbered from 1 without gaps."""
    last = trusted_last(connection)
    ((count,),) = connection.execute("SELECT count(*) FROM entries")
    if count != last.id:
        raise LedgerError(
            f"the ledger has {count} entries where {last.id} were written; run 'tacit ledger "
            "verify', and restore it from a copy."
        )


def trusted(connection: sqlite3.Connection) -> tuple[Entry, Accounts]:
    """The last entry of all and the accounts that were sealed with it."""
    last = trusted_last(connection)
    return last, Accounts.sealed(connection, (last.id, last.hash))


def budgets_now(connection: sqlite3.Connection, accounts: Accounts) -> Budgets:
    """The budgets in force: the last entry of the account without a name."""
    found = last_of(connection, accounts, "")
    if found is None:
        raise LedgerError("the ledger has lost its budgets; it cannot be trusted.")
    return Budgets.from_text(found.guarantee)


def spent(connection: sqlite3.Connection, subject: str | None) -> tuple[Decimal, Decimal]:
    """Exact totals of one subject, or of all."""
    last, accounts = trusted(connection)
    if subject is None:
        return Decimal(last.total_epsilon), Decimal(last.total_delta)
    own = last_of(connection, accounts, subject)
    return (Decimal(own.subject_epsilon), Decimal(own.subject_delta)) if own else (ZERO, ZERO)


def totals_of_subjects(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Subject, epsilon and delta as the last entry of each subject states them, oldest first."""
    query = (
        "SELECT subject, subject_epsilon, subject_delta FROM entries WHERE subject <> '' AND id IN "
        "(SELECT max(id) FROM entries GROUP BY subject) ORDER BY id"
    )
    return connection.execute(query).fetchall()


def amounts(connection: sqlite3.Connection) -> list[tuple[str, str, Decimal, int]]:
    """Purpose, subject, epsilon of one debit, and how many debits of these there are."""
    query = (
        "SELECT purpose, subject, epsilon, count(*) FROM entries WHERE kind = 'debit' "
        "GROUP BY purpose, subject, epsilon ORDER BY min(id)"
    )
    return [
        (str(purpose), str(subject), Decimal(epsilon), int(times))
        for purpose, subject, epsilon, times in connection.execute(query)
    ]


def _unaltered(entry: Entry) -> Entry:
    if entry.hash != entry_hash(entry):
        raise LedgerError(
            f"entry {entry.id} of the ledger was altered; nothing was released, "
            "run 'tacit ledger verify'."
        )
    return entry
