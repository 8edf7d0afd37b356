"""`tacit data`: what can be loaded, and what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tacit.cli.common import (
    JsonFlag,
    LabelOption,
    check_new_file,
    emit,
    new_app,
    print_table,
    progress_bar,
)
from tacit.cli.manner.choices import ImportFormat
from tacit.cli.manner.completion import data_sets

if TYPE_CHECKING:
    from tacit.data.importers.pipeline import Imported

app = new_app("Data sets: those at hand, what is in one, and how to make one of recordings.")


@app.command("list")
def list_command(as_json: JsonFlag = False) -> None:
    """List the data sets that load without a network.

    Example: `TACIT_DATA=~/archives tacit data list`
    """
    from tacit.data.load import known_names, list_datasets

    total = len(known_names())
    rows = []
    with progress_bar("reading") as report:
        for row in list_datasets():
            rows.append(row)
            report(len(rows), total, row["name"])

    def render() -> None:
        columns = ("name", "n_train", "n_test", "channels", "length", "n_classes", "source")
        print_table([[row[key] for key in columns] for row in rows], columns=columns)

    emit({"datasets": rows}, as_json=as_json, render=render)


@app.command("show")
def show_command(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a data set, or path of a file or folder.", autocompletion=data_sets
        ),
    ],
    label: LabelOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Show shapes, classes and counts of one data set.

    Example: `tacit data show GunPoint --json`
    """
    from tacit.data import load_dataset

    emit(load_dataset(name, label=label).summary(), as_json=as_json)


@app.command("import")
def import_command(
    source: Annotated[
        Path, typer.Argument(help="A file, a folder of recordings, or an archive of them.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz to write; it must not exist.")],
    format: Annotated[
        ImportFormat | None,
        typer.Option(help="A kind of file, or an archive's layout; guessed if left out."),
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Length of a series: samples (256) or time (30s, 500ms).")
    ] = None,
    stride: Annotated[
        str | None, typer.Option(help="From one window's start to the next; else the window.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Resample to this many samples a second.")
    ] = None,
    source_rate: Annotated[
        float | None, typer.Option(help="Samples a second of a source that does not say it.")
    ] = None,
    channels: Annotated[
        str | None, typer.Option(help="Channels to take, with commas, in that order; else all.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Where labels stand: a column or array; for files annotations, folder, file or "
            "an expression with one group; none to import without."
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(
            help="Where persons stand: a column or array; for files patient, folder, file or an "
            "expression with one group; none to leave them out."
        ),
    ] = None,
    series: Annotated[
        str | None, typer.Option(help="Column that tells one series of a long table from the next.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column with the time of a sample.")] = None,
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns", "min", "h"] | None,
        typer.Option(help="Unit of the time column."),
    ] = None,
    form: Annotated[
        Literal["wide", "long"] | None,
        typer.Option(help="A table with one series a row (wide) or one time step a row (long)."),
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(help="Columns to leave out, with commas between them.")
    ] = None,
    array: Annotated[
        str | None, typer.Option(help="The array of a .mat, .h5 or .npz file with the samples.")
    ] = None,
    axes: Annotated[
        str | None, typer.Option(help="Axes of that array, for example series,channels,time.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(help="Labels to keep, with new names if wanted: 'stage W=wake,stage 1=N1'."),
    ] = None,
    cut: Annotated[
        Literal["labels", "grid"],
        typer.Option(help="Windows inside labelled stretches, or at even distances throughout."),
    ] = "labels",
    window_label: Annotated[
        Literal["majority", "pure"],
        typer.Option(help="On a grid: the label of more than half of a window, or of all of it."),
    ] = "majority",
    points: Annotated[
        Literal["onset", "centre", "until-next"] | None,
        typer.Option(
            help="Annotations without duration: a window from there on, around it, or a label "
            "that holds until the next."
        ),
    ] = None,
    missing: Annotated[
        Literal["drop", "interpolate"],
        typer.Option(help="Windows with missing values: drop them, or fill short gaps first."),
    ] = "drop",
    max_gap: Annotated[
        str | None, typer.Option(help="Longest gap to fill; else a tenth of the window.")
    ] = None,
    missing_code: Annotated[
        str | None,
        typer.Option(help="Numbers that stand for missing values, with commas, such as -9999."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a data set of recordings: EDF, WFDB, MATLAB, HDF5, CSV, Parquet or a raw archive.

    What is not said is guessed and shown; what is ambiguous is refused, with the option that
    settles it.

    Example: `tacit data import night.edf --out sleep.npz --window 30s --channels Fpz-Cz`
    """
    from tacit.data.importers.options import (
        ImportOptions,
        parse_classes,
        parse_codes,
        parse_names,
        parse_span,
    )
    from tacit.data.importers.pipeline import import_data

    options = ImportOptions(
        format=format,
        window=parse_span(window, name="--window"),
        stride=parse_span(stride, name="--stride"),
        rate=rate,
        source_rate=source_rate,
        channels=parse_names(channels),
        label=label,
        subject=subject,
        series=series,
        time=time,
        time_unit=time_unit,
        form=form,
        ignore=parse_names(ignore),
        array=array,
        axes=parse_names(axes),
        classes=parse_classes(classes),
        cut=cut,
        window_label=window_label,
        points=points,
        missing=missing,
        max_gap=parse_span(max_gap, name="--max-gap"),
        missing_codes=parse_codes(missing_code),
    )
    check_new_file(out)
    with progress_bar("importing") as report:
        made = import_data(source.expanduser(), out, options, progress=report)
    emit(made.to_dict(), as_json=as_json, render=lambda: _show_import(made))


def _show_import(made: Imported) -> None:
    rate = "rate unknown" if made.rate is None else f"{made.rate:g} Hz"
    subjects = len(made.subject_counts)
    rows = [
        ("read as", made.format),
        *made.notes,
        ("channels", f"{len(made.channel_names)}: {_some(made.channel_names)}"),
        ("series", f"{made.series} of {made.length} samples, {rate}"),
        ("classes", _some([f"{name} ({n})" for name, n in made.class_counts.items()]) or "none"),
        ("persons", f"{subjects}: {_some(list(made.subject_counts))}" if subjects else "none"),
        *((f"dropped: {reason}", count) for reason, count in made.dropped.items()),
        ("written to", made.out),
    ]
    print_table(rows)


def _some(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return f"{shown}, and {len(names) - most} more" if len(names) > most else shown
