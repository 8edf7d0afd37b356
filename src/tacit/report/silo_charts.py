"""Charts of the silo family: features over a series, their values per class, growth of the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.report.charts import (
    Line,
    alt,
    axis_scale,
    colour_of,
    heading,
    layered,
    line_chart,
    line_layers,
    room,
    scatter_chart,
    with_guarantee,
)
from tacit.report.page import Table, Text, write_page

if TYPE_CHECKING:
    from tacit.guarantee import Guarantee

_GREY = "#9a9a9a"
_PANELS = 6  # of the most influential features; a table has all


def match_figure(explanation: Any) -> alt.VConcatChart:
    """The series as it is compared, once for each of the most influential features over it.

    Features may lie at the same place, so each has a panel of its own. A word that the series does
    not hold has none: `absence_sentence` says so.
    """
    title = f"Why this series is '{explanation.prediction}'"
    matches = [match for match in explanation.matches if match.position >= 0][:_PANELS]
    panels = [
        _match_panel(explanation, match, colour_of(n), last=n == len(matches) - 1)
        for n, match in enumerate(matches)
    ]
    if not panels:
        panels = [_panel("The series, which holds none of them", explanation.compared[0], [])]
    return alt.VConcatChart(
        vconcat=panels,
        title=heading(title),
        description=title,
        spacing=6,
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(color="independent")),
    )


def absence_sentence(matches: Sequence[Any]) -> str:
    """Which features decided by not being in the series; empty if there are none."""
    absent = [
        f"{match.kind} {match.shapelet + 1} ({match.influence:.0%} of the decision)"
        for match in matches
        if match.position < 0
    ]
    if not absent:
        return ""
    *most, last = absent
    named = f"{', '.join(most)} and {last}" if most else last
    return f"The series does not hold {named}: that it is absent speaks for or against a class."


def values_sentence(matches: Sequence[Any]) -> str:
    """What the values of these kinds of features mean."""
    kinds = {match.kind for match in matches}
    return " ".join(sentence for kind, sentence in _VALUES.items() if kind in kinds)


_VALUES = {
    "shapelet": "The value of a shapelet is its squared distance to the nearest piece of the "
    "series.",
    "interval": "An interval is a fixed range of steps or frequencies; its value is the statistic "
    "that is named, in standard deviations of the series.",
    "word": "A word is a rough shape: its four letters say how low (a) or high (d) each quarter of "
    "a window lies, and its value is the root of how often it occurs.",
}


def _match_panel(explanation: Any, match: Any, colour: str, *, last: bool) -> alt.LayerChart:
    values = np.asarray(match.values).tolist()
    feature = Line(
        "feature", list(enumerate(values, start=match.position)), colour=colour, width=3.0,
        dots=False,
    )  # fmt: skip
    channel = f", channel {match.channel}" if len(explanation.compared) > 1 else ""
    what = channel if match.kind == "shapelet" else f", {match.description}"
    name = f"{match.kind} {match.shapelet + 1}{what}: {match.influence:.0%} of the decision"
    return _panel(name, explanation.compared[match.channel], [feature], last=last)


def _panel(
    name: str, compared: NDArray[np.float64], features: Sequence[Line], *, last: bool = True
) -> alt.LayerChart:
    series = compared.tolist()
    whole = Line("series", list(enumerate(series)), colour=_GREY, width=1.5, dots=False)
    lines = [whole, *features]
    points = [point for line in lines for point in line.points]
    reach = (0.0, max(at for at, _ in points))
    axis = alt.Axis(tickCount=8, labels=last, ticks=last)
    across = alt.X("x:Q", title="time step" if last else None, scale=axis_scale(reach), axis=axis)
    up = alt.Y(
        "y:Q",
        title=None,
        scale=axis_scale(room([value for _, value in points])),
        axis=alt.Axis(tickCount=3),
    )
    panel = layered(name, line_layers(lines, across, up, legend=False), height=84)
    return panel.properties(title=heading(name, size=12))


def class_value_figure(
    values: NDArray[np.float64],
    codes: NDArray[np.intp],
    classes: Sequence[str],
    names: Sequence[str],
) -> alt.LayerChart:
    """P0's own series by two features (2, n), called `names`, coloured by class (Fig. 9b)."""
    clouds = {
        str(label): [(x, y, "") for x, y in values[:2, codes == c].T.tolist()]
        for c, label in enumerate(classes)
    }
    title = "P0's own series by the two leading features"
    return scatter_chart(title, clouds, x=names[0], y=names[1])


