"""The form of a table: wide or long, and which of its columns make up a channel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tacit.data.importers.options import ImportOptions
from tacit.data.importers.tables.clock import read_clock
from tacit.data.importers.tables.columns import Column, Table
from tacit.errors import TacitError

_NUMBERED = re.compile(r"(.*?)[\s_.\-\[(]*(\d+)[\])]?")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")  # columns named by the time of day
_LONG_ROW = 20  # numbered columns: fewer may be sensors, more are time steps
_SHORT_ROW = 13
_FEWEST_STEPS = 4  # numbered columns, or rows of a series
_FAST = 0.1  # seconds
_STEPS = re.compile(r"(time[\s_]?)?step|frame|tick|sample([\s_]?(no|index|number))?")
FEW_ROWS = 20


def _numbered(values: Sequence[Column]) -> dict[str, dict[int, Column]] | None:
    """Columns like ax_0 … ax_127, ay_0 … by prefix and number, if all are such and complete."""
    groups: dict[str, dict[int, Column]] = {}
    for column in values:
        match = _NUMBERED.fullmatch(column.name)
        if match is None:
            return None
        groups.setdefault(match.group(1), {})[int(match.group(2))] = column
    numbers = {tuple(sorted(group)) for group in groups.values()}
    if len(numbers) != 1 or sum(len(group) for group in groups.values()) != len(values):
        return None
    (found,) = numbers
    if len(found) < 2 or found != tuple(range(found[0], found[0] + len(found))):
        return None
    return groups


def is_long(
    table: Table,
    values: list[Column],
    series: Sequence[Column],
    time: Column | None,
    options: ImportOptions,
) -> bool:
    """Whether a row is a time step rather than a series; refuse what may be either."""
    if options.form is not None:
        return options.form == "long"
    if any(column.lists is not None for column in values):
        return False
    groups = _numbered(values) if table.named else None
    width = len(next(iter(groups.values()))) if groups else len(values)
    if (groups and width >= _LONG_ROW) or all(_CLOCK.fullmatch(c.name) for c in values):
        return False
    n_keys = _n_keys(series) if series else table.n_rows
    keyed = n_keys < table.n_rows
    if options.series is not None or options.time is not None:
        unclear = False
    elif keyed or time is not None:
        few = time is None and table.n_rows < _FEWEST_STEPS * n_keys
        unclear = few or (_may_be_steps(table, values) and not _is_fast(table, time, options))
    else:
        refuse_strangers(table, values)
        if table.named and groups is None:
            unclear = table.n_rows > FEW_ROWS and not _grow(values)
        else:
            unclear = width < _SHORT_ROW and table.n_rows > 50 * len(values)
    if unclear:
        raise TacitError(
            f"{table.where} has {table.n_rows} rows of {len(values)} values, which may be "
            f"{table.n_rows} series of length {width} or time steps of {len(values)} channels; "
            "import it with tacit data import and --form wide or --form long."
        )
    return keyed or time is not None


def _may_be_steps(table: Table, values: Sequence[Column]) -> bool:
    """Whether columns are numbered in a way that may count time steps as well as sensors."""
    if not table.named:
        return False
    numbered = [column for column in values if _NUMBERED.fullmatch(column.name)]
    groups = _numbered(values)
    return (groups is not None and len(groups) > 1) or (
        len(numbered) >= _FEWEST_STEPS and 2 * len(numbered) >= len(values)
    )


def _is_fast(table: Table, time: Column | None, options: ImportOptions) -> bool:
    """Whether rows count steps, or follow each other too fast for each to be a series."""
    if time is None:
        return False
    if _STEPS.fullmatch(time.name.lower()):
        return True
    clock = read_clock(time, options, where=table.where)
    steps = np.diff(clock.times)
    steps = steps[steps > 0]
    return bool(
        clock.unit_seconds is not None
        and len(steps)
        and float(np.median(steps)) * clock.unit_seconds < _FAST
    )


def _grow(values: Sequence[Column]) -> bool:
    """Whether the names are numbers that grow, such as wavelengths or seconds."""
    try:
        numbers = [float(column.name) for column in values]
    except ValueError:
        return False
    return len(numbers) > 1 and all(a < b for a, b in pairwise(numbers))


def _n_keys(columns: Sequence[Column]) -> int:
    keys = np.stack([np.unique(c.as_texts(), return_inverse=True)[1].reshape(-1) for c in columns])
    return len(np.unique(keys, axis=1).T)


def refuse_strangers(table: Table, values: list[Column]) -> None:
    """In a wide table, a column that is no part of the numbered ones is no sample."""
    if not table.named or any(column.lists is not None for column in values):
        return
    numbered = [column for column in values if _NUMBERED.fullmatch(column.name)]
    others = [column for column in values if not _NUMBERED.fullmatch(column.name)]
    if others and len(numbered) >= max(4, 2 * len(others)):
        raise TacitError(
            f"{table.where} column {others[0].title} does not belong to the numbered columns "
            f"({some([column.name for column in numbered])}); say what it is with --label, "
            "--subject, --series or --time, or leave it out with --ignore."
        )
    if not others and _numbered(numbered) is None and len(numbered) >= 4:
        lengths: dict[str, int] = {}
        for column in numbered:
            match = _NUMBERED.fullmatch(column.name)
            assert match is not None
            lengths[match.group(1)] = lengths.get(match.group(1), 0) + 1
        if len(lengths) > 1 and len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise TacitError(
                f"{table.where} has channels of different lengths ({told}); give every channel "
                "the same columns."
            )


def find_channels(
    table: Table, values: list[Column], long: bool, options: ImportOptions
) -> tuple[tuple[str, tuple[Column, ...]], ...]:
    """Names of channels with their columns: one each if long, one per time step if wide."""
    found: list[tuple[str, tuple[Column, ...]]]
    if long:
        found = [(column.name or f"column {column.place + 1}", (column,)) for column in values]
    elif any(column.lists is not None for column in values):
        found = [(column.name, (column,)) for column in values if column.lists is not None]
        others = [column for column in values if column.lists is None]
        if others:
            raise TacitError(
                f"{table.where} column {others[0].title} stands beside columns that hold whole "
                "series; say what it is, or leave it out with --ignore."
            )
    else:
        groups = _numbered(values) if table.named else None
        if groups:
            found = [
                (prefix.rstrip("_.-[( ") or "value", tuple(group[n] for n in sorted(group)))
                for prefix, group in groups.items()
            ]
        else:
            found = [("value", tuple(values))]
    if not options.channels:
        return tuple(found)
    by_name = dict(found)
    for name in options.channels:
        if name not in by_name:
            raise TacitError(
                f"{table.where} has no channel {name!r}; --channels takes names out of: "
                f"{some(list(by_name))}."
            )
    return tuple((name, by_name[name]) for name in options.channels)


def some(names: Sequence[str]) -> str:
    """A list of names for a sentence, cut in the middle if it is long."""
    return ", ".join(names if len(names) <= 10 else [*names[:5], "…", *names[-2:]])
