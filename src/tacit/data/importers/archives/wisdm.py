"""WISDM v1.1: phones in 36 pockets at 20 Hz, one text file with some damaged lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.importers.archives.defaults import find, need, refuse_columns, with_defaults
from tacit.data.importers.archives.recipe import Made, Recipe
from tacit.data.importers.marks import wanted_runs
from tacit.data.importers.options import ImportOptions, Span
from tacit.data.importers.recording import (
    Material,
    Recording,
    choose_channels,
    signal_of,
)
from tacit.errors import TacitError

NAME = "wisdm"
DAMAGED = "damaged line"
_RATE = 20.0
_ENTRY = re.compile(
    r"(\d+),([A-Za-z]+),(\d+),(-?[\d.]+(?:[eE][-+]?\d+)?),(-?[\d.]+(?:[eE][-+]?\d+)?)"
    r",(-?[\d.]+(?:[eE][-+]?\d+)?)"
)
_BREAK = 20.0  # usual steps of the clock


def recognises(files: Sequence[Path]) -> bool:
    """Whether the raw file is there."""
    return find(files, "WISDM_ar_v1.1_raw.txt") is not None


def read(files: Sequence[Path], options: ImportOptions) -> Made:
    """Windows of 128 samples inside one activity of one person."""
    refuse_columns(options, archive=NAME)
    options = with_defaults(options, window=Span(128, False))
    path = need(files, "WISDM_ar_v1.1_raw.txt", archive=NAME)
    entries, damaged = _entries(path)
    runs = list(_runs(entries))
    notes = (("labels", "second field"), ("subjects", "first field"))
    items = _recordings(entries, runs, damaged, options)
    return Material(format="WISDM v1.1", items=items, n_items=len(runs), notes=notes), options


class _Entries:
    def __init__(self, rows: list[tuple[str, ...]]) -> None:
        columns = list(zip(*rows, strict=True))
        self.person: NDArray[np.str_] = np.array(columns[0])
        self.activity: NDArray[np.str_] = np.array(columns[1])
        self.time = np.array(columns[2], dtype=np.float64)
        self.axes: Floats = np.array(columns[3:], dtype=np.float64)


def _entries(path: Path) -> tuple[_Entries, int]:
    """Entries end in a semicolon; some lines hold two, some lack a value, some have no time.

    A damaged entry is a missing sample of the run it stands in.
    """
    rows: list[tuple[str, ...]] = []
    damaged = 0
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        for text in line.split(";"):
            text = text.strip().rstrip(",")
            if not text:
                continue
            match = _ENTRY.fullmatch(text)
            if match is None or match.group(3) == "0":
                damaged += 1
                if rows:
                    rows.append((*rows[-1][:3], "nan", "nan", "nan"))
            else:
                rows.append(match.groups())
    if not rows:
        raise TacitError(f"{path.name} holds no entry of WISDM; check that it is the raw file.")
    return _Entries(rows), damaged


def _runs(entries: _Entries) -> Iterator[Integers]:
    """Rows of one person and one activity without a jump of the clock."""
    same = (entries.person[1:] == entries.person[:-1]) & (
        entries.activity[1:] == entries.activity[:-1]
    )
    steps = np.diff(entries.time)
    usual = np.median(steps[same & (steps > 0)]) if np.any(same & (steps > 0)) else 1.0
    broken = ~same | (steps < 0) | (steps > _BREAK * usual)
    yield from np.split(np.arange(len(entries.time)), np.flatnonzero(broken) + 1)


def _recordings(
    entries: _Entries, runs: list[Integers], damaged: int, options: ImportOptions
) -> Iterator[Recording]:
    dropped = Counter({DAMAGED: damaged})
    for rows in runs:
        stretches, excluded = wanted_runs(entries.activity[rows], options, rate=_RATE)
        signals = [
            signal_of(entries.axes[k, rows], name=name, rate=_RATE) for k, name in enumerate("xyz")
        ]
        yield Recording(
            where=f"{NAME} person {entries.person[rows[0]]}",
            signals=choose_channels(signals, options.channels, rate=options.rate, where=NAME),
            subject=None if options.subject == "none" else str(entries.person[rows[0]]),
            stretches=stretches,
            excluded=excluded,
            dropped=dropped,
        )
        dropped = Counter()


RECIPE = Recipe(NAME, recognises, read)
