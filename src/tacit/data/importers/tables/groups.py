"""The rows of a long table that belong together: by their keys, and along the clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.importers.tables.columns import Column
from tacit.errors import TacitError

REPEATED = "repeated time step"
_LATE = 10.0  # usual steps: a sample may come in late by so much, a clock that starts again is not
_SHORTEST_RUN = 5  # rows between falls of the clock, on average


def codes_of(column: Column) -> Integers:
    """A number for every distinct value of a column."""
    return np.unique(column.as_texts(), return_inverse=True)[1].reshape(-1)


def group_numbers(keys: Sequence[Column], n_rows: int) -> Integers:
    """For every row, the number of its group: the rows that agree in all keys."""
    if not keys:
        return np.zeros(n_rows, dtype=np.int64)
    codes = np.stack([codes_of(column) for column in keys])
    return np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1)


def grouped_rows(keys: Sequence[Column], n_rows: int) -> list[Integers]:
    """The rows of each group, in the order of the file."""
    group = group_numbers(keys, n_rows)
    order = np.argsort(group, kind="stable")
    pieces = np.split(order, np.cumsum(np.bincount(group))[:-1])
    return sorted(pieces, key=lambda piece: int(piece[0]))


def in_time(
    rows: Integers, times: Floats | None, dropped: Counter[str], *, keyed: bool, where: str
) -> list[Integers]:
    """Rows in the order of time, without those that repeat a moment.

    A clock that falls far back has started again, and a new piece begins there; where a column
    names the series (`keyed`), pieces that overlap are refused, because the column does not tell
    them apart. Samples that come a few steps late are put into their place.
    """
    if times is None:
        return [rows]
    result = []
    for piece in _pieces(rows, times, keyed=keyed, where=where):
        ordered = piece[np.argsort(times[piece], kind="stable")]
        fresh = np.concatenate(([True], np.diff(times[ordered]) > 0))
        dropped[REPEATED] += int(np.count_nonzero(~fresh))
        result.append(ordered[fresh])
    return result


def _pieces(rows: Integers, times: Floats, *, keyed: bool, where: str) -> list[Integers]:
    steps = np.diff(times[rows])
    disordered = np.count_nonzero(steps < 0) > len(steps) / _SHORTEST_RUN
    growing = np.diff(np.unique(times[rows])) if disordered else steps[steps > 0]
    usual = float(np.median(growing)) if len(growing) else 0.0
    falls = np.flatnonzero(steps < -_LATE * usual) + 1
    if not len(falls):
        return [rows]
    pieces = np.split(rows, falls)
    if keyed and not _overlap(pieces, times):
        return [np.concatenate(sorted(pieces, key=lambda piece: float(times[piece[0]])))]
    if keyed or len(rows) < _SHORTEST_RUN * len(pieces):
        raise TacitError(
            f"{where} has a clock that falls back {len(falls)} times, first in row "
            f"{int(rows[falls[0]]) + 1}, as if several recordings were mixed; name the columns "
            "that tell them apart with --series, or sort the table by time."
        )
    return pieces


def _overlap(pieces: Sequence[Integers], times: Floats) -> bool:
    ends = sorted((float(times[piece].min()), float(times[piece].max())) for piece in pieces)
    return any(start <= stop for (_, stop), (start, _) in pairwise(ends))
