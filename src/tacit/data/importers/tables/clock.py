"""The time column of a table: its unit, its rate, its gaps."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.tables.columns import Column
from tacit.errors import TacitError

_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
_EPOCH_UNITS = ("s", "ms", "us", "ns")
_BEHIND = r".*[_\s(\[.]"
_NAMED_UNITS = (
    ("ms", re.compile(rf"({_BEHIND}|)(ms|milli\w*)[)\]]?|.*milli\w*[)\]]?")),
    ("us", re.compile(rf"{_BEHIND}[uµμ]s[)\]]?|.*micro\w*[)\]]?")),
    ("ns", re.compile(rf"{_BEHIND}ns[)\]]?|.*nano\w*[)\]]?")),
    ("s", re.compile(rf"({_BEHIND}(s|secs?|seconds?)|seconds?|secs?)[)\]]?")),
    ("min", re.compile(rf"({_BEHIND}(m|mins?|minutes?)|minutes?)[)\]]?")),
    ("h", re.compile(rf"({_BEHIND}(h|hrs?|hours?)|hours?)[)\]]?")),
)
_IN_BRACKETS = re.compile(r".*[(\[]\s*(.*?)\s*[)\]]")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_OFFSET = re.compile(r"(.*?\d)\s*(Z|[+-]\d{2}:?\d{2})")
_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2}):(\d{2}(?:[.,]\d+)?)")
_OTHER_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([T ,].*)?|\d{1,2}:\d{2}(:\d{2}.*)?")
_DAY = 86400.0
_HOLE = 4.0  # usual steps: beyond, samples are missing even from an uneven clock
_OFF = 0.3  # of a step, from the nearest whole number of steps
_UNEVEN = 0.05  # the share of steps that may be off


@dataclass(frozen=True, slots=True)
class Clock:
    """Times, in a unit of so many seconds (None: unknown)."""

    times: Floats
    unit_seconds: float | None


def is_moments(texts: NDArray[np.str_]) -> bool:
    """Whether texts are dates or times of day, such as 2024-05-01 12:00:00.25 or 12:00:00.25."""
    some = [text for text in texts[:20].tolist() if text]
    return bool(some) and all(_MOMENT.fullmatch(t) or _OTHER_DATE.fullmatch(t) for t in some)


def read_clock(column: Column, options: ImportOptions, *, where: str) -> Clock:
    """The times of a column, in a known unit where one can be told."""
    if column.numbers is None:
        return Clock(_moments(column, where), 1.0)
    if np.isnan(column.numbers).any():
        row = int(np.flatnonzero(np.isnan(column.numbers))[0]) + 1
        raise TacitError(f"{where} row {row} has no time in column {column.title}; add it.")
    return Clock(column.numbers, _unit(column, options, where))


def _moments(column: Column, where: str) -> Floats:
    assert column.texts is not None
    if (column.texts == "").any():
        row = int(np.flatnonzero(column.texts == "")[0]) + 1
        raise TacitError(f"{where} row {row} has no time in column {column.title}; add it.")
    texts = column.texts.tolist()
    if all(map(_TIME_OF_DAY.fullmatch, texts)):
        return _times_of_day(texts)
    for row, text in enumerate(texts, start=1):
        if not _MOMENT.fullmatch(text):
            raise _unreadable(column, where, row, text)
    bare, offsets = _without_offsets(texts, column, where)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            moments = np.array(bare).astype("datetime64[ns]")
        except ValueError as error:
            raise TacitError(
                f"{where} column {column.title} holds times that cannot be read ({error}); write "
                "them as 2024-05-01 12:00:00.25, or as seconds."
            ) from error
    since_first: Floats = (moments - moments.min()).astype(np.int64) / 1e9
    return since_first - offsets


def _unreadable(column: Column, where: str, row: int, text: str) -> TacitError:
    return TacitError(
        f"{where} row {row}, column {column.title} is {text!r}, a time in a form that is not read, "
        "because the order of day and month differs from country to country; write times as "
        "2024-05-01 12:00:00.25 or 12:00:00.25, or as seconds."
    )


def _times_of_day(texts: list[str]) -> Floats:
    """Seconds since midnight; another day begins where the clock goes past it."""
    parts = [text.replace(",", ".").split(":") for text in texts]
    seconds = np.array([3600.0 * int(h) + 60.0 * int(m) + float(s) for h, m, s in parts])
    late, early = seconds >= _DAY - 3600, seconds < 3600
    past = np.concatenate(([0], late[:-1] & early[1:])).astype(np.int64)
    back = np.concatenate(([0], early[:-1] & late[1:])).astype(np.int64)
    return np.asarray(seconds + _DAY * np.cumsum(past - back))


def _without_offsets(texts: list[str], column: Column, where: str) -> tuple[list[str], Floats]:
    """The local times, and by how many seconds each is ahead of universal time."""
    found = [_OFFSET.fullmatch(text) for text in texts]
    bare = [
        (text if match is None else match.group(1)).replace(" ", "T")
        for text, match in zip(texts, found, strict=True)
    ]
    told = [match for match in found if match is not None]
    if told and len(told) < len(texts):
        row = found.index(None) + 1
        raise TacitError(
            f"{where} row {row}, column {column.title} has no offset from universal time and other "
            "rows have one; write all times alike."
        )
    return bare, np.array([0.0 if m is None else _seconds_ahead(m.group(2)) for m in found])


def _seconds_ahead(offset: str) -> float:
    if offset == "Z":
        return 0.0
    digits = offset[1:].replace(":", "")
    return (-60.0 if offset[0] == "-" else 60.0) * (60 * int(digits[:2]) + int(digits[2:]))


def _unit(column: Column, options: ImportOptions, where: str) -> float | None:
    if options.time_unit is not None:
        return _UNITS[options.time_unit]
    if column.is_time:
        return 1.0
    for unit, expression in _NAMED_UNITS:
        if expression.fullmatch(column.name.lower()):
            return _UNITS[unit]
    assert column.numbers is not None
    low, high = float(column.numbers.min()), float(column.numbers.max())
    for seconds in (_UNITS[unit] for unit in _EPOCH_UNITS):
        if low * seconds >= 9.4e8 and high * seconds <= 4.1e9:  # since 1970, now
            return seconds
    told = _IN_BRACKETS.fullmatch(column.name)
    if told is not None:
        raise TacitError(
            f"{where} column {column.title} is in {told.group(1)!r}, which is no known unit of "
            f"time; say it with --time-unit ({', '.join(_UNITS)})."
        )
    steps = np.abs(np.diff(column.numbers))
    steps = steps[steps > 0]
    if len(steps) and float(np.median(steps)) < 1.0:
        return 1.0
    return None


@dataclass(frozen=True, slots=True)
class Pace:
    """The step between samples, in the clock's unit, the rate that it means, and if it is even."""

    step: float
    rate: float | None
    even: bool = True


