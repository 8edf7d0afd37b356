"""A ledger as people ask about it: by purpose, by subject, and all that was released of one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from itertools import islice
from typing import Any

from tacit.errors import TacitError
from tacit.guarantee import rounded_down, rounded_up
from tacit.ledger import Amount, Ledger
from tacit.ledger.chain import Entry

MOST_SUBJECTS = 200
_UP = Context(prec=60, rounding=ROUND_CEILING)  # as the ledger itself adds


Amounts = tuple[str, str, Decimal, int]  # purpose, subject, epsilon, how many times


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRow:
    """One subject's line; `share` of its own budget is spent, where it has one."""

    subject: str
    purposes: str
    spent: str
    left: str
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """All that left about one subject."""

    subject: str
    entries: list[dict[str, str]]
    spent: str
    left: str
    guarantees: list[dict[str, Any]]


def by_purpose(amounts: Sequence[Amounts]) -> list[tuple[str, int, int, str]]:
    """Per purpose how many debits, of how many subjects, and the most that one of them spent."""
    spent: dict[str, dict[str, Decimal]] = {}
    debits: dict[str, int] = {}
    for purpose, subject, epsilon, times in amounts:
        mine = spent.setdefault(purpose, {})
        mine[subject] = _UP.add(mine.get(subject, Decimal(0)), _UP.multiply(epsilon, times))
        debits[purpose] = debits.get(purpose, 0) + times
    return [(why, debits[why], len(of), _up(max(of.values()))) for why, of in spent.items()]


def by_subject(
    ledger: Ledger, amounts: Sequence[Amounts], subjects: Mapping[str, Amount]
) -> list[SubjectRow]:
    """Per subject its purposes, what it spent and what is left; the first `MOST_SUBJECTS`."""
    purposes: dict[str, dict[str, None]] = {}
    for purpose, subject, _, _ in amounts:
        purposes.setdefault(subject, {})[purpose] = None
    limits, total = ledger.budgets(), ledger.spent().epsilon
    own, store = limits["per_subject_epsilon"], limits["budget_epsilon"]
    rows = []
    for subject, spent in islice(subjects.items(), MOST_SUBJECTS):
        left = [budget - used for budget, used in ((own, spent.epsilon), (store, total))
                if budget is not None]  # fmt: skip
        rows.append(
            SubjectRow(
                subject=subject,
                purposes=", ".join(purposes[subject]),
                spent=rounded_up(spent.epsilon),
                left=rounded_down(max(0.0, min(left))) if left else "no limit",
                share=None if own is None else min(1.0, spent.epsilon / own),
            )
        )
    return rows


def disclosure(ledger: Ledger, subject: str) -> Disclosure:
    """What was released about one subject, for which purpose, and what it promises them."""
    entries = _debits(ledger.entries(subject))
    if not entries:
        raise TacitError(f"this ledger has no release of {subject!r}; look at the list.")
    left = ledger.remaining(entries[0].subject).epsilon
    promises = dict.fromkeys(entry.guarantee for entry in entries)
    return Disclosure(
        subject=entries[0].subject,
        entries=[_line(entry) for entry in entries],
        spent=rounded_up(ledger.spent(entries[0].subject).epsilon),
        left="no limit" if left == float("inf") else rounded_down(left),
        guarantees=[json.loads(one) for one in promises],
    )


def _line(entry: Entry) -> dict[str, Any]:
    return {
        "time": entry.time[:16].replace("T", " "),
        "purpose": entry.purpose,
        "epsilon": rounded_up(float(entry.epsilon)),
        "hash": entry.hash[:16],
    }


def _debits(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.kind == "debit"]


def _up(amount: Decimal) -> str:
    return rounded_up(float(amount))
