"""From the columns of a table to series: at once, or as recordings to be cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.dataset import Series
from tacit.data.importers.marks import OTHER_CLASS, wanted_runs
from tacit.data.importers.naming import is_file_rule, name_from
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import Batch, Material, Recording, signal_of
from tacit.data.importers.resample import without_codes
from tacit.data.importers.tables.clock import (
    Clock,
    Pace,
    even_places,
    evened,
    find_pace,
    last_before,
    read_clock,
)
from tacit.data.importers.tables.columns import Column, Table, read_csv, read_parquet
from tacit.data.importers.tables.groups import REPEATED, grouped_rows, in_time
from tacit.data.importers.tables.roles import Roles, find_roles
from tacit.data.validate import as_cube, as_labels, label_text
from tacit.errors import TacitError

_LONGEST_HOLE = 1000  # steps that may be missing before a recording is taken as two


def load_table(path: Path, *, label: str | None) -> Series:
    """A table whose series need no cutting, as `load_dataset` takes it."""
    table = _read(path, label)
    roles = find_roles(table, ImportOptions(label=label))
    batch = (
        _whole_groups(table, roles, ImportOptions(label=label))
        if roles.long
        else _wide(table, roles, ImportOptions())
    )
    _refuse_missing(table, roles)
    cube = as_cube(batch.X, where=table.where)
    labels = None
    if batch.y is not None:
        labels = as_labels(batch.y, n_series=len(cube), where=table.where)
    return Series(
        X=cube,
        y=labels,
        subject=batch.subject,
        rate=batch.rate,
        channel_names=batch.channel_names if len(batch.channel_names) > 1 else (),
    )


def read_tables(files: Sequence[Path], root: Path, options: ImportOptions) -> Material:
    """The series or recordings of one or more tables."""
    notes: list[tuple[str, str]] = []
    inside, label_rule, subject_rule = _rules(options)

    def items() -> Iterator[Recording | Batch]:
        for path in files:
            table = _read(path, inside.label)
            roles = _without_codes(find_roles(table, inside), inside.missing_codes)
            if path == files[0]:
                notes.extend(_notes(table, roles, label_rule, subject_rule))
            label = label_rule and name_from(label_rule, path, root, option="--label")
            subject = subject_rule and name_from(subject_rule, path, root, option="--subject")
            yield from _items(table, roles, inside, (label, subject))

    made = items()
    first = next(made)

    def all_items() -> Iterator[Recording | Batch]:
        yield first
        yield from made

    kind = "Parquet" if files[0].suffix.lower() == ".parquet" else "CSV"
    return Material(format=kind, items=all_items(), n_items=len(files), notes=tuple(notes))


def _without_codes(roles: Roles, codes: tuple[float, ...]) -> Roles:
    """Missing values must be known before samples are brought to even steps."""
    if not codes:
        return roles

    def cleaned(column: Column) -> Column:
        if column.numbers is None:
            return column
        return replace(column, numbers=without_codes(column.numbers, codes))

    channels = ((name, tuple(map(cleaned, columns))) for name, columns in roles.channels)
    return replace(roles, channels=tuple(channels))


def _rules(options: ImportOptions) -> tuple[ImportOptions, str | None, str | None]:
    """What is said about columns, apart from what is said about the names of files."""
    label = options.label if is_file_rule(options.label) else None
    subject = options.subject if is_file_rule(options.subject) else None
    inside = replace(
        options,
        label="none" if label else options.label,
        subject="none" if subject else options.subject,
    )
    return inside, label, subject


def _read(path: Path, label: str | None) -> Table:
    if path.stat().st_size == 0:
        raise TacitError(f"{path.name} is empty; give at least one series.")
    if path.suffix.lower() == ".parquet":
        return read_parquet(path)
    return read_csv(path, label=None if label == "none" else label)


def _notes(
    table: Table, roles: Roles, label_rule: str | None, subject_rule: str | None
) -> Iterator[tuple[str, str]]:
    def named(column: Column | None) -> str:
        return "none" if column is None else f"column {column.title}"

    yield "table", "one time step a row" if roles.long else "one series a row"
    yield "labels", label_rule or named(roles.label)
    yield "subjects", subject_rule or named(roles.subject)
    if roles.series:
        yield "series by", ", ".join(column.title for column in roles.series)
    if roles.time is not None:
        yield "time", named(roles.time)
    if roles.left_out:
        yield "left out", ", ".join(column.title for column in roles.left_out)


def _items(
    table: Table,
    roles: Roles,
    options: ImportOptions,
    names: tuple[str | None, str | None],
) -> Iterator[Recording | Batch]:
    label, subject = names
    if not label and roles.label is None and not options.unlabelled:
        raise TacitError(
            f"{table.where} does not say which column is the label; pass --label with a column "
            "name, first or last, folder or file, or none."
        )
    if not roles.long:
        batch = _wide(table, roles, options)
        yield _with_names(batch, label, subject)
    elif options.window is None:
        yield _with_names(_whole_groups(table, roles, options), label, subject)
    else:
        yield from _recordings(table, roles, options, names)


def _with_names(batch: Batch, label: str | None, subject: str | None) -> Batch:
    if label:
        batch = replace(batch, y=np.full(len(batch.X), label))
    return replace(batch, subject=np.full(len(batch.X), subject)) if subject else batch


def _labels(column: Column) -> NDArray[np.str_]:
    """Labels in one spelling; "" for those that are missing."""
    texts, place = np.unique(column.as_texts(), return_inverse=True)
    spelled = np.array([label_text(text) for text in texts.tolist()], dtype=np.str_)
    return np.asarray(spelled[place.reshape(-1)])


def _wanted(batch: Batch, options: ImportOptions) -> Batch:
    """The series whose labels are asked for, renamed."""
    if batch.y is None or not options.classes:
        return batch
    unwanted = ~np.isin(batch.y, list(options.classes)) & (batch.y != "")
    batch.dropped[OTHER_CLASS] += int(np.count_nonzero(unwanted))
    y = np.array([options.classes.get(text, "") for text in batch.y.tolist()], dtype=np.str_)
    return replace(
        batch,
        X=batch.X[~unwanted],
        y=y[~unwanted],
        subject=None if batch.subject is None else batch.subject[~unwanted],
    )


def _wide(table: Table, roles: Roles, options: ImportOptions) -> Batch:
    lengths = {_length(columns) for _, columns in roles.channels}
    if len(lengths) > 1:
        raise TacitError(
            f"{table.where} has channels of {min(lengths)} to {max(lengths)} samples; give every "
            "channel the same."
        )
    X = np.empty((table.n_rows, len(roles.channels), lengths.pop()))
    for number, (_, columns) in enumerate(roles.channels):
        for step, column in enumerate(columns):
            if column.lists is not None:
                X[:, number] = column.lists
            else:
                X[:, number, step] = column.numbers
    batch = Batch(
        where=table.where,
        X=X,
        channel_names=tuple(name for name, _ in roles.channels),
        y=None if roles.label is None else _labels(roles.label),
        subject=None if roles.subject is None else _subjects(table, roles.subject),
        rate=options.source_rate,
    )
    return _wanted(batch, options)


def _length(columns: Sequence[Column]) -> int:
    return len(columns) if columns[0].lists is None else int(columns[0].lists.shape[1])


def _subjects(table: Table, column: Column) -> NDArray[np.str_]:
    texts = column.as_texts()
    if (texts == "").any():
        row = int(np.flatnonzero(texts == "")[0]) + 1
        raise TacitError(
            f"{table.where} row {row} has no subject in column {column.title}; add it, or leave "
            "subjects out with --subject none."
        )
    return texts


def _refuse_missing(table: Table, roles: Roles) -> None:
    """A data set has no gaps: say what stands there instead of a number, and where."""
    for number, (_, columns) in enumerate(roles.channels, start=1):
        for step, column in enumerate(columns, start=1):
            if column.first_missing is None:
                continue
            row, cell = column.first_missing
            shown = f"{cell}, a missing value" if cell else "(nothing), an empty cell"
            place = f"step {step}" if len(columns) > 1 else f"channel {number}"
            where = f"column {column.title}" if column.name else f"column {column.place + 1}"
            raise TacitError(
                f"{table.where} row {row}, {place} (value {step}, {where}) is {shown}; fill or "
                "drop missing values, or make a data set with tacit data import, which does."
            )


def _timed_groups(
    table: Table, roles: Roles, options: ImportOptions, dropped: Counter[str]
) -> tuple[list[Integers], Clock | None, Pace]:
    clock = None
    if roles.time is not None:
        clock = read_clock(roles.time, options, where=table.where)
    times = None if clock is None else clock.times
    keys = [column for column in (roles.subject, *roles.series) if column is not None]
    groups = [
        piece
        for rows in grouped_rows(keys, table.n_rows)
        for piece in in_time(rows, times, dropped, keyed=bool(roles.series), where=table.where)
    ]
    if roles.time is not None and dropped[REPEATED] > 0.1 * table.n_rows:
        raise TacitError(
            f"{table.where} has {dropped[REPEATED]} rows whose time in column {roles.time.title} "
            "is that of the row before; give a finer time, name the series with --series, or leave "
            "the column out with --ignore and pass --source-rate HZ."
        )
    if clock is None:
        return groups, None, Pace(1.0, options.source_rate)
    pace = find_pace([clock.times[rows] for rows in groups], clock, options, where=table.where)
    return groups, clock, pace


def _whole_groups(table: Table, roles: Roles, options: ImportOptions) -> Batch:
    """A long table whose series all have one length and one label: each is a series as it is."""
    dropped: Counter[str] = Counter()
    groups, _, pace = _timed_groups(table, roles, options, dropped)
    lengths = {len(rows) for rows in groups}
    advice = "cut them with tacit data import and --window, for example --window 128"
    if len(groups) == 1 or not (roles.series or roles.subject):
        raise TacitError(
            f"{table.where} has one time step a row and no column that tells one series from the "
            f"next; name it with --series, or {advice.replace('them', 'it')}."
        )
    if len(lengths) > 1:
        raise TacitError(
            f"{table.where} has series of {min(lengths)} to {max(lengths)} time steps; {advice}."
        )
    order = np.concatenate(groups)
    shape = (len(groups), lengths.pop())
    values = [_numbers(column)[order].reshape(shape) for _, (column,) in roles.channels]
    labels = None
    if roles.label is not None:
        each = _labels(roles.label)[order].reshape(shape)
        if (each != each[:, :1]).any():
            raise TacitError(f"{table.where} has series whose label changes within them; {advice}.")
        labels = each[:, 0]
    subject = None
    if roles.subject is not None:
        subject = _subjects(table, roles.subject)[order].reshape(shape)[:, 0]
    batch = Batch(
        where=table.where,
        X=np.stack(values, axis=1),
        channel_names=tuple(name for name, _ in roles.channels),
        y=labels,
        subject=subject,
        rate=pace.rate,
        dropped=dropped,
    )
    return _wanted(batch, options)


def _numbers(column: Column) -> Floats:
    assert column.numbers is not None
    return column.numbers


def _recordings(
    table: Table, roles: Roles, options: ImportOptions, names: tuple[str | None, str | None]
) -> Iterator[Recording]:
    dropped: Counter[str] = Counter()
    groups, clock, pace = _timed_groups(table, roles, options, dropped)
    if clock is not None and pace.rate is None and _needs_rate(options):
        assert roles.time is not None
        raise TacitError(
            f"{table.where} column {roles.time.title} does not say its unit; pass --time-unit s, "
            "ms, us, ns, min or h, or --source-rate HZ."
        )
    rate = pace.rate
    labels = None if roles.label is None else _labels(roles.label)
    subjects = None if roles.subject is None else _subjects(table, roles.subject)
    for rows in groups:
        for piece in _without_long_gaps(rows, clock, pace):
            source, place = _on_grid(piece, clock, pace)
            marked = np.full(len(source), names[0] or "") if labels is None else labels[source]
            stretches, excluded = wanted_runs(marked, options, rate=rate)
            yield Recording(
                where=table.where,
                signals=tuple(
                    signal_of(place(_numbers(column)), name=name, rate=rate)
                    for name, (column,) in roles.channels
                ),
                subject=names[1] if subjects is None else str(subjects[piece[0]]),
                stretches=stretches,
                excluded=excluded,
                dropped=dropped,
                step=None if clock is None else pace.step,
            )
            dropped = Counter()


def _needs_rate(options: ImportOptions) -> bool:
    spans = (options.window, options.stride, options.max_gap)
    return options.rate is not None or any(span is not None and span.in_seconds for span in spans)


def _without_long_gaps(rows: Integers, clock: Clock | None, pace: Pace) -> Iterator[Integers]:
    """The rows between gaps so long that a new recording begins after them."""
    if clock is None:
        yield rows
        return
    breaks = np.flatnonzero(np.diff(clock.times[rows]) > _LONGEST_HOLE * pace.step) + 1
    yield from np.split(rows, breaks)


def _on_grid(
    rows: Integers, clock: Clock | None, pace: Pace
) -> tuple[Integers, Callable[[Floats], Floats]]:
    """For even steps: the row that labels each, and how to place the samples of a column."""
    if clock is None or len(rows) < 2:
        return rows, lambda values: values[rows]
    times = clock.times[rows]
    if not pace.even:
        source = rows[last_before(times, pace.step)]
        return source, lambda values: evened(times, values[rows], pace.step)
    places = even_places(times, pace.step)
    # A hole belongs to the label before it; it is dropped or filled like any other.
    source = np.repeat(rows, np.diff(np.append(places, places[-1] + 1)))
    return source, lambda values: _placed(values[rows], places)


def _placed(values: Floats, places: Integers) -> Floats:
    """Samples on their places, NaN in the holes."""
    if len(values) == int(places[-1]) + 1:
        return values
    result = np.full(int(places[-1]) + 1, np.nan)
    result[places] = values
    return result
