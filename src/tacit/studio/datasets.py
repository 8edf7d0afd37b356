"""Data sets as the studio names them: files of the workspace, embedded ones, and TACIT_DATA's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.arrays import Cube, Floats
from tacit.data import Dataset, load_dataset
from tacit.data.formats import npz_names
from tacit.data.load import EMBEDDED, known_names, load_series
from tacit.errors import TacitError
from tacit.report.charts import Line, alt, colour_of, line_chart
from tacit.studio.workspace import Workspace

SERIES_PER_CLASS = 6
MOST_CLASSES = 12
_MOST_STEPS = 600  # a screen shows no more


def data_names(workspace: Workspace) -> list[str]:
    """Imported files first, what the package brings, then what lies in TACIT_DATA."""
    near = near_names(workspace)
    return [*near, *sorted(set(known_names()) - set(near), key=str.lower)]


def near_names(workspace: Workspace) -> list[str]:
    """Imported files first, then what the package brings: few enough to be looked through."""
    own = [name.removesuffix(".npz") for name in workspace.names("data", "*.npz")]
    return [*own, *(name for name in EMBEDDED if name not in own)]


def trainable_names(workspace: Workspace) -> list[str]:
    """The data sets that can be learned from: an import without labels is left out."""
    own = [name.removesuffix(".npz") for name in workspace.names("data", "*.npz")]
    plain = {name for name in own if _is_plain(workspace.place("data", f"{name}.npz"))}
    return [name for name in data_names(workspace) if name not in plain]


def data_argument(workspace: Workspace, name: str) -> str:
    """What `--data` takes for this name."""
    file = workspace.place("data", f"{name}.npz")
    if file.is_file():
        return str(file)
    if name in EMBEDDED or name in known_names():
        return name
    raise TacitError(f"there is no data set {name!r} in the workspace; import one on 'Data'.")


def load_named(workspace: Workspace, name: str) -> Dataset:
    """The data set of this name."""
    return load_dataset(data_argument(workspace, name))


def unlabelled_series(workspace: Workspace, name: str) -> Cube | None:
    """The series of a file that was imported without labels; None if it has some."""
    file = workspace.place("data", f"{name}.npz")
    if not file.is_file():
        return None
    return load_series(file) if _is_plain(file) else None


def _is_plain(file: Path) -> bool:
    """Whether a file holds series without labels; of one that is broken its own page says so."""
    try:
        names = npz_names(file)
    except TacitError:
        return False
    return "X" in names and "y" not in names


def series_chart(series: Cube, *, channel: int = 0) -> alt.LayerChart:
    """The first series of data without labels."""
    if not 0 <= channel < series.shape[1]:
        raise TacitError(f"there are channels 0 to {series.shape[1] - 1}, got {channel}.")
    shown, step = series[:SERIES_PER_CLASS, channel], max(1, series.shape[2] // _MOST_STEPS)
    lines = [
        Line(f"series {n + 1}", _points(row, step), colour=colour_of(0), width=1.3, dots=False)
        for n, row in enumerate(shown)
    ]
    return line_chart("The first series", lines, x="step", y="value", legend=False)


def _points(row: Floats, step: int) -> list[tuple[float, float]]:
    return [(float(at), float(row[at])) for at in range(0, len(row), step)]


def class_charts(data: Dataset, *, channel: int = 0) -> list[alt.LayerChart]:
    """A few training series per class, all classes on one scale."""
    if not 0 <= channel < data.channels:
        raise TacitError(f"{data.name} has channels 0 to {data.channels - 1}, got {channel}.")
    step = max(1, data.length // _MOST_STEPS)
    shown = {
        label: data.X_train[np.flatnonzero(data.y_train == label)[:SERIES_PER_CLASS], channel]
        for label in data.classes[:MOST_CLASSES]
    }
    low = min(float(rows.min()) for rows in shown.values())
    high = max(float(rows.max()) for rows in shown.values())
    return [
        line_chart(
            f"Class {label}: {int(np.count_nonzero(data.y_train == label))} training series",
            [
                Line(
                    f"series {n + 1}",
                    _points(row, step),
                    colour=colour_of(place),
                    width=1.3,
                    dots=False,
                )
                for n, row in enumerate(rows)
            ],
            x="step",
            y="value",
            y_range=(low, high),
            legend=False,
        )
        for place, (label, rows) in enumerate(shown.items())
    ]