def write_explanation(
    path: Path,
    explanation: Any,
    *,
    own_values: NDArray[np.float64],
    own_codes: NDArray[np.intp],
    classes: Sequence[str],
    guarantee: Guarantee,
) -> Path:
    """One page for one decision; it shows the series given and P0's own data only.

    `own_values` (K, n) are the features of P0's own series: distances, or values of statistics and
    words.
    """
    matches = explanation.matches
    blocks: list[Any] = [
        with_guarantee(match_figure(explanation), guarantee),
        Table(
            ("feature", "what it is", "share of the decision", "lies at", "value", *classes),
            [
                (
                    match.shapelet + 1,
                    match.description,
                    f"{match.influence:.1%}",
                    match.place,
                    f"{match.distance:.4g}",
                    *(_mean(match.class_distances, label) for label in classes),
                )
                for match in matches
            ],
        ),
        Text(
            f"{values_sentence(matches)} The columns named by classes are means over P0's own "
            "series of that class."
        ),
    ]
    if absent := absence_sentence(matches):
        blocks.insert(1, Text(absent))
    if len(matches) > 1:
        values = own_values[[match.shapelet for match in matches[:2]]]
        names = [_axis_name(match) for match in matches[:2]]
        figure = class_value_figure(values, own_codes, classes, names)
        blocks.append(with_guarantee(figure, guarantee))
    title = f"FedST: why '{explanation.prediction}'"
    return write_page(path, title=title, guarantee=guarantee, blocks=blocks)


def _axis_name(match: Any) -> str:
    if match.kind == "shapelet":
        return f"squared distance to shapelet {match.shapelet + 1}"
    return f"{match.kind} {match.shapelet + 1}: {match.description}"


def write_classification(
    path: Path,
    *,
    labels: NDArray[Any],
    probabilities: NDArray[np.float64],
    classes: Sequence[str],
    guarantee: Guarantee,
) -> Path:
    """One page for many decisions: how many of each class, and every series with its odds."""
    counts = [(name, int((labels == name).sum())) for name in classes]
    rows = [
        (number, label, *(f"{p:.3f}" for p in row))
        for number, (label, row) in enumerate(zip(labels.tolist(), probabilities, strict=True))
    ]
    blocks: list[Any] = [
        Text("", heading="How many series of each class"),
        Table(("class", "series"), counts),
        Text("The columns named by classes are probabilities.", heading="Every series"),
        Table(("series", "label", *classes), rows),
    ]
    return write_page(path, title="FedST: new series", guarantee=guarantee, blocks=blocks)


def _mean(distances: Mapping[str, float], label: str) -> str:
    return f"{distances[label]:.4g}" if label in distances else "none of P0's own"


def growth_figure(
    points: Sequence[Mapping[str, Any]], *, along: str, guarantee: Guarantee
) -> alt.VConcatChart:
    """Seconds of the search against one size, a line per variant (Fig. 6)."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        lines.setdefault(str(point["variant"]), []).append((point[along], point["seconds"]))
    most = max((seconds for line in lines.values() for _, seconds in line), default=1.0)
    chart = line_chart(
        f"Search time against {along}",
        {variant: sorted(line) for variant, line in lines.items()},
        x=along,
        y="seconds",
        y_range=(0.0, 1.05 * most),
    )
    return with_guarantee(chart, guarantee)