def find_pace(groups: list[Floats], clock: Clock, options: ImportOptions, *, where: str) -> Pace:
    """The usual step over all groups of growing times."""
    steps = np.concatenate([np.diff(times) for times in groups] or [np.empty(0)])
    steps = steps[steps > 0]
    if not len(steps):
        return Pace(1.0, options.source_rate)
    usual = float(np.median(steps))
    near = steps[steps <= _HOLE * usual]
    ratio = near / usual
    even = float(np.mean(np.abs(ratio - np.maximum(1.0, np.rint(ratio))) > _OFF)) <= _UNEVEN
    if not even and options.rate is None:
        raise TacitError(
            f"{where} has steps in time of {float(near.min()):g} to {float(near.max()):g}; "
            "pass --rate HZ to bring the samples to even steps."
        )
    step = float(near[np.rint(ratio) <= 1].mean()) if even else float(near.mean())
    return Pace(step, options.source_rate or _rate(step, clock.unit_seconds), even)


def _rate(step: float, unit_seconds: float | None) -> float | None:
    if unit_seconds is None:
        return None
    rate = 1.0 / (step * unit_seconds)
    # Clocks in phones and loggers are off by a little; 49.9 Hz is 50 Hz.
    return float(round(rate)) if round(rate) and abs(rate - round(rate)) < 0.005 * rate else rate


def even_places(times: Floats, step: float) -> Integers:
    """The place of every sample on an even grid; gaps leave places empty.

    Steps are rounded one by one, so that a clock that runs a little fast does not drift.
    """
    steps = np.maximum(1, np.rint(np.diff(times) / step)).astype(np.int64)
    return np.concatenate(([0], np.cumsum(steps)))


def evened(times: Floats, values: Floats, step: float) -> Floats:
    """Samples on an even grid, by straight lines between them; NaN where too many are missing."""
    grid = times[0] + step * np.arange(grid_size(times, step))
    result = np.interp(grid, times, values)
    after = np.clip(np.searchsorted(times, grid), 1, len(times) - 1)
    result[np.diff(times)[after - 1] > _HOLE * step] = np.nan
    return result


def last_before(times: Floats, step: float) -> Integers:
    """For every place of an even grid, the last sample at or before it."""
    grid = times[0] + step * np.arange(grid_size(times, step))
    return np.asarray(np.searchsorted(times, grid, side="right") - 1, dtype=np.int64)


def grid_size(times: Floats, step: float) -> int:
    """How many even steps fit between the first time and the last."""
    return int((times[-1] - times[0]) / step) + 1
