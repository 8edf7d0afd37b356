"""Which series were counted under which name: data that grow, shrink or change names stay known.

Beside each ledger lies a list of the hashes of the series that were debited in it. Data of which
half or more are on such a list, or that hold half or more of a list, are those of its person.
Constant series do not count, since anybody may have one. Each series has two hashes, of its exact
values and of its shape: z-scored per channel and rounded, so that another unit, offset or
precision of the same recording is the same series.

Standard library only, because devices carry this module.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError, reason_of
from tacit.ledger import Ledger
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

    Refused if they were counted under another name, which would give them a second budget.
    """
    _check_complete(folder)
    before = [person for person, known in _lists(folder) if _same_data(marks, known)]
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


def remember(folder: Path, person: str, marks: Marks) -> None:
    """Add these series to the person's list, on disk, before anything of them is debited.

    Refused if another run has counted them under another name since `person_of` was asked.
    """
    path = series_list(ledger_path(folder, person))
    try:
        with locked(folder / "series.lock", timeout_seconds=_TIMEOUT_SECONDS):
            person_of(folder, marks, name=person, otherwise=person)
            known = _read(path)[1] if path.exists() else frozenset()
            if not path.exists() or not marks <= known:
                lines = [json.dumps(person), *sorted(known | marks)]
                write_secret(path, "\n".join(lines).encode("ascii"))
    except OSError as error:  # a lock that is not to be had in time too
        raise LedgerError(
            f"cannot write {path}: {reason_of(error)}; nothing was released."
        ) from error


def _same_data(marks: Marks, known: Marks) -> bool:
    smaller = min(len(marks), len(known))
    return smaller > 0 and 2 * len(marks & known) >= smaller


def _lists(folder: Path) -> Iterator[tuple[str, Marks]]:
    yield from (_read(path) for path in sorted(folder.glob("*.series")))


def _check_complete(folder: Path) -> None:
    """Refuse where somebody's ledger is gone, or their list after a debit: they would look new."""
    for path in sorted(folder.glob("*.series")):
        check_not_gone(path.with_suffix(".db"))
    for path in sorted(folder.glob("*.db")):
        if not series_list(path).exists() and _debited(path):
            raise LedgerError(
                f"the ledger {path} has debits, but its list of series beside it is gone; nothing "
                "was released, restore the file ending in .series from a copy."
            )


def _debited(path: Path) -> bool:
    with closing(Ledger.open(path, create=False)) as ledger:
        return bool(ledger.subjects())


def _read(path: Path) -> tuple[str, Marks]:
    try:
        first, *rest = path.read_text(encoding="ascii").split("\n")
        person = json.loads(first)
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"cannot read the list of series {path}; nothing was released, restore it from a copy."
        ) from error
    return str(person), frozenset(rest)
