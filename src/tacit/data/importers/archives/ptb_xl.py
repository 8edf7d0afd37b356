"""PTB-XL: 21,799 ECGs of 10 s with twelve leads, five classes, folds that keep patients apart."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.arrays import Floats
from tacit.data.importers.archives.defaults import find, need, refuse_columns
from tacit.data.importers.archives.recipe import Made, Recipe
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import Batch, Material, Signal, choose_channels
from tacit.data.importers.tables.columns import Table, read_csv
from tacit.data.importers.waveforms import read_record
from tacit.errors import TacitError

NAME = "ptb-xl"
SEVERAL = "diagnoses of several classes"
NONE = "no diagnosis"
GONE = "record file missing"
_TEST_FOLD = "10"
_AT_ONCE = 200  # records


@dataclass(frozen=True, slots=True)
class _Row:
    path: Path
    label: str
    patient: str
    part: str


def recognises(files: Sequence[Path]) -> bool:
    """Whether the two tables of the archive are there."""
    return bool(find(files, "ptbxl_database.csv")) and bool(find(files, "scp_statements.csv"))


def read(files: Sequence[Path], options: ImportOptions) -> Made:
    """Whole ECGs at 100 Hz (500 with --rate above 100) with one diagnostic superclass each."""
    refuse_columns(options, archive=NAME)
    if options.window is not None and options.window.in_seconds and options.window.amount > 10:
        raise TacitError(f"--window {options.window} is longer than the 10 s of {NAME}.")
    database = need(files, "ptbxl_database.csv", archive=NAME)
    statements = need(files, "scp_statements.csv", archive=NAME)
    superclass = _superclasses(read_csv(statements, any_names=True))
    fine = options.rate is not None and options.rate > 100
    dropped: Counter[str] = Counter()
    rows = list(_rows(database, superclass, fine, options, dropped))
    notes = (("labels", "diagnostic superclass, records with exactly one"),
             ("subjects", "patient_id"), ("split", "fold 10 is the test part"))  # fmt: skip
    made = Material(
        format="PTB-XL",
        items=_batches(rows, options, dropped),
        n_items=-(-len(rows) // _AT_ONCE),
        notes=notes,
        dtype=np.float32,
    )
    return made, options


def _columns(table: Table, *names: str) -> list[list[str]]:
    by_name = {column.name: column for column in table.columns}
    for name in names:
        if name not in by_name:
            raise TacitError(f"{table.where} has no column {name!r}; unpack the archive again.")
    return [by_name[name].as_texts().tolist() for name in names]


def _superclasses(table: Table) -> dict[str, str]:
    """The superclass of every diagnostic code; the codes stand in the first column."""
    codes = table.columns[0].as_texts().tolist()
    (classes,) = _columns(table, "diagnostic_class")
    return {code: name for code, name in zip(codes, classes, strict=True) if name}


def _rows(
    database: Path,
    superclass: dict[str, str],
    fine: bool,
    options: ImportOptions,
    dropped: Counter[str],
) -> Iterator[_Row]:
    table = read_csv(database)
    file = "filename_hr" if fine else "filename_lr"
    columns = _columns(table, file, "scp_codes", "patient_id", "strat_fold")
    for name, codes, patient, fold in zip(*columns, strict=True):
        label = _label(codes, superclass, dropped, database)
        if label and options.classes:
            label = options.classes.get(label, "")
        if not label and not options.unlabelled:
            continue
        path = _record_path(database, name)
        if not path.is_file():
            dropped[GONE] += 1
            continue
        yield _Row(path, label, patient, "test" if fold == _TEST_FOLD else "train")


def _record_path(database: Path, name: str) -> Path:
    path = (database.parent / f"{name}.hea").resolve()
    if not path.is_relative_to(database.parent.resolve()):
        raise TacitError(f"{database.name} names a record outside of its folder: {name!r}.")
    return path


def _label(codes: str, superclass: dict[str, str], dropped: Counter[str], database: Path) -> str:
    try:
        found = ast.literal_eval(codes or "{}")
        classes = {superclass[code] for code in found if code in superclass}
    except (ValueError, SyntaxError, TypeError) as error:
        raise TacitError(
            f"{database.name} has codes that cannot be read: {codes[:40]!r}; unpack it again."
        ) from error
    if len(classes) == 1:
        return classes.pop()
    dropped[SEVERAL if classes else NONE] += 1
    return ""


def _batches(rows: list[_Row], options: ImportOptions, dropped: Counter[str]) -> Iterator[Batch]:
    for part in ("train", "test"):
        chosen = [row for row in rows if row.part == part]
        for first in range(0, len(chosen), _AT_ONCE):
            yield _batch(chosen[first : first + _AT_ONCE], part, options, dropped)
            dropped = Counter()
    if not rows:
        told = ", ".join(f"{reason}: {count}" for reason, count in dropped.items())
        raise TacitError(f"{NAME} has no record to import ({told}); unpack it whole.")


def _batch(rows: list[_Row], part: str, options: ImportOptions, dropped: Counter[str]) -> Batch:
    series: list[Floats] = []
    signals: tuple[Signal, ...] = ()
    for row in rows:
        signals = choose_channels(
            read_record(row.path), options.channels, rate=options.rate, where=row.path.name
        )
        values = np.stack([signal.read(0, signal.n_samples) for signal in signals])
        if series and values.shape != series[0].shape:
            raise TacitError(
                f"{row.path.name} has leads and samples {values.shape}, the others "
                f"{series[0].shape}; unpack the archive again."
            )
        series.append(values)
    return Batch(
        where=f"{NAME} {part}",
        X=np.stack(series),
        channel_names=tuple(signal.name for signal in signals),
        y=np.array([row.label for row in rows]),
        subject=None if options.subject == "none" else np.array([row.patient for row in rows]),
        rate=signals[0].rate,
        part=part,
        dropped=dropped,
    )


RECIPE = Recipe(NAME, recognises, read)
