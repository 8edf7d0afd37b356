"""A table as columns of numbers or texts, from CSV or Parquet; nothing is interpreted here."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.system.extras import needs

LABEL_NAMES = ("label", "labels", "class", "target", "y", "activity", "stage")
MISSING = frozenset({"", "na", "nan", "n/a", "null", "none", "?"})
_FEWEST_COLUMNS = 3  # fewer may be values that happen to count
# Excel marks its text files with a byte order mark, which is no part of the first cell.
_ENCODING = "utf-8-sig"
_CHUNK = 20_000  # rows to hold as text at a time
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
# What pandas calls the row numbers that it writes unless told not to.
_ROW_NUMBERS = re.compile(r"|unnamed: \d+|__index_level_\d+__", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One column: numbers (NaN where missing) or texts ("" where missing), never both.

    `lists` are whole series, one in each cell, as Parquet allows. `first_missing` is the row
    (from 1) and the text of the first missing cell, `first_text` that of the first cell of texts
    that is no number.
    """

    name: str
    place: int
    numbers: Floats | None = field(default=None, repr=False)
    texts: NDArray[np.str_] | None = field(default=None, repr=False)
    lists: Floats | None = field(default=None, repr=False)
    first_missing: tuple[int, str] | None = None
    first_text: tuple[int, str] | None = None
    is_time: bool = False

    @property
    def title(self) -> str:
        """How messages call it."""
        return repr(self.name) if self.name else f"{self.place + 1}"

    def as_texts(self) -> NDArray[np.str_]:
        """Its values as texts, whole numbers without a point, "" where missing."""
        if self.texts is not None:
            return self.texts
        assert self.numbers is not None
        return numbers_as_texts(self.numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of equal length; `named` is false for a file without a header."""

    where: str
    columns: tuple[Column, ...]
    n_rows: int
    named: bool


def numbers_as_texts(numbers: Floats) -> NDArray[np.str_]:
    """Numbers as labels are written: 1, not 1.0, and "" where missing."""
    distinct, place = np.unique(numbers, return_inverse=True)
    shown = np.array(["" if np.isnan(v) else f"{v:.15g}" for v in distinct.tolist()], dtype=np.str_)
    texts: NDArray[np.str_] = shown[place.reshape(-1)]
    return texts


def read_csv(path: Path, *, label: str | None = None, any_names: bool = False) -> Table:
    """The columns of a text file with commas, semicolons, tabs, bars or blanks between cells.

    Columns without a name, and two of one name, are refused unless `any_names`.
    """
    try:
        return _read_csv(path, label, any_names)
    except UnicodeDecodeError as error:
        raise TacitError(
            f"{path.name} is not text in UTF-8 ({error.reason}); save it as text."
        ) from error
    except csv.Error as error:
        raise TacitError(
            f"{path.name} is not a readable table ({error}); save it again."
        ) from error


def _read_csv(path: Path, label: str | None, any_names: bool) -> Table:
    with path.open(encoding=_ENCODING, newline="") as file:
        delimiter = _delimiter(list(islice(file, 20)))
    rows = _rows(path, delimiter)
    first = list(islice(rows, _CHUNK))
    if not first:
        raise TacitError(f"{path.name} is empty; give one series a row.")
    if _is_numbering(first[0]):
        raise TacitError(
            f"{path.name} begins with a row of column numbers, which would be read as a series; "
            "write the table without its header."
        )
    header = first.pop(0) if is_header(first, label) else None
    if not first:
        raise TacitError(f"{path.name} has a header and no series; give one series a row.")
    names = [""] * len(first[0]) if header is None else [name.strip() for name in header]
    if not any_names:
        _check_names(path, names)
    width = len(first[0]) if header is None else len(header)
    building = [_Building(place, name, delimiter == ";") for place, name in enumerate(names)]
    n_labels = int(
        label is not None
        or any(name.lower() in LABEL_NAMES for name in names)
        or (header is None and any(not is_number(cell) for cell in first[0]))
    )
    n_rows = 0
    for chunk in _chunks(first, rows):
        _check_widths(path, chunk, n_rows, width=width, n_labels=n_labels)
        for column, cells in zip(building, zip(*chunk, strict=True), strict=True):
            column.add(cells, n_rows)
        n_rows += len(chunk)
    columns = tuple(column.finish() for column in building)
    return Table(where=path.name, columns=columns, n_rows=n_rows, named=header is not None)


def _chunks(first: list[list[str]], rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    chunk = first
    while chunk:
        yield chunk
        chunk = list(islice(rows, _CHUNK))


def _rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    """The rows that have content, after any remarks that loggers put before the table."""
    with path.open(encoding=_ENCODING, newline="") as file:
        content = dropwhile(lambda line: line.startswith("#"), file)
        blanks = delimiter == " "
        lines = (line.strip() for line in content) if blanks else content
        for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=blanks):
            if "".join(row).strip():
                yield row


def _delimiter(lines: Sequence[str]) -> str:
    lines = [line for line in lines if line.strip() and not line.startswith("#")]

    def even(mark: str) -> bool:
        counts = {line.count(mark) for line in lines}
        return len(counts) == 1 and min(counts) > 0

    if even(";"):
        return ";"
    if even(","):
        return ","
    widths = {len(line.split()) for line in lines}
    blanks = len(widths) == 1 and min(widths) > 1
    others = (("\t", even("\t")), ("|", even("|")), (" ", blanks))
    return next((mark for mark, fits in others if fits), ",")


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_header(rows: list[list[str]], label: str | None) -> bool:
    """Two texts or more in the first row; a lone one may be the label of a series.

    It names a column if it is a name for labels, or stands beside column numbers, and is not among
    the labels below it. Two texts that both come again below are a label and a person.
    """
    texts = [place for place, cell in enumerate(rows[0]) if not is_number(cell)]
    if len(texts) != 1:
        below = [{row[place] for row in rows[1:] if len(row) > place} for place in texts]
        again = [rows[0][place] in cells for place, cells in zip(texts, below, strict=True)]
        return len(texts) >= 2 and not (len(texts) < len(rows[0]) and all(again))
    place = texts[0]
    name, others = rows[0][place].strip(), rows[0][:place] + rows[0][place + 1 :]
    named = name.lower() in LABEL_NAMES or name == label or _is_numbering(others)
    found = {row[place].strip() for row in rows[1:] if len(row) > place}
    return not others or (named and name not in found)


def _is_numbering(cells: list[str]) -> bool:
    """0, 1, 2, ... or 1, 2, 3, ...: what pandas calls columns that have no names."""
    first = next(iter(cells), "").strip()
    if len(cells) < _FEWEST_COLUMNS or first not in ("0", "1"):
        return False
    return [cell.strip() for cell in cells] == [str(int(first) + k) for k in range(len(cells))]


def _check_names(path: Path, names: Sequence[str]) -> None:
    if not any(names):
        return
    for number, name in enumerate(names, start=1):
        if _ROW_NUMBERS.fullmatch(name):
            raise TacitError(
                f"{path.name} column {number} is named {name!r}, which looks like row numbers and "
                "would be read as a value; write the table without its index."
            )
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise TacitError(
            f"{path.name} has {count} columns named {name!r}; give every column its own name."
        )


def _check_widths(
    path: Path, rows: list[list[str]], before: int, *, width: int, n_labels: int
) -> None:
    """Rows are counted as series everywhere: from 1, a header left out."""
    for number, row in enumerate(rows, start=before + 1):
        if len(row) != width:
            other = "the first series" if number > 1 else "the header"
            raise TacitError(
                f"{path.name} row {number} has {len(row) - n_labels} values but {other} has "
                f"{width - n_labels}; cut, pad or resample the series to one length."
            )


class _Building:
    """A column while its cells come in, chunk by chunk."""

    def __init__(self, place: int, name: str, decimal_comma: bool) -> None:
        self._place = place
        self._name = name
        self._decimal_comma = decimal_comma
        self._chunks: list[tuple[Floats, NDArray[np.str_] | None]] = []
        self._first_missing: tuple[int, str] | None = None
        self._first_text: tuple[int, str] | None = None

    def add(self, cells: Sequence[str], before: int) -> None:
        texts = None
        try:
            numbers = np.array(cells, dtype=np.float64)
        except ValueError:
            numbers = self._with_gaps(cells, before)
            texts = _texts(cells)
        if self._first_missing is None and np.isnan(numbers).any():
            row = int(np.flatnonzero(np.isnan(numbers))[0])
            if cells[row].strip().lower() in MISSING:
                self._first_missing = (before + row + 1, cells[row].strip())
        self._chunks.append((numbers, texts))

    def _with_gaps(self, cells: Sequence[str], before: int) -> Floats:
        known = {cell: self._number(cell) for cell in set(cells)}
        if self._first_text is None and None in known.values():
            row = next(row for row, cell in enumerate(cells) if known[cell] is None)
            self._first_text = (before + row + 1, cells[row].strip())
        return np.array([known[cell] for cell in cells], dtype=np.float64)

    def _number(self, cell: str) -> float | None:
        """The number in a cell, NaN if it is missing, None if there is a text."""
        text = cell.strip()
        if self._decimal_comma and _DECIMAL_COMMA.fullmatch(text):
            text = text.replace(",", ".")
        if is_number(text):
            return float(text)
        return np.nan if text.lower() in MISSING else None

    def finish(self) -> Column:
        told: dict[str, Any] = {
            "name": self._name,
            "place": self._place,
            "first_missing": self._first_missing,
        }
        if self._first_text is None:
            return Column(numbers=np.concatenate([numbers for numbers, _ in self._chunks]), **told)
        texts = [
            numbers_as_texts(numbers) if texts is None else texts for numbers, texts in self._chunks
        ]
        return Column(texts=np.concatenate(texts), first_text=self._first_text, **told)


def _texts(cells: Sequence[str]) -> NDArray[np.str_]:
    known = {cell: "" if cell.strip().lower() in MISSING else cell.strip() for cell in set(cells)}
    return np.array([known[cell] for cell in cells], dtype=np.str_)


def read_parquet(path: Path) -> Table:
    """The columns of a Parquet file; a cell may hold a whole series."""
    needs("import", "pyarrow", what="reading .parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return _from_arrow(path, pq.read_table(path))
    except TacitError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise TacitError(f"{path.name} is not a readable .parquet file; write it again.") from error


def _from_arrow(path: Path, table: Any) -> Table:
    names = [str(name).strip() for name in table.column_names]
    if not table.num_rows:
        raise TacitError(f"{path.name} has no rows; give one series a row.")
    _check_names(path, names)
    columns = tuple(
        _arrow_column(path, place, name, table.column(place)) for place, name in enumerate(names)
    )
    return Table(where=path.name, columns=columns, n_rows=table.num_rows, named=True)


def _arrow_column(path: Path, place: int, name: str, column: Any) -> Column:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        moments = column.cast(pa.timestamp("ns")).cast(pa.int64()).to_numpy() / 1e9
        return Column(name=name, place=place, numbers=moments, is_time=True)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return Column(name=name, place=place, lists=_arrow_lists(path, name, column))
    missing = None
    if column.null_count:
        missing = (int(np.flatnonzero(column.is_null().to_numpy())[0]) + 1, "null")
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        numbers = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        if missing is None and np.isnan(numbers).any():
            missing = (int(np.flatnonzero(np.isnan(numbers))[0]) + 1, "nan")
        return Column(name=name, place=place, numbers=numbers, first_missing=missing)
    built = _Building(place, name, False)
    built.add(["" if cell is None else str(cell) for cell in column.to_pylist()], 0)
    return built.finish()


def _arrow_lists(path: Path, name: str, column: Any) -> Floats:
    rows = column.to_pylist()
    lengths = {len(row) if row is not None else 0 for row in rows}
    if len(lengths) > 1 or not min(lengths):
        raise TacitError(
            f"{path.name} column {name!r} holds series of {min(lengths)} to {max(lengths)} values; "
            "cut, pad or resample them to one length."
        )
    try:
        return np.array(
            [[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64
        )
    except (ValueError, TypeError) as error:
        raise TacitError(
            f"{path.name} column {name!r} holds lists that are not numbers; leave it out with "
            "--ignore."
        ) from error
