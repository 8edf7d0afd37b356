"""Entries of the ledger: exact sums, the hash that links one entry to the next, and its replay.

Every entry carries the totals after it, inside the hash, so a debit reads two rows instead of all
of them, and `replay` recomputes each total from the amounts. Amounts are decimal text: 0.1 means
one tenth, ten times 0.1 is 1 and fits a budget of 1.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import Any

from tacit.errors import TacitError
from tacit.ledger.subjects import account_of

NO_PREVIOUS = "0" * 64
ZERO = Decimal(0)
_CLIENT, _SERIES = ("client", "replace"), ("series", "replace")
# Sums of ordinary numbers are exact within 60 digits; anything longer is rounded up.
_SUM = Context(prec=60, rounding=ROUND_CEILING)


def exact(value: float) -> Decimal:
    """The number as it is written: 0.1 is one tenth, not its binary neighbour."""
    return Decimal(repr(float(value)))


def add(left: Decimal, right: Decimal) -> Decimal:
    """Add exactly, or upwards past 60 digits: never less than what was spent."""
    return _SUM.add(left, right)


def float_up(value: Decimal) -> float:
    """The smallest float that, as written, is at least `value`."""
    near = float(value)
    return near if exact(near) >= value else math.nextafter(near, math.inf)


def float_down(value: Decimal) -> float:
    """The largest float that, as written, is at most `value`."""
    near = float(value)
    return near if exact(near) <= value else math.nextafter(near, -math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row: the opening (`genesis`), a `debit`, or a recorded change of a `budget`."""

    id: int
    kind: str
    time: str
    subject: str
    subject_kind: str
    purpose: str
    epsilon: str
    delta: str
    guarantee: str
    code_version: str
    subject_epsilon: str
    subject_delta: str
    total_epsilon: str
    total_delta: str
    previous: str
    hash: str = ""

    def sealed(self) -> Entry:
        """The same entry with its hash filled in."""
        return replace(self, hash=entry_hash(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for export, with the guarantee (or budgets) as an object."""
        return {**asdict(self), "guarantee": json.loads(self.guarantee)}

    @property
    def relation(self) -> tuple[str, str]:
        """Unit and neighbours that a debit counts as; amounts add up only within one relation."""
        plain = json.loads(self.guarantee)
        return str(plain.get("counted_as", plain["unit"])), str(plain["neighbours"])

    def counted_with(self, earlier: Entry) -> Entry | None:
        """This debit as it adds to an earlier one of its subject; None if it does not.

        Replacing the whole data of a client covers replacing one of its series, so what a client
        loses may be added to what its series lost. The reverse would promise too much.
        """
        if self.relation == earlier.relation:
            return self
        if (self.relation, earlier.relation) != (_CLIENT, _SERIES):
            return None
        plain = {**json.loads(self.guarantee), "counted_as": "series"}
        return replace(self, guarantee=json.dumps(plain, sort_keys=True))

    def bound_as(self, earlier: Entry) -> Entry:
        """This debit with the list of series that an earlier one recorded, if it names none.

        A debit that knows of no list, as of `tacit release`, must not set the list free.
        """
        if self.series_list is not None or earlier.series_list is None:
            return self
        plain = {**json.loads(self.guarantee), "series_list": earlier.series_list}
        return replace(self, guarantee=json.dumps(plain, sort_keys=True))

    @property
    def series_list(self) -> str | None:
        """State of the list of the subject's series that a debit recorded, if there is a list."""
        found = json.loads(self.guarantee).get("series_list")
        return None if found is None else str(found)


COLUMNS = tuple(column.name for column in fields(Entry))
_LIMITS = ("budget_epsilon", "budget_delta", "per_subject_epsilon", "per_subject_delta")


def entry_hash(entry: Entry) -> str:
    """SHA-256 over every column but the hash itself; `previous` makes it a chain."""
    text = json.dumps(astuple(entry)[:-1], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """What may be spent in all and per subject; None means no limit."""

    budget_epsilon: Decimal | None = None
    budget_delta: Decimal | None = None
    per_subject_epsilon: Decimal | None = None
    per_subject_delta: Decimal | None = None

    # Two ledgers never share a chain, even with equal budgets and entries.
    ledger_id: str = field(default_factory=lambda: secrets.token_hex(16), compare=False)

    def limits(self) -> dict[str, Decimal | None]:
        """The four limits by name."""
        return {name: getattr(self, name) for name in _LIMITS}

    def changed(self, limits: Mapping[str, Decimal]) -> Budgets:
        """The same ledger with some limits replaced."""
        return Budgets(**{**self.limits(), **limits}, ledger_id=self.ledger_id)

    def to_text(self) -> str:
        """Canonical JSON for the chain."""
        named = {name: None if v is None else str(v) for name, v in self.limits().items()}
        return json.dumps({**named, "ledger_id": self.ledger_id}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Budgets:
        """Read back what `to_text` wrote."""
        plain = json.loads(text)
        limits = {name: None if plain[name] is None else Decimal(plain[name]) for name in _LIMITS}
        return cls(**limits, ledger_id=plain["ledger_id"])


class _Broken(TacitError):
    """A sentence about the first entry that does not fit."""


@dataclass(slots=True)
class _Replay:
    """Totals and the last hash while walking the chain from its opening."""

    previous: str = NO_PREVIOUS
    count: int = 0
    epsilon: Decimal = ZERO
    delta: Decimal = ZERO

    def step(self, entry: Entry, subjects: dict[str, tuple[Decimal, Decimal]]) -> None:
        expected = self.count + 1
        if entry.id != expected:
            raise _Broken(f"entry {expected} is missing (found {entry.id})")
        if entry.previous != self.previous:
            raise _Broken(f"entry {entry.id} does not follow from the entry before it")
        if entry.hash != entry_hash(entry):
            raise _Broken(f"entry {entry.id} was altered")
        if (entry.kind == "genesis") != (entry.id == 1):
            raise _Broken(f"entry {entry.id} cannot be of kind {entry.kind!r}")
        self._add(entry, subjects)
        self.previous, self.count = entry.hash, entry.id

    def _add(self, entry: Entry, subjects: dict[str, tuple[Decimal, Decimal]]) -> None:
        epsilon, delta = Decimal(entry.epsilon), Decimal(entry.delta)
        account = account_of(entry.subject)
        before = subjects.get(account, (ZERO, ZERO))
        after = add(before[0], epsilon), add(before[1], delta)
        self.epsilon, self.delta = add(self.epsilon, epsilon), add(self.delta, delta)
        carried = (Decimal(entry.subject_epsilon), Decimal(entry.subject_delta))
        totals = (Decimal(entry.total_epsilon), Decimal(entry.total_delta))
        if carried != after or totals != (self.epsilon, self.delta):
            raise _Broken(f"the totals of entry {entry.id} do not add up")
        subjects[account] = after


def replay(
    entries: Iterable[Entry], *, head: tuple[int, str], anchors: Mapping[int, str]
) -> str | None:
    """Walk the whole chain; None if all fits, else the first thing that does not.

    `anchors` maps counts to hashes written down earlier, outside of the ledger.
    """
    walk = _Replay()
    subjects: dict[str, tuple[Decimal, Decimal]] = {}
    open_anchors = dict(anchors)
    try:
        for entry in entries:
            walk.step(entry, subjects)
            if open_anchors.pop(entry.id, entry.hash) != entry.hash:
                return f"entry {entry.id} is not the one that the anchor names"
    except _Broken as broken:
        return str(broken)
    except (InvalidOperation, TypeError, ValueError):
        return f"entry {walk.count + 1} holds values that cannot be read"
    if open_anchors:
        return f"the anchor names entry {min(open_anchors)}, but the chain ends at {walk.count}"
    if head != (walk.count, walk.previous):
        return f"the head names {head[0]} entries, but the chain has {walk.count}"
    return None
