"""Charts that compare methods, one row for each: boxes, average ranks, and dots side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tacit.report.charts import (
    INK,
    WIDTH,
    Range,
    Row,
    alt,
    axis_scale,
    colour_legend,
    dot_layer,
    label_width,
    layered,
    on,
    room,
    row_step,
    rows_axis,
    shape_legend,
    value_axis,
)
from tacit.report.look import series_looks

_RED, _BLUE, _GREY = "#b2182b", "#2166ac", "#bbbbbb"


def box_chart(
    title: str,
    groups: Mapping[str, Sequence[tuple[float, str]]],
    *,
    x: str,
    log: bool = False,
    dots: bool = True,
) -> alt.LayerChart:
    """Median, quartiles, range and, as `dots`, every value together with what it belongs to."""
    values = [value for group in groups.values() for value, _ in group]
    reach = (min(values) * 0.8, max(values) * 1.25) if log else room(values)
    left = label_width(groups)
    across, names = _across(x, reach, log=log), rows_axis(list(groups), left)
    values_of = [
        {"name": name, "value": float(value), "what": f"{what}: {value:.3f}"}
        for name, group in groups.items()
        for value, what in group
    ]
    scale = alt.Scale(
        domain=list(groups), range=[colour for colour, _ in series_looks(list(groups)).values()]
    )
    colour = alt.Color("name:N", scale=scale, legend=None)
    stroke = alt.Stroke("name:N", scale=scale, legend=None)
    boxes = on([_quartiles(name, group) for name, group in groups.items()]).encode(y=names)
    layers = [
        boxes.mark_rule().encode(x=across("least"), x2="most:Q", color=colour),
        boxes.mark_bar(height=15, fillOpacity=0.15).encode(
            x=across("first"), x2="third:Q", color=colour, stroke=stroke
        ),
        boxes.mark_tick(height=15, thickness=2.5).encode(x=across("median"), color=colour),
    ]
    if dots:
        layer = dot_layer(values_of, size=15)
        layers.append(layer.encode(x=across("value"), y=names, color=colour))
    return layered(title, layers, height=row_step(groups, 26), width=WIDTH - left - 24)


def rank_chart(
    title: str,
    ranks: Mapping[str, float],
    *,
    difference: float,
    groups: Sequence[Sequence[str]] = (),
) -> alt.LayerChart:
    """Average ranks, best first, with the critical difference and a bar beside equal methods."""
    order = sorted(ranks, key=lambda name: ranks[name])
    left = label_width(order)
    width = WIDTH - left - 96
    worst = max(2.0, math.ceil(max(ranks.values())))
    across = _across("average rank (bars on the right join equals)", (1.0, worst))
    names = rows_axis(order, left)
    rows = [
        {"name": name, "rank": float(ranks[name]), "what": f"{name}: {ranks[name]:.2f}"}
        for name in order
    ]
    reach = {"start": 1.0, "end": min(1.0 + float(difference), worst)}
    ruler = on([{**reach, "what": f"critical difference {difference:.2f}"}])
    layers = [
        dot_layer(rows, size=64).encode(x=across("rank"), y=names, color=alt.value(_BLUE)),
        on(rows)
        .mark_text(align="left", dx=8, fontSize=10.5)
        .encode(x=across("rank"), y=names, text=alt.Text("rank:Q", format=".2f")),
        ruler.mark_rule(y=-6, strokeWidth=2.5, color=INK).encode(x=across("start"), x2="end:Q"),
        ruler.mark_text(y=-10, align="left", baseline="bottom").encode(
            x=across("start"), text="what:N"
        ),
    ]
    for place, group in enumerate(groups):
        places = sorted(order.index(name) for name in group)
        ends = {"name": order[places[0]], "last": order[places[-1]]}
        bar = on([ends]).mark_rule(
            x=width + 70 - 5 * (place % 6), color=_RED, strokeWidth=3, yOffset=-6, y2Offset=6
        )
        layers.append(bar.encode(y=names, y2="last:N"))
    return layered(title, layers, height=row_step(order, 22), width=width)


def dot_chart(title: str, rows: Mapping[str, Mapping[str, float]], *, x: str) -> alt.LayerChart:
    """One row per case with a dot per series, for example the paper's number and ours."""
    series = list(dict.fromkeys(name for row in rows.values() for name in row))
    left = label_width(rows)
    reach = room([value for row in rows.values() for value in row.values()])
    across, names = _across(x, reach), rows_axis(list(rows), left)
    spans = [
        {"name": case, "least": float(min(row.values())), "most": float(max(row.values()))}
        for case, row in rows.items()
    ]
    dots = [
        {
            "name": case,
            "series": name,
            "value": float(value),
            "what": f"{case}, {name}: {value:.3f}",
        }
        for case, row in rows.items()
        for name, value in row.items()
    ]
    layers = [
        on(spans).mark_rule(color=_GREY).encode(x=across("least"), x2="most:Q", y=names),
        dot_layer(dots, size=60).encode(
            x=across("value"), y=names, color=colour_legend(series), shape=shape_legend(series)
        ),
    ]
    return layered(title, layers, height=row_step(rows, 22), width=WIDTH - left - 24)


def _quartiles(name: str, group: Sequence[tuple[float, str]]) -> Row:
    found = np.quantile([value for value, _ in group], (0.0, 0.25, 0.5, 0.75, 1.0)).tolist()
    keys = ("least", "first", "median", "third", "most")
    return {"name": name, **dict(zip(keys, found, strict=True))}


def _across(title: str, reach: Range | None, *, log: bool = False) -> Callable[[str], alt.X]:
    """The horizontal axis for whichever field a layer draws."""
    scale = axis_scale(reach, log=log)
    axis = value_axis(reach, log=log)
    return lambda field: alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)
