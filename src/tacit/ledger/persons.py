"""One ledger per person or data set, outside the folder of any run.

A run that begins anew finds here what earlier ones spent on the same data. Its budget is fixed by
the first run; whoever owns the data may raise it, and the ledger records why.

Standard library only, because devices carry this module.
"""

from __future__ import annotations

import hashlib
import math
import os
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.ledger import Ledger
from tacit.ledger.anchors import configured_anchor
from tacit.ledger.chain import exact, float_up
from tacit.ledger.subjects import account_of

LEDGERS = "TACIT_LEDGERS"


def ledger_folder(configured: Path | None = None) -> Path:
    """Where the ledgers of this machine's persons lie: configured, or of the account."""
    if configured is not None:
        return configured
    named = os.environ.get(LEDGERS)
    return Path(named) if named else Path.home() / ".tacit" / "persons"


def data_key(X: Any) -> str:
    """A name for an array of series that is the same in any order and whatever their labels."""
    rows = X.astype("<f8") + 0.0  # -0.0 and 0.0 are one value
    digest = hashlib.sha256(repr(rows.shape[1:]).encode())
    for one in sorted(hashlib.sha256(row.tobytes()).digest() for row in rows):
        digest.update(one)
    return f"data:{digest.hexdigest()[:32]}"


def ledger_path(folder: Path, person: str) -> Path:
    """The one ledger of a person, whose name is not in that of the file."""
    account = account_of(person)
    if not account:
        raise LedgerError(f"a person or data set needs a name, got {person!r}; give another.")
    return folder / f"{hashlib.sha256(account.encode()).hexdigest()[:32]}.db"


def series_list(path: Path) -> Path:
    """The list of the series that were debited in the ledger at `path`."""
    return path.with_suffix(".series")


def check_not_gone(path: Path) -> None:
    """Refuse where only the list of a ledger is left: a new one would be a second budget."""
    # In this order: a ledger is created before its list, perhaps between the two questions.
    if series_list(path).exists() and not path.exists():
        raise LedgerError(
            f"the ledger {path} is gone, but its list of series is still beside it; nothing was "
            "released, restore the ledger from a copy."
        )


def open_person_ledger(path: Path, *, budget_epsilon: float, budget_delta: float | None) -> Ledger:
    """The ledger at `path`; a new one gets these budgets, an earlier one keeps its own.

    One that was begun without a limit on delta gets this one on top of what is spent.
    """
    ledger = _opened(path, budget_epsilon=budget_epsilon, budget_delta=budget_delta)
    if budget_delta is not None and ledger.remaining().delta == math.inf:
        ledger.change_budgets(
            reason="the first run with a limit on delta",
            budget_delta=float_up(exact(ledger.spent().delta) + exact(budget_delta)),
        )
    return ledger


def _opened(path: Path, *, budget_epsilon: float, budget_delta: float | None) -> Ledger:
    check_not_gone(path)
    anchor = configured_anchor(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise LedgerError(
            f"cannot make the folder {path.parent} for ledgers: {error.strerror}; name another in "
            f"{LEDGERS}."
        ) from error
    # Without a list nothing was debited: then somebody died, or is about, creating the ledger.
    if not path.exists() or (not series_list(path).exists() and not Ledger.begun(path)):
        try:
            return Ledger.open(
                path, budget_epsilon=budget_epsilon, budget_delta=budget_delta, anchor=anchor
            )
        except LedgerError:
            # Another run with another budget was first; then it is an earlier one.
            if not path.exists() or anchor is not None:
                raise
    return Ledger.open(path, create=False, anchor=anchor)
