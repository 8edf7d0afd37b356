"""What every command shares: options, output as JSON or tables, progress, and errors.

Commands stay thin: parse, call one function of the package, `emit` its result.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.manner.choices import LogFormat, Mechanism, Part, Quality, SiloClassifier, Split
from tacit.cli.manner.completion import data_sets
from tacit.cli.manner.readable import FEW, split
from tacit.errors import TacitError
from tacit.system.extras import needs

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.system.progress import Progress

JsonFlag = Annotated[
    bool, typer.Option("--json", help="Print exactly one JSON object on standard output.")
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed", min=0, help="Seed of splits, weights and batches; noise is never seeded."
    ),
]
_DATA = "Data set name (see 'tacit data list') or path of a file."
DataOption = Annotated[str, typer.Option("--data", help=_DATA, autocompletion=data_sets)]
OptionalDataOption = Annotated[
    str | None, typer.Option("--data", help=_DATA, autocompletion=data_sets)
]
PartOption = Annotated[
    Part | None,
    typer.Option("--part", help="Which part of a data set with two: test, unless said otherwise."),
]
PageOption = Annotated[
    Path | None, typer.Option("--page", help="Also write an HTML page with pictures to this file.")
]
LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", help="Log on standard error: text, or JSON lines for machines."),
]
MechanismOption = Annotated[
    Mechanism,
    typer.Option(
        "--mechanism",
        help="privunit: shuffled local reports; distributed: noise shares and a secure sum.",
    ),
]
SplitOption = Annotated[
    Split,
    typer.Option(
        "--split", help="iid; subject: test on persons without a client; dirichlet: skewed."
    ),
]
QualityOption = Annotated[
    Quality,
    typer.Option("--quality", help="Rank of shapelets: F, information gain, its basic protocol."),
]
ClassifierOption = Annotated[
    SiloClassifier, typer.Option("--classifier", help="What is trained on the features.")
]
LabelOption = Annotated[
    str | None,
    typer.Option("--label", help="Label column of a .csv or .parquet file: a name, first or last."),
]


def new_app(help_text: str) -> typer.Typer:
    """A group of commands with the behaviour that all groups share."""
    return typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode="markdown")


def console() -> Console:
    """Standard error, where everything but the result goes."""
    from rich.console import Console

    return Console(stderr=True)


def plain(value: Any) -> Any:
    """Turn results into what JSON can hold: arrays to lists, guarantees to their dictionaries."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Path):
        return str(value)
    return value


def emit(
    result: Mapping[str, Any], *, as_json: bool, render: Callable[[], None] | None = None
) -> None:
    """Print the result: one JSON object, or for people what `render` draws."""
    if as_json:
        sys.stdout.write(json.dumps(plain(result), allow_nan=False) + "\n")
    elif render is not None:
        render()
    else:
        print_readable(plain(result))


def print_readable(result: Mapping[str, Any], *, before: Sequence[tuple[str, str]] = ()) -> None:
    """Names and values, those of `before` first, then a table for every list of records."""
    rows, tables = split(result)
    rows = [*before, *rows]
    if rows:
        print_table(rows)
    for name, (columns, records) in tables.items():
        more = f", the first {FEW} (all with --json)" if len(records) > FEW else ""
        title = f"{name.replace('_', ' ')}: {len(records)}{more}"
        print_table(records[:FEW], columns=columns, title=title)


def print_table(
    rows: Sequence[Sequence[Any]], *, columns: Sequence[str] = (), title: str | None = None
) -> None:
    """A table on standard output; without `columns` it is a list of names and values."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    # Names of subjects and files may hold brackets, which Rich would read as its markup.
    table = Table(
        title=None if title is None else escape(title),
        show_header=bool(columns),
        title_justify="left",
    )
    for name in columns or [""] * len(rows[0] if rows else ()):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    Console().print(table)


def note(sentence: str) -> None:
    """One sentence on standard error, beside the result."""
    typer.echo(f"tacit: {sentence}", err=True)


def check_new_file(path: Path | None) -> None:
    """Refuse a place where no file can be written, before the work whose result goes there."""
    if path is None:
        return
    if path.is_dir():
        raise TacitError(f"{path} is a folder; give the name of a file in it.")
    _check_folder(path.parent)


def check_new_page(path: Path | None) -> None:
    """Refuse a page that cannot be drawn or written, before the work whose result it shows."""
    if path is not None:
        needs("charts", "altair", "vl_convert", what="a page with charts")
    check_new_file(path)


def check_new_folder(path: Path | None) -> None:
    """Refuse a place where no folder can be made, before the work whose result goes there."""
    if path is not None:
        _check_folder(path)


def _check_folder(folder: Path) -> None:
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise TacitError(f"{nearest} is a file, so {folder} cannot be a folder; choose another.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise TacitError(f"{nearest} may not be written to; choose another folder.")


@contextmanager
def progress_bar(description: str) -> Iterator[Progress]:
    """A live bar on standard error; yields the callable that long work reports to.

    With TACIT_PROGRESS in the environment the same goes to that file, a JSON object a line.
    """
    from tacit.system.progress import ProgressFile, silent

    watched = os.environ.get("TACIT_PROGRESS")
    also = ProgressFile(Path(watched)) if watched else silent
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[message]}"),
    )
    with RichProgress(*columns, console=console(), transient=True) as bar:
        task = bar.add_task(description, total=None, message="")

        def report(done: int, total: int, message: str) -> None:
            bar.update(task, completed=done, total=total, message=escape(message))
            also(done, total, message)

        yield report
