"""Figures of the silo family: shapelets over a series, distances per class, growth of the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.report.figure import new_figure, with_guarantee
from tacit.report.page import Table, Text, write_page

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from tacit.guarantee import Guarantee

_COLOURS = ("#b6633b", "#3b6fb6", "#3f8f5b", "#8a3bb6", "#b63b6f", "#6f7a1f", "#1f7a7a")


def match_figure(explanation: Any, *, compared: NDArray[np.float64]) -> go.Figure:
    """The series as it is compared, with the most influential shapelets where they match best."""
    figure = new_figure(
        f"Why this series is '{explanation.prediction}'", x="time step", y="value, as compared"
    )
    figure.add_scatter(
        y=compared, mode="lines", name="series", line={"color": "#9a9a9a", "width": 1.5}
    )
    for i, match in enumerate(explanation.matches):
        steps = np.arange(match.position, match.position + len(match.values))
        name = f"shapelet {match.shapelet + 1}: {match.influence:.0%} of the decision"
        figure.add_scatter(x=steps, y=match.values, mode="lines", name=name, line=_line(i))
    return figure


def class_distance_figure(
    distances: NDArray[np.float64], codes: NDArray[np.intp], classes: Sequence[str]
) -> go.Figure:
    """P0's own series by their distances to two shapelets (2, n), coloured by class (Fig. 9b)."""
    figure = new_figure(
        "P0's own series by distance to the two leading shapelets",
        x="distance to the first",
        y="distance to the second",
    )
    for c, label in enumerate(classes):
        rows = codes == c
        figure.add_scatter(
            x=distances[0, rows],
            y=distances[1, rows],
            mode="markers",
            name=str(label),
            marker={"color": _COLOURS[c % len(_COLOURS)]},
        )
    return figure


def _line(i: int) -> dict[str, Any]:
    return {"color": _COLOURS[i % len(_COLOURS)], "width": 3}


def write_explanation(
    path: Path,
    explanation: Any,
    *,
    own_features: NDArray[np.int64],
    own_codes: NDArray[np.intp],
    classes: Sequence[str],
    units: NDArray[np.float64],
    guarantee: Guarantee,
) -> Path:
    """One page for one decision; it shows the series given and P0's own data only."""
    compared = _normalised(explanation.series)
    blocks: list[Any] = [
        with_guarantee(match_figure(explanation, compared=compared), guarantee),
        Table(
            ("shapelet", "share of the decision", "matches at", "distance", *classes),
            [
                (
                    f"{m.shapelet + 1} (P0's series {m.series}, step {m.start})",
                    f"{m.influence:.1%}",
                    m.position,
                    f"{m.distance:.4g}",
                    *(_mean(m.class_distances, label) for label in classes),
                )
                for m in explanation.matches
            ],
        ),
        Text("The columns named by classes are mean distances of P0's own series of that class."),
    ]
    if len(explanation.matches) > 1:
        pair = [m.shapelet for m in explanation.matches[:2]]
        distances = own_features[pair] * units[pair][:, None]
        figure = class_distance_figure(distances, own_codes, classes)
        blocks.append(with_guarantee(figure, guarantee))
    title = f"FedST: why '{explanation.prediction}'"
    return write_page(path, title=title, guarantee=guarantee, blocks=blocks)


def _mean(distances: Mapping[str, float], label: str) -> str:
    return f"{distances[label]:.4g}" if label in distances else "none of P0's own"


def _normalised(series: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = series.std()
    centred: NDArray[np.float64] = series - series.mean()
    return centred / deviation if deviation > 0 else centred


def growth_figure(
    points: Sequence[Mapping[str, Any]], *, along: str, guarantee: Guarantee
) -> go.Figure:
    """Seconds of the search against one size, a line per variant (Fig. 6)."""
    figure = new_figure(f"Search time against {along}", x=along, y="seconds")
    for i, variant in enumerate(dict.fromkeys(str(p["variant"]) for p in points)):
        mine = sorted((p[along], p["seconds"]) for p in points if p["variant"] == variant)
        figure.add_scatter(
            x=[x for x, _ in mine], y=[y for _, y in mine], name=variant, line=_line(i)
        )
    figure.update_yaxes(rangemode="tozero")
    return with_guarantee(figure, guarantee)
