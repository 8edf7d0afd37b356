"""One series beside what leaves it: the release, a thousand hypothetical ones, and the places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.local.device import Device
from tacit.local.model import LocalModel, load_model
from tacit.local.release import Release
from tacit.local.releases.place import PlaceHead
from tacit.report.charts import ChartType, Line, bar_chart, line_chart
from tacit.report.local_charts import places_figure
from tacit.report.look import FAMILY_COLOURS
from tacit.studio.collecting import trained_on
from tacit.studio.datasets import load_named
from tacit.studio.workspace import Workspace

HYPOTHETICAL = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a person sees of one test series."""

    true_label: str
    index: int
    n_series: int
    sent: str  # what one release holds, as it leaves
    read: str  # what the server makes of it
    charts: list[ChartType]
    model: LocalModel
    data_name: str
    means: str  # the class that this symbol stands for


def look_at(workspace: Workspace, model_name: str, data_name: str, index: int) -> Look:
    """Release one test series of `data_name`, or of data that fit, many times over.

    These releases stay on this machine: they show what could leave, and nothing is debited.
    """
    model = load_model(workspace.existing("models", model_name) / "model.tacit")
    found = data_name or trained_on(workspace, model_name, model)
    if found is None:
        raise TacitError(
            f"no data set here has series that {model_name} reads ({model.n_channels} channels of "
            f"{model.n_timepoints} samples); import one on 'Data'."
        )
    data_name = found
    data = load_named(workspace, data_name)
    if not 0 <= index < len(data.X_test):
        raise TacitError(
            f"series {index} is not there; {data_name} has 0 to {len(data.X_test) - 1}."
        )
    series = model.check_series(data.X_test[index : index + 1])
    once = Device(model).release(series)
    many = model.randomize(np.repeat(model.head.summarise(series), HYPOTHETICAL, axis=0))
    return Look(
        true_label=str(data.y_test[index]),
        index=index,
        n_series=len(data.X_test),
        sent=str(once.values[0].tolist()),
        read=model.labels(once)[0],
        charts=[_series(model, once, series[0]), _histogram(model, model.labels(many))],
        model=model,
        data_name=data_name,
        means=_meaning(model, once),
    )


def _series(model: LocalModel, once: Release, series: Floats) -> ChartType:
    """The series; shaded, for a place release, where the server thinks the evidence lies."""
    if isinstance(model.head, PlaceHead):
        where = model.places(once)
        return places_figure(
            series,
            edges=where.edges.tolist(),
            probability=where.posterior[0],
            title="The series stays; shaded, where the server thinks its evidence lies",
        )
    colour = FAMILY_COLOURS["local"] if len(series) == 1 else None
    lines = [
        Line(f"channel {n}", list(enumerate(row.tolist())), colour=colour, dots=False, width=1.5)
        for n, row in enumerate(series[:6])
    ]
    title = "The series: it stays on the device"
    return line_chart(title, lines, x="step", y="value", legend=len(lines) > 1)


def _meaning(model: LocalModel, once: Release) -> str:
    """What a released symbol stands for, where it stands for one class."""
    if model.head.kind != "label":
        return ""
    return f", which stands for class {model.classes[int(once.values[0])]}"


def _histogram(model: LocalModel, labels: list[str]) -> ChartType:
    shares = {name: labels.count(name) / len(labels) for name in model.classes}
    return bar_chart(
        f"If it released {HYPOTHETICAL} times: what the server would read",
        shares,
        x="share of hypothetical releases",
        colours=[FAMILY_COLOURS["local"]] * len(shares),
        x_range=(0.0, 1.0),
        percent=True,
    )
