"""Data sets as the studio names them: files of the workspace, and the embedded ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tacit.data import Dataset, load_dataset
from tacit.data.load import EMBEDDED
from tacit.errors import TacitError
from tacit.report.charts import Line, alt, colour_of, line_chart
from tacit.studio.workspace import Workspace

SERIES_PER_CLASS = 6
MOST_CLASSES = 12
_MOST_STEPS = 600  # a screen shows no more


def data_names(workspace: Workspace) -> list[str]:
    """Imported files first, then what the package brings."""
    own = [name.removesuffix(".npz") for name in workspace.names("data", "*.npz")]
    return [*own, *(name for name in EMBEDDED if name not in own)]


def data_argument(workspace: Workspace, name: str) -> str:
    """What `--data` takes for this name."""
    file = workspace.place("data", f"{name}.npz")
    if file.is_file():
        return str(file)
    if name in EMBEDDED:
        return name
    raise TacitError(f"there is no data set {name!r} in the workspace; import one on 'Data'.")


def load_named(workspace: Workspace, name: str) -> Dataset:
    """The data set of this name."""
    return load_dataset(data_argument(workspace, name))


def name_of_argument(argument: str) -> str:
    """The studio's name of what `--data` was given."""
    return Path(argument).stem if argument.endswith(".npz") else argument


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
                    [(at, float(row[at])) for at in range(0, data.length, step)],
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
