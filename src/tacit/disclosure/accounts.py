"""What a ledger proves: its chain is intact, and no subject spent more than this. No names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tacit.errors import LedgerError
from tacit.guarantee import round_up
from tacit.ledger import Ledger
from tacit.ledger.anchors import configured_anchor


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The sums of one ledger; `debits_here` are those for the model or run that is disclosed."""

    file: str
    debits: int
    debits_here: int
    subjects: int
    most_epsilon: float  # of the subject that spent most
    most_delta: float
    budget_epsilon: float | None
    per_subject_epsilon: float | None
    anchor: str
    anchored: bool


def read_account(path: Path, *, about: str) -> Account:
    """Verify the ledger and sum it up; a ledger that is not intact proves nothing."""
    anchor = configured_anchor(path)
    with Ledger.open(path, create=False, anchor=anchor) as ledger:
        checked = ledger.verify()
        if not checked:
            raise LedgerError(
                f"the ledger {path} is not intact ({checked.problem}), so nothing can be stated "
                "from it; restore it from a copy, then disclose again."
            )
        debits = [entry for entry in ledger.entries() if entry.kind == "debit"]
        here = sum(about in entry.purpose for entry in debits)
        if here == 0:
            raise LedgerError(
                f"the ledger {path} holds no debit for this model or run; give the one that its "
                "releases were debited to, or leave --ledger out."
            )
        spent = ledger.subjects().values()
        budgets = ledger.budgets()
        return Account(
            file=path.name,
            debits=len(debits),
            debits_here=here,
            subjects=len(spent),
            most_epsilon=max((round_up(one.epsilon) for one in spent), default=0.0),
            most_delta=max((one.delta for one in spent), default=0.0),
            budget_epsilon=budgets["budget_epsilon"],
            per_subject_epsilon=budgets["per_subject_epsilon"],
            anchor=checked.anchor,
            anchored=anchor is not None,
        )
