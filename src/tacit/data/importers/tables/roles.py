"""What each column of a table is: a label, a person, a time, an identifier, or samples."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.data.importers.options import ImportOptions
from tacit.data.importers.tables.clock import is_moments
from tacit.data.importers.tables.columns import LABEL_NAMES, Column, Table
from tacit.data.importers.tables.doubts import (
    names_people_or_things,
    refuse_mixed_streams,
    refuse_numbered_things,
    refuse_repeated,
    refuse_unnamed_key,
    repeated_key,
    same_partition,
)
from tacit.data.importers.tables.form import (
    FEW_ROWS,
    find_channels,
    is_long,
    refuse_strangers,
    some,
)
from tacit.errors import TacitError

_PERSONS = re.compile(
    r"(subject|subj|user|participant|person|patient|volunteer|pid)(_?(id|no|nr|code|name|number))?"
)
_DEVICES = re.compile(
    r"(device|machine|sensor|asset|unit|bearing|engine|vehicle|node|meter|house|household|customer"
    r"|site)(_?(id|no|nr|code|name|serial))?"
)
_SERIES = re.compile(
    r"(series|window|segment|recording|record|session|trial|epoch|case|sequence|seq|run|clip|file"
    r"|example)(_?(id|no|nr|number|name|index))?|sample_id|sid|wid|id"
)
_TIMES = re.compile(
    r"t|ts|time.*|.*timestamp.*|datetime|date|.*_time|seconds?|secs?|minutes?|hours?|ms|millis(econds)?"
    r"|elapsed.*"
    r"|step|timestep|frame|tick|sample(_?(no|index|number))?"
)
_SURE_TIMES = re.compile(r"time.*|.*timestamp.*|datetime|date|.*_time|timestep")
_IDENTIFIERS = re.compile(
    r"(.*_)?(id|ids|uid|uuid|guid|key|index|idx|row|rowid|row_?(no|nr|number)|no|nr|serial|mac|imei"
    r"|hash|guid)"
)
_FEWEST_ROWS = 5  # fewer may count by chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """A table as understood; `channels` are (name, columns): many if wide, one each if long."""

    long: bool
    channels: tuple[tuple[str, tuple[Column, ...]], ...]
    label: Column | None = None
    subject: Column | None = None
    series: tuple[Column, ...] = ()
    time: Column | None = None
    left_out: tuple[Column, ...] = field(default=())


def find_roles(table: Table, options: ImportOptions) -> Roles:
    """Decide by what was said, then by names, then by content; refuse what stays ambiguous."""
    free = _without_ignored(table, options)
    label = _label(table, free, options)
    _take(free, label)
    time = _named(table, free, options.time, "--time")
    _take(free, time)
    said_series = _named_all(table, free, options.series)
    for column in said_series:
        _take(free, column)
    subject = _subject(table, free, options)
    _take(free, subject)
    if time is None:
        time = _time(table, free, said_series)
        _take(free, time)
    series = said_series or _series_by_name(free)
    for column in series:
        _take(free, column)
    left_out = [column for column in free if _is_beside(column, subject, options)]
    for column in left_out:
        _take(free, column)
    if label is None and options.label in (None, "none"):
        label = _lone_text(table, free, subject)
        _take(free, label)
    values = _values(table, free, options)
    refuse_unnamed_key(table, values)
    long = is_long(table, values, series, time, options)
    if long:
        keys = [column for column in (subject, *series) if column is not None]
        refuse_mixed_streams(table, left_out, keys, label)
        refuse_numbered_things(table, values, keys, options.channels)
    else:
        refuse_strangers(table, values)
        if subject is None and options.subject is None and not said_series:
            subject = _shared_id(table, series, left_out, label)
            series = tuple(column for column in series if column is not subject)
    return Roles(
        long=long,
        channels=find_channels(table, values, long, options),
        label=None if options.unlabelled else label,
        subject=None if options.subject == "none" else subject,
        series=series,
        time=time,
        left_out=tuple(left_out),
    )


def _take(free: list[Column], column: Column | None) -> None:
    if column is not None and column in free:
        free.remove(column)


def _plain(name: str) -> str:
    """userId, "User ID" and user_id are one name; a unit in brackets is no part of it."""
    name = re.sub(r"\s*[\[(].*?[\])]\s*$", "", name)
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[\s\-.]+", "_", name.strip()).lower()


def _without_ignored(table: Table, options: ImportOptions) -> list[Column]:
    for name in options.ignore:
        if not any(_is_called(column, name) for column in table.columns):
            raise _unknown(table, name, "--ignore")
    return [
        column
        for column in table.columns
        if not any(_is_called(column, name) for name in options.ignore)
    ]


def _is_called(column: Column, name: str) -> bool:
    """By its name, or by its number, from 1, where it has none."""
    return name == (column.name or str(column.place + 1))


def _unknown(table: Table, name: str, option: str) -> TacitError:
    names = [column.name for column in table.columns if column.name]
    if not names:
        return TacitError(
            f"{table.where} has no header, so there is no column {name!r} for {option}; name "
            "first or last with --label, give columns by number, from 1, or write a header."
        )
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"its columns are {some(names)}."
    advice = "; name one of its columns, first or last" if option == "--label" else ""
    return TacitError(f"{table.where} has no column {name!r} for {option}{advice}; {hint}")


def _named(table: Table, free: list[Column], name: str | None, option: str) -> Column | None:
    if name is None:
        return None
    for column in free:
        if _is_called(column, name):
            return column
    raise _unknown(table, name, option)


def _named_all(table: Table, free: list[Column], names: str | None) -> tuple[Column, ...]:
    chosen = [
        _named(table, free, name.strip(), "--series")
        for name in (names or "").split(",")
        if name.strip()
    ]
    return tuple(column for column in chosen if column is not None)


def _label(table: Table, free: list[Column], options: ImportOptions) -> Column | None:
    said = options.label
    if said in ("first", "last") and all(column.name != said for column in free):
        return free[0] if said == "first" else free[-1]
    if said is not None and said != "none":
        return _named(table, free, said, "--label")
    names = {column.name.lower() for column in free}
    for column in free:
        if column.name.lower() not in LABEL_NAMES:
            continue
        if column.name.lower() == "y" and "x" in names and column.texts is None:
            if "z" in names:
                continue  # three axes
            raise TacitError(
                f"{table.where} has columns x and y, and y may be the label or a channel; say so "
                "with --label y, or name the label with --label."
            )
        return column
    return None


def _subject(table: Table, free: list[Column], options: ImportOptions) -> Column | None:
    if options.subject not in (None, "none"):
        return _named(table, free, options.subject, "--subject")
    persons = [
        column
        for column in free
        if _PERSONS.fullmatch(_plain(column.name)) and column.lists is None
    ]
    found = persons or [
        column
        for column in free
        if _DEVICES.fullmatch(_plain(column.name)) and _may_be_device(column)
    ]
    if len(found) > 1 and options.subject != "none":
        names = " and ".join(repr(column.name) for column in found)
        raise TacitError(
            f"{table.where} has the columns {names}, and each may name the subject; choose with "
            "--subject, and leave the others out with --ignore."
        )
    return found[0] if found else None


def _may_be_device(column: Column) -> bool:
    """A column "sensor" with fractions, or with whole series, holds samples and not names."""
    if column.lists is not None:
        return False
    return column.numbers is None or bool(
        np.all(np.isfinite(column.numbers) & (column.numbers == np.round(column.numbers)))
    )


def _time(table: Table, free: list[Column], series: Sequence[Column]) -> Column | None:
    found = []
    for column in free:
        named = bool(column.name) and bool(_TIMES.fullmatch(_plain(column.name)))
        dated = column.is_time or (column.texts is not None and is_moments(column.texts))
        if dated or (named and _passes_as_time(column)):
            found.append(column)
        elif named and _SURE_TIMES.fullmatch(_plain(column.name)):
            raise TacitError(
                f"{table.where} column {column.title} is named like a time and does not grow like "
                "one; say what it is with --time, or leave it out with --ignore."
            )
    if len(found) > 1:
        names = " and ".join(repr(column.name) for column in found)
        raise TacitError(
            f"{table.where} has the columns {names}, and each may be the time; choose with --time, "
            "and leave the others out with --ignore."
        )
    return found[0] if found else None


def _passes_as_time(column: Column) -> bool:
    """It grows, or grows again and again over at least four rows on average."""
    if column.numbers is None:
        return False
    numbers = column.numbers
    if len(numbers) < 3 or np.isnan(numbers).any():
        return False
    steps = np.diff(numbers)
    if np.count_nonzero(steps == 0) > 0.1 * len(steps):
        return False
    falls = int(np.count_nonzero(steps < 0))
    return falls + 1 <= len(numbers) / 4 or falls == 0


def _series_by_name(free: Iterable[Column]) -> tuple[Column, ...]:
    return tuple(
        column
        for column in free
        if column.name and _SERIES.fullmatch(_plain(column.name)) and _may_be_device(column)
    )


def _is_beside(column: Column, subject: Column | None, options: ImportOptions) -> bool:
    """Names of devices beside persons, and other identifiers: no samples, and no label."""
    name = _plain(column.name)
    if not name or not _may_be_device(column) or column.name in options.channels:
        return False
    if subject is not None and _DEVICES.fullmatch(name) and _comes_again(column):
        return True
    return bool(_IDENTIFIERS.fullmatch(name))


def _comes_again(column: Column) -> bool:
    """Texts, or numbers of which each stands in many rows."""
    numbers = column.numbers
    return numbers is None or len(np.unique(numbers)) <= len(numbers) / FEW_ROWS


def _shared_id(
    table: Table, series: Sequence[Column], left_out: Sequence[Column], label: Column | None
) -> Column | None:
    """The person behind several rows of a wide table, where a column called id says so."""
    shared = repeated_key((*series, *left_out), label)
    if shared is not None and _plain(shared.name) not in ("id", "sid"):
        refuse_repeated(table, shared)
    return shared


def _lone_text(table: Table, free: list[Column], subject: Column | None) -> Column | None:
    texts = [column for column in free if column.texts is not None and not _is_broken(column)]
    if len(texts) > 1:
        names = " and ".join(column.title for column in texts)
        raise TacitError(
            f"{table.where} has texts in the columns {names}, and nothing says which is the label; "
            "choose with --label, and say what the others are with --subject, --series or --ignore."
        )
    if texts and (
        names_people_or_things(_plain(texts[0].name))
        or (subject is not None and _names_subjects(texts[0], subject))
    ):
        raise TacitError(
            f"{table.where} column {texts[0].title} may say who or what was recorded rather than "
            "the class; say what it is with --label, --subject, --series or --ignore."
        )
    if texts and len(set(texts[0].as_texts().tolist())) > max(FEW_ROWS, table.n_rows / 2):
        raise TacitError(
            f"{table.where} column {texts[0].title} has another text in nearly every row, which "
            "looks like an identifier and not like a label; say what it is with --label, "
            "--subject, --series or --ignore."
        )
    return texts[0] if texts else None


def _names_subjects(column: Column, subject: Column) -> bool:
    """Another text for every person, of whom there are three or more."""
    return len(set(subject.as_texts().tolist())) > 2 and same_partition(column, subject)


def _is_broken(column: Column) -> bool:
    """Mostly numbers, with a few cells of text: samples with typing errors."""
    assert column.texts is not None
    some = column.texts[:1000]
    return sum(_reads_as_number(text) for text in some.tolist()) * 2 >= len(some)


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _values(table: Table, free: list[Column], options: ImportOptions) -> list[Column]:
    """What is left must be samples; whatever looks like something else is refused."""
    for column in free:
        if column.texts is not None and not column.first_text:
            continue
        if column.first_text:
            row, cell = column.first_text
            raise TacitError(
                f"{table.where} row {row}, column {column.title} is {cell!r}, not a number; "
                "correct it, or say what the column is with --label, --subject, --series, --time "
                "or --ignore."
            )
        looks = _looks_like(column)
        if looks and column.name not in options.channels:
            raise TacitError(
                f"{table.where} column {column.title} looks like {looks}, not like samples; say "
                "what it is with --time, --series or --subject, or leave it out with --ignore."
                if column.name
                else f"{table.where} column {column.title} looks like {looks}, not like samples; "
                "write the table without it, or with a header that names it."
            )
    if not free:
        raise TacitError(
            f"{table.where} has a label and series of length 0; add columns with their values."
        )
    return free


def _looks_like(column: Column) -> str:
    numbers = column.numbers
    if numbers is None or len(numbers) < _FEWEST_ROWS or np.isnan(numbers).any():
        return ""
    steps = np.diff(numbers)
    if np.all(steps == 1) and numbers[0] == round(numbers[0]):
        return "row numbers"
    if np.all(steps >= 0) and steps.any():
        for power in (1.0, 1e3, 1e6, 1e9):  # seconds to nanoseconds since 1970: 2000 to 2100
            if 9.4e8 * power <= numbers[0] and numbers[-1] <= 4.1e9 * power:
                return "timestamps"
    return ""
