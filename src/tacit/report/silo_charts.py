"""Charts of the silo family: shapelets over a series, distances per class, growth of the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.report.charts import Line, alt, colour_of, line_chart, scatter_chart, with_guarantee
from tacit.report.page import Table, Text, write_page

if TYPE_CHECKING:
    from tacit.guarantee import Guarantee


def match_figure(explanation: Any, *, compared: NDArray[np.float64]) -> alt.LayerChart:
    """The series as it is compared, with the most influential shapelets where they match best."""
    series = list(enumerate(compared.tolist()))
    lines = [Line("series", series, colour="#9a9a9a", width=1.5, dots=False)]
    for i, match in enumerate(explanation.matches):
        name = f"shapelet {match.shapelet + 1}: {match.influence:.0%} of the decision"
        points = list(enumerate(np.asarray(match.values).tolist(), start=match.position))
        lines.append(Line(name, points, colour=colour_of(i), width=3.0, dots=False))
    title = f"Why this series is '{explanation.prediction}'"
    return line_chart(title, lines, x="time step", y="value, as compared")


def class_distance_figure(
    distances: NDArray[np.float64], codes: NDArray[np.intp], classes: Sequence[str]
) -> alt.LayerChart:
    """P0's own series by their distances to two shapelets (2, n), coloured by class (Fig. 9b)."""
    clouds = {
        str(label): [(x, y, "") for x, y in distances[:2, codes == c].T.tolist()]
        for c, label in enumerate(classes)
    }
    return scatter_chart(
        "P0's own series by distance to the two leading shapelets",
        clouds,
        x="distance to the first",
        y="distance to the second",
    )


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


def _normalised(series: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = series.std()
    centred: NDArray[np.float64] = series - series.mean()
    return centred / deviation if deviation > 0 else centred


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
