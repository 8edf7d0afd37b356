"""Which series were counted under which name: data that grow, shrink or change names stay known.

Beside each ledger lies a list of the hashes of the series that were debited in it. Data of which
half or more are on such a list, or that hold half or more of a list, are those of its person. A
list only grows, and every debit records how it began, so an edited one is refused. Constant series
do not count, since anybody may have one. Each series has two hashes, of its exact values and of its
shape: z-scored per channel and rounded, so that another unit, offset or precision of the same
recording is the same series.

Standard library only, because devices carry this module.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError, reason_of
from tacit.ledger import Ledger
from tacit.ledger.anchors import configured_anchor
from tacit.ledger.persons import check_not_gone, ledger_path, series_list
from tacit.ledger.subjects import account_of
from tacit.system.files import write_secret
from tacit.system.locks import locked

Marks = frozenset[str]  # hashes of series

_TIMEOUT_SECONDS = 30.0
_SHORTEST_SHAPE = 8  # series of few steps look alike when they are z-scored
_HUNDREDTHS = 100.0
_FLAT = 1e-9  # of the largest value: less than that is the rounding of a constant channel


def marks_of(X: Any) -> Marks:
    """The hashes of every series in an array of them, constant ones apart."""
    rows = X.astype("<f8") + 0.0  # -0.0 and 0.0 are one value
    shape = repr(rows.shape[1:]).encode()
    varied = [row for row in rows if row.size and row.min() != row.max()]
    exact = {hashlib.sha256(shape + row.tobytes()).hexdigest()[:32] for row in varied}
    if rows.ndim < 2 or rows.shape[-1] < _SHORTEST_SHAPE:
        return frozenset(exact)
    shapes = {hashlib.sha256(b"shape" + shape + _z_scored(row)).hexdigest()[:32] for row in varied}
    return frozenset(exact | shapes)


def _z_scored(row: Any) -> bytes:
    """Values in whole hundredths of a standard deviation of their channel; constant channels 0."""
    largest = abs(row).max()
    centred = row / largest  # no square over- or underflows then
    centred = centred - centred.mean(axis=-1, keepdims=True)
    spread = centred.std(axis=-1, keepdims=True)
    spread[spread < _FLAT] = 1.0 / _FLAT
    steps: bytes = (centred / spread * _HUNDREDTHS).round().astype("<i8").tobytes()
    return steps


def person_of(folder: Path, marks: Marks, *, name: str, otherwise: str) -> str:
    """Whose these series are: of `name` if given, of who had them before, or of `otherwise`.

    Refused if they were counted under another name, which would give them a second budget, and
    where any list was edited or is gone: what was on it would look new.
    """
    _check_complete(folder)
    lists = [_unedited(path) for path in sorted(folder.glob("*.series"))]
    return _person_among(lists, folder, marks, name=name, otherwise=otherwise)


def _person_among(
    lists: Iterable[_List], folder: Path, marks: Marks, *, name: str, otherwise: str
) -> str:
    before = [known.person for known in lists if _same_data(marks, frozenset(known.marks))]
    if name:
        if any(account_of(person) != account_of(name) for person in before):
            raise LedgerError(
                f"these series were counted under another name in {folder} before and have one "
                "budget; give that name, or none."
            )
        return name
    if len(before) > 1:
        raise LedgerError(
            f"these series were counted under {len(before)} names in {folder} before, each with a "
            "budget of its own; report them apart."
        )
    return before[0] if before else otherwise


@contextmanager
def remembered(folder: Path, person: str, marks: Marks) -> Iterator[str]:
    """Add these series to the person's list, on disk, and hold it while they are debited.

    Yields the list's state for the debit to record. A list that is ahead of the last debit is that
    of a debit that failed; one that begins otherwise was edited, and is refused. Refused too if
    another run has counted these series under another name since `person_of` was asked.
    """
    path = series_list(ledger_path(folder, person))
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / "series.lock", timeout_seconds=_TIMEOUT_SECONDS))
            known = _remember(path, person, marks)
        except OSError as error:  # a lock that is not to be had in time too
            raise LedgerError(
                f"cannot write {path}: {reason_of(error)}; nothing was released."
            ) from error
        yield known.state(len(known.marks))


@dataclass(frozen=True, slots=True)
class _List:
    """The series of one person in the order in which they were counted."""

    person: str
    marks: tuple[str, ...]

    def state(self, count: int) -> str:
        """COUNT:DIGEST of its first `count` series and of whose they are."""
        return f"{count}:{hashlib.sha256(self._text(count)).hexdigest()}"

    def to_bytes(self) -> bytes:
        return self._text(len(self.marks))

    def _text(self, count: int) -> bytes:
        return "\n".join([json.dumps(self.person), *self.marks[:count]]).encode("ascii")


def _remember(path: Path, person: str, marks: Marks) -> _List:
    exists, folder = path.exists(), path.parent
    known = _unedited(path) if exists else _List(person, ())
    new = marks.difference(known.marks)
    if exists and not new:
        return known
    # Only names may be new since `person_of`, whose look into every ledger takes a while.
    _check_complete(folder)
    lists = [_read(other) for other in sorted(folder.glob("*.series"))]
    _person_among(lists, folder, marks, name=person, otherwise=person)
    grown = _List(known.person, (*known.marks, *sorted(new)))
    write_secret(path, grown.to_bytes())
    return grown


def _same_data(marks: Marks, known: Marks) -> bool:
    smaller = min(len(marks), len(known))
    return smaller > 0 and 2 * len(marks & known) >= smaller


def _check_complete(folder: Path) -> None:
    """Refuse where somebody's ledger is gone, or their list after a debit: they would look new."""
    for path in sorted(folder.glob("*.series")):
        check_not_gone(path.with_suffix(".db"))
    for path in sorted(folder.glob("*.db")):
        listed = series_list(path)
        # Asked again after the debits, since a list is written before the first of them.
        if not listed.exists() and _debited(path) and not listed.exists():
            raise LedgerError(
                f"the ledger {path} has debits, but its list of series beside it is gone; nothing "
                "was released, restore the file ending in .series from a copy."
            )


def _unedited(path: Path) -> _List:
    """A list, refused unless it begins as it did at the last debit in its ledger."""
    place = path.with_suffix(".db")
    check_not_gone(place)
    with closing(Ledger.open(place, create=False, anchor=_watched(place))) as ledger:
        last = ledger.last_debit(_read(path).person)
    known = _read(path)  # after its ledger, since a debit at the same time writes it before
    counted = None if last is None else last.series_list
    count = len(known.marks) if counted is None else int(counted.partition(":")[0])
    if (
        ledger_path(path.parent, known.person).name != place.name
        or len(known.marks) < count
        or counted not in (None, known.state(count))
    ):
        raise LedgerError(
            f"the list of series {path} is not the one that the last debit in its ledger counted: "
            "it was edited or is an old copy; nothing was released, restore it from a copy."
        )
    return known


def _debited(path: Path) -> bool:
    if not Ledger.begun(path):  # somebody died, or is about, creating it
        return False
    with closing(Ledger.open(path, create=False, anchor=_watched(path))) as ledger:
        return bool(ledger.subjects())


def _watched(path: Path) -> Path | None:
    anchor = configured_anchor(path)
    return anchor if anchor is not None and anchor.exists() else None


def _read(path: Path) -> _List:
    try:
        first, *rest = path.read_text(encoding="ascii").split("\n")
        person = json.loads(first)
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"cannot read the list of series {path}; nothing was released, restore it from a copy."
        ) from error
    return _List(str(person), tuple(rest))
