"""Columns whose content speaks against their role: persons and devices taken for samples."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.importers.tables.columns import Column, Table
from tacit.data.importers.tables.groups import codes_of, group_numbers
from tacit.errors import TacitError

_PEOPLE_AND_THINGS = re.compile(
    r"drivers?|operators?|workers?|riders?|employees?|staff|nurses?|doctors?|athletes?|players?"
    r"|runners?|child|students?|owners?|clients?|members?|animals?|horses?|cows?|dogs?|rats?"
    r"|mouse|mice|(.*_)?names?|initials|who|city|country|location|site|plant|hospital|clinic|ward"
    r"|room|brand|make|model|version|firmware|path|address|comments?|remarks?|notes?"
)
_FEWEST_ROWS = 5
_LONG_RUN = 20  # rows with one value
_LARGE = 10_000  # whole numbers from here on are rarely counts of a slow sensor
_MOST_IN_TURN = 64


def names_people_or_things(plain_name: str) -> bool:
    """Whether a column of texts is called like what it is about rather than like a class."""
    return bool(_PEOPLE_AND_THINGS.fullmatch(plain_name))


def same_partition(first: Column, second: Column) -> bool:
    """Whether two columns are two names for one thing: each value of one goes with one other."""
    one, other = codes_of(first), codes_of(second)
    pairs = len(np.unique(np.stack([one, other]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(other))


def refuse_mixed_streams(
    table: Table,
    left_out: Sequence[Column],
    keys: Sequence[Column],
    label: Column | None,
) -> None:
    """In a long table, an identifier that changes inside a series tells two recordings apart."""
    group = group_numbers(keys, table.n_rows)
    for column in left_out:
        codes = codes_of(column)
        if not 2 <= len(np.unique(codes)) <= table.n_rows / _FEWEST_ROWS:
            continue
        inside = _changes(codes, group)
        if not inside.any() or _counts_up(column, group):
            continue
        if label is not None and same_partition(column, label):
            continue
        raise TacitError(
            f"{table.where} column {column.title} has {len(np.unique(codes))} values, which may "
            f"tell one recording from another; say so with --series {column.name} or --subject "
            f"{column.name}, name it with --label if it is the label, or leave it out with "
            "--ignore."
        )


def _changes(codes: Integers, group: Integers) -> NDArray[np.bool_]:
    """For every two rows that follow each other in a group, whether the value changes."""
    order = np.argsort(group, kind="stable")
    together = np.diff(group[order]) == 0
    changed: NDArray[np.bool_] = (np.diff(codes[order]) != 0)[together]
    return changed


def _counts_up(column: Column, group: Integers) -> bool:
    if column.numbers is None:
        return False
    order = np.argsort(group, kind="stable")
    together = np.diff(group[order]) == 0
    return bool(np.all(np.diff(column.numbers[order])[together] > 0))


def refuse_numbered_things(
    table: Table, values: Sequence[Column], keys: Sequence[Column], channels: Sequence[str]
) -> None:
    """In a long table, what stays one number while samples vary is no sample.

    Channels that were asked for by name are taken as they are.
    """
    group = group_numbers(keys, table.n_rows)
    codes = {column.place: codes_of(column) for column in values}
    busy = [place for place, found in codes.items() if np.mean(_changes(found, group)) > 0.5]
    for column in values:
        if column.name in channels or column.numbers is None or not set(busy) - {column.place}:
            continue
        found = codes[column.place]
        reason = _takes_turns(found)
        if not reason and not channels:
            reason = _stays(column.numbers, found, group)
        if reason:
            raise TacitError(
                f"{table.where} column {column.title} {reason}, like an identifier and not like "
                "samples; say what it is with --subject, --series or --label, leave it out with "
                "--ignore, or take it as a channel by naming all channels with --channels."
            )


def _takes_turns(codes: Integers) -> str:
    """1, 2, 3, 1, 2, 3, ...: devices that report one after the other."""
    n_values = int(codes.max()) + 1
    if not 2 <= n_values <= min(_MOST_IN_TURN, len(codes) // 4):
        return ""
    first = len(np.unique(codes[:n_values])) == n_values
    again = bool(np.all(codes[n_values:] == codes[:-n_values]))
    return "repeats the same numbers in turn" if first and again else ""


def _stays(numbers: Floats, codes: Integers, group: Integers) -> str:
    n_values, n_groups = int(codes.max()) + 1, int(group.max()) + 1
    n_changes = int(np.count_nonzero(_changes(codes, group)))
    rows_per_group = len(codes) / n_groups
    if n_groups > 1 and not n_changes and n_values > 1 and rows_per_group >= _FEWEST_ROWS:
        return "keeps one number through every series"
    whole = bool(np.all(np.isfinite(numbers) & (numbers == np.round(numbers))))
    if not whole or (n_values == 1 and numbers[0] == 0):
        return ""
    n_runs = int(np.count_nonzero(np.diff(codes))) + 1
    # A slow sensor comes back to a number, and an identifier has its rows in one place.
    alone = n_runs == n_values or float(np.min(numbers)) >= _LARGE
    if alone and len(codes) >= _LONG_RUN * n_runs:
        return "keeps one whole number over many rows"
    return ""


def repeated_key(columns: Sequence[Column], label: Column | None) -> Column | None:
    """In a wide table, an identifier that several rows share, and that is not the label's."""
    for column in columns:
        codes = codes_of(column)
        if 2 <= len(np.unique(codes)) < len(codes) and not (
            label is not None and same_partition(column, label)
        ):
            return column
    return None


def refuse_repeated(table: Table, column: Column) -> None:
    """Rows that share an identifier may be of one person, who must not be in both parts."""
    raise TacitError(
        f"{table.where} column {column.title} is shared by several rows, which may be of one "
        f"person; say so with --subject {column.name}, or leave it out with --ignore "
        f"{column.name}."
    )


def refuse_unnamed_key(table: Table, values: Sequence[Column]) -> None:
    """Without a header, whole numbers beside fractions: a label or a person, no sample."""
    if table.named or len(values) < _FEWEST_ROWS or table.n_rows < _FEWEST_ROWS:
        return
    whole = [
        column.numbers is not None and is_key_beside_fractions(column.numbers) for column in values
    ]
    for place, inner in ((0, whole[1:]), (-1, whole[:-1])):
        if whole[place] and not any(inner):
            number = values[place].place + 1
            raise TacitError(
                f"{table.where} column {number} holds whole numbers and no other does, so it may "
                "be the label or a person and no sample; say what it is with --label "
                f"{'first' if place == 0 else 'last'} or --subject {number}, or leave it out with "
                f"--ignore {number}."
            )


def is_key_beside_fractions(numbers: Floats) -> bool:
    """Whole numbers, and not all the same."""
    known = numbers[np.isfinite(numbers)]
    return bool(len(known) and np.all(known == np.round(known)) and known.min() < known.max())
