"""Readers, one per file format: each turns a file into series and labels, or says what is wrong."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Cube
from tacit.data.dataset import Labels, Series
from tacit.data.validate import as_cube, as_labels
from tacit.errors import TacitError

# What a refusal may name and only the import knows; whoever loads a table has --label alone.
_IMPORT_OPTION = re.compile(r"--(?!label\b)[a-z]")


def read_table(path: Path, *, label: str | None = None) -> tuple[Cube, Labels]:
    """Series and labels of one file, by its ending; `label` is a column name, first or last."""
    series = read_labelled(path, label=label)
    assert series.y is not None
    return series.X, series.y


def read_series(path: Path, *, label: str | None = None) -> tuple[Cube, Labels | None]:
    """Series of one file, and their labels if it has any."""
    series = read_file(path, label=label)
    return series.X, series.y


def read_labelled(path: Path, *, label: str | None = None) -> Series:
    """The content of a file that must have labels."""
    series = read_file(path, label=label)
    if series.y is None:
        raise TacitError(
            f"{path.name} holds X without y; add the labels as y, or name its arrays X_train, "
            "y_train, X_test and y_test."
            if path.suffix.lower() == ".npz"
            else f"{path.name} does not say which column is the label; pass --label with a column "
            "name, first or last, or name the column 'label'."
        )
    return series


def read_file(path: Path, *, label: str | None = None) -> Series:
    """The content of one file, by its ending."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise TacitError(
            f"{path.name}: no reader for '{path.suffix}'; use one of {', '.join(sorted(READERS))}."
        )
    if path.stat().st_size == 0:
        raise TacitError(f"{path.name} is empty; give at least one series.")
    return reader(path, label)


def _read_ts(path: Path, label: str | None) -> Series:
    # The library stops at odd places with odd errors; any of them means the file is malformed.
    from aeon.datasets import load_from_ts_file

    try:
        X, y = load_from_ts_file(str(path))
    except (OSError, ValueError, IndexError, TypeError, KeyError) as error:
        raise TacitError(
            f"{path.name} is not a readable .ts file ({error}); see the header it needs in "
            "docs/reference/data.md."
        ) from error
    cube = as_cube(X, where=path.name)
    return Series(X=cube, y=as_labels(y, n_series=len(cube), where=path.name))


def _read_text(path: Path, label: str | None) -> Series:
    """A table if it has a header or its label is a named column; else series as UCR has them."""
    from tacit.data.importers.tables.columns import is_header

    rows = [
        [cell for cell in re.split(r"[\s,]+", line.strip()) if cell]
        for line in _lines(path)
        if line.strip()
    ]
    named = label not in (None, "first", "last")
    if named or (rows and rows[0][0].startswith("#")) or (rows and is_header(rows, label)):
        return _read_table(path, label)
    return _from_rows(path, rows, label_column=0 if label in (None, "first") else -1)


def _read_npz(path: Path, label: str | None) -> Series:
    arrays = open_npz(path)
    if "X" not in arrays:
        raise TacitError(
            f"{path.name} holds {sorted(arrays)}; name its arrays X and y, or X_train, y_train, "
            "X_test and y_test."
        )
    cube = as_cube(arrays["X"], where=path.name)
    labels = arrays.get("y")
    if labels is not None:
        labels = as_labels(labels, n_series=len(cube), where=path.name)
    return Series(
        X=cube,
        y=labels,
        subject=subjects_of(arrays, "subject", n_series=len(cube), where=path.name),
        **recorded(arrays, n_channels=cube.shape[1], where=path.name),
    )


def npz_names(path: Path) -> frozenset[str]:
    """The names of a .npz file's arrays; none of them is read."""
    return frozenset(_from_npz(path, lambda archive: archive.files))


def open_npz(path: Path) -> dict[str, Any]:
    """All arrays of a .npz file; pickled objects are refused, never executed."""
    found: dict[str, Any] = _from_npz(path, dict)
    return found


def _from_npz(path: Path, take: Callable[[Any], Any]) -> Any:
    if path.stat().st_size == 0:
        raise TacitError(f"{path.name} is empty; give at least one series.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return take(archive)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        raise TacitError(
            f"{path.name} is not a readable .npz of plain number and text arrays; "
            "write it with numpy.savez and no objects."
        ) from error


def subjects_of(arrays: dict[str, Any], key: str, *, n_series: int, where: str) -> Any:
    """One person per series, or None if the file names nobody."""
    subject = arrays.get(key)
    if subject is not None and subject.shape != (n_series,):
        raise TacitError(
            f"{where} {key} has shape {subject.shape} for {n_series} series; give one entry per "
            "series."
        )
    return subject


def recorded(arrays: dict[str, Any], *, n_channels: int, where: str) -> dict[str, Any]:
    """How the series were recorded, as far as an .npz says so: `rate` and `channel_names`."""
    found: dict[str, Any] = {}
    if "rate" in arrays and arrays["rate"].size == 1:
        found["rate"] = float(arrays["rate"].reshape(()))
    if "channels" in arrays:
        names = tuple(str(name) for name in arrays["channels"].reshape(-1))
        if len(names) != n_channels:
            raise TacitError(
                f"{where} names {len(names)} channels and its series have {n_channels}; "
                "give one name per channel."
            )
        found["channel_names"] = names
    return found


def _read_table(path: Path, label: str | None) -> Series:
    from tacit.data.importers.tables.read import load_table

    try:
        return load_table(path, label=label)
    except TacitError as error:
        text = str(error)
        if "tacit data import" in text or not _IMPORT_OPTION.search(text):
            raise
        told = f"{text.removesuffix('.')} (options of 'tacit data import')."
        raise TacitError(told) from error


def _lines(path: Path) -> list[str]:
    try:
        # Excel marks its text files with a byte order mark, which is no part of the first cell.
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TacitError(
            f"{path.name} is not text in UTF-8 ({error.reason}); save it as text."
        ) from error


def _from_rows(path: Path, rows: list[list[str]], *, label_column: int | None) -> Series:
    """Rows are counted as series everywhere: from 1, a header left out."""
    values: list[list[float]] = []
    labels: list[str] = []
    if not rows:
        raise TacitError(f"{path.name} is empty; give one series a row.")
    for line, row in enumerate(rows, start=1):
        cells = list(row)
        if len(cells) != len(rows[0]):
            n_labels = 0 if label_column is None else 1
            raise TacitError(
                f"{path.name} row {line} has {len(cells) - n_labels} values but the first series "
                f"has {len(rows[0]) - n_labels}; cut, pad or resample the series to one length."
            )
        if label_column is not None:
            labels.append(cells.pop(label_column))
        if not cells:
            raise TacitError(
                f"{path.name} row {line} has a label and a series of length 0; add its values."
            )
        values.append([_number(path, line, step, cell) for step, cell in enumerate(cells, 1)])
    cube = as_cube(np.array(values), where=path.name)
    if label_column is None:
        return Series(X=cube)
    return Series(X=cube, y=as_labels(labels, n_series=len(cube), where=path.name))


def _number(path: Path, line: int, step: int, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        shown = cell if cell.strip() else "(nothing)"
        raise TacitError(
            f"{path.name} row {line}, value {step} is {shown!r}, not a number; "
            "correct it or name the label column with --label."
        ) from None


READERS: dict[str, Callable[[Path, str | None], Series]] = {
    ".ts": _read_ts,
    ".tsv": _read_text,
    ".txt": _read_text,
    ".csv": _read_table,
    ".npz": _read_npz,
    ".parquet": _read_table,
}
