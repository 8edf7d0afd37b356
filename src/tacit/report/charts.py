"""Charts of the usual kinds from plain numbers, in one look: lines, dots, bars and panels.

Every function returns an Altair chart that is `WIDTH` units wide, so that its letters stay readable
when a page scales it to a phone. `with_guarantee` writes the guarantee under a chart, and
`tacit.report.render` turns charts into pages and picture files.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.guarantee import Guarantee
from tacit.report.look import FAMILY_COLOURS, INK, RULE, SERIES_COLOURS, SOFT, series_looks
from tacit.report.ranges import Range, bar_range, extent, marks, number, percent_of, room, said
from tacit.system.extras import needs

# Other modules take Altair from here, so that a missing package is one sentence everywhere.
needs("charts", "altair", "vl_convert", what="a chart")

import altair as alt  # noqa: E402
from altair.typing import ChartType  # noqa: E402
from altair.utils.schemapi import debug_mode  # noqa: E402

__all__ = ["FAMILY_COLOURS", "INK", "ChartType", "Range", "alt", "number", "room"]

WIDTH = 400
NAME = 29  # characters of a row's name in one line
NUMBER = ".4~g"  # four digits at most, without trailing zeros
_DASHES: dict[bool, list[float]] = {False: [1, 0], True: [5, 4]}
_DOTS_UP_TO = 20  # longer lines have no dots: they would touch

Row = dict[str, Any]
Point = tuple[float, float]
NamedPoint = tuple[float, float, str]  # x, y, what it is


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart; lines of one name share a colour and a place in the legend."""

    name: str
    points: Sequence[Point]
    colour: str | None = None
    width: float = 2.0
    dashed: bool = False
    joined: bool = True
    dots: bool | None = None  # None: on short lines only


def with_guarantee(chart: ChartType, guarantee: Guarantee) -> alt.VConcatChart:
    """Write the guarantee's sentence under the chart, so that it travels with the picture."""
    caption = alt.TitleParams(
        text=textwrap.wrap(guarantee.sentence, 76),
        orient="bottom",
        anchor="start",
        frame="bounds",
        offset=10,
        fontSize=10.5,
        fontWeight="normal",
        color=SOFT,
    )
    return alt.vconcat(
        chart,
        title=caption,
        description=title_of(chart),
        usermeta={"guarantee": guarantee.to_dict()},
    )


def without_caption(chart: ChartType, guarantee: Guarantee) -> ChartType:
    """A chart for a page that states this guarantee itself; in the chart's data it remains."""
    if getattr(chart, "usermeta", None) != {"guarantee": guarantee.to_dict()}:
        return chart
    bare = chart.copy(deep=False)
    bare.title = alt.Undefined
    return bare


def title_of(chart: ChartType) -> str:
    """The chart's title in one line."""
    return str(chart.description)


def line_chart(
    title: str,
    lines: Mapping[str, Sequence[Point]] | Sequence[Line],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    y_range: Range | None = None,
    level: tuple[str, float] | None = None,
    legend: bool = True,
    level_left: bool = False,
    counted: bool = False,
) -> alt.LayerChart:
    """One line per series, with dots where there are few points.

    `level` is a name and a value that a dotted horizontal line marks, named above its right end or
    below its left one; what is `counted` from left to right, as rounds are, has whole numbers.
    """
    kept = [Line(*item) for item in lines.items()] if isinstance(lines, Mapping) else list(lines)
    if log_y:
        kept = [_positive(line) for line in kept]
    xs = [at for line in kept for at, _ in line.points]
    ys = [value for line in kept for _, value in line.points]
    across = alt.X(
        "x:Q",
        title=x,
        scale=axis_scale(extent(xs), log=log_x),
        axis=_count_axis(xs) if counted else _x_axis(xs, log=log_x),
    )
    up = alt.Y(
        "y:Q",
        title=y,
        scale=axis_scale(y_range or (extent(ys) if log_y else room(ys)), log=log_y),
        axis=value_axis(extent(ys), log=log_y),
    )
    layers = [*line_layers(kept, across, up, legend=legend)]
    if level is not None:
        layers += _level_layers(*level, left=level_left)
    return layered(title, layers, height=230)


def line_layers(
    lines: Sequence[Line], across: alt.X, up: alt.Y, *, legend: bool = True
) -> list[alt.Chart]:
    """The layers of `line_chart`: joined points, and dots with their values."""
    names = [line.name for line in _unique(lines)]
    dotted = all(_has_dots(line) for line in lines)
    given = {line.name: line.colour for line in lines if line.colour}
    colour = colour_legend(names, given, symbol=None if dotted else "stroke")
    shape, dash = shape_legend(names), _dashes(lines)
    if not legend or not dotted:
        shape = shape.legend(None)
    if not legend or dotted:
        dash = dash.legend(None)
    if not legend:
        colour = colour.legend(None)
    layers = []
    for width in dict.fromkeys(line.width for line in lines if line.joined):
        alike = [line for line in lines if line.joined and line.width == width]
        mark = on(_rows(alike)).mark_line(strokeWidth=width)
        mark = mark.encode(x=across, y=up, color=colour, strokeDash=dash, detail="line:N")
        layers.append(mark)
    dots = [
        row for row in _rows([line for line in lines if _has_dots(line)]) if row["y"] is not None
    ]
    if dots:
        mark = dot_layer(dots, size=45).encode(x=across, y=up, color=colour, shape=shape)
        if not dotted:  # the legend shows pieces of lines; shapes of the same names would join it
            mark = mark.encode(shape=shape_legend([*names, ""]).legend(None))
        layers.append(mark)
    return layers


def scatter_chart(
    title: str,
    clouds: Mapping[str, Sequence[NamedPoint]],
    *,
    x: str,
    y: str,
    diagonal: bool = False,
    size: float = WIDTH - 70,
) -> alt.LayerChart:
    """One dot per point; the `diagonal` is where both accuracies are equal."""
    rows: list[Row] = [
        {"series": name, "x": float(at), "y": float(value), "what": said(name, at, value, what)}
        for name, cloud in clouds.items()
        for at, value, what in cloud
    ]
    reach_x, reach_y = room([row["x"] for row in rows]), room([row["y"] for row in rows])
    if diagonal:
        reach_x = reach_y = room([row[key] for row in rows for key in ("x", "y")])
    ticks = alt.Axis(format=NUMBER, tickCount=max(3, int(size / 60)))
    across = alt.X("x:Q", title=x, scale=axis_scale(reach_x), axis=ticks)
    up = alt.Y("y:Q", title=y, scale=axis_scale(reach_y), axis=ticks)
    layers = []
    if diagonal and reach_x:
        ends = on([{"x": end, "y": end} for end in reach_x])
        layers.append(ends.mark_line(color=RULE, strokeDash=[5, 4]).encode(x=across, y=up))
    names = list(clouds)
    dots = dot_layer(rows, size=30).encode(x=across, y=up, color=colour_legend(names))
    layers.append(dots.encode(shape=shape_legend(names)))
    return layered(title, layers, height=size, width=size)


def bar_chart(
    title: str,
    bars: Mapping[str, float],
    *,
    x: str,
    colours: Sequence[str],
    x_range: Range | None = None,
    log: bool = False,
    percent: bool = False,
    level: tuple[str, float] | None = None,
    notes: Sequence[str] = (),
) -> alt.LayerChart:
    """One row with a bar and its value per name, so that long names stay readable.

    `level` is a name and a value that a dashed vertical line marks; `notes` are the bars' tooltips.
    """
    low, high = x_range or bar_range(list(bars.values()), log=log)
    rows = [
        {
            "name": name,
            "value": number(value) if value > 0.0 or not log else None,
            "start": low,
            "end": _beside(value, level, reach=high - low),
            "shown": percent_of(value) if percent else f"{value:.4g}",
            "what": notes[n] if notes else f"{name}: {value:.4g}",
        }
        for n, (name, value) in enumerate(bars.items())
    ]
    left = label_width(bars)
    across = alt.X(
        "value:Q",
        title=x,
        scale=axis_scale((low, high), log=log),
        axis=value_axis((low, high), log=log, form=".0%" if percent else NUMBER),
    )
    names = rows_axis(list(bars), left)
    base = on(rows).encode(x=across, y=names)
    paint = alt.Color("name:N", legend=None).scale(domain=list(bars), range=list(colours))
    layers = [
        base.mark_bar(aria=True, height=18).encode(
            x2="start:Q", color=paint, tooltip="what:N", description="what:N"
        ),
        base.mark_text(align="left", dx=4).encode(x="end:Q", text="shown:N"),
    ]
    if level is not None:
        mark = on([{"level": float(level[1]), "text": level[0]}]).encode(x="level:Q")
        layers += [
            mark.mark_rule(strokeDash=[5, 4], color=INK),
            mark.mark_text(y=-6, baseline="bottom", color=INK).encode(text="text:N"),
        ]
    return layered(title, layers, height=row_step(bars, 30), width=WIDTH - left - 50)


def _beside(value: float, level: tuple[str, float] | None, *, reach: float) -> float | None:
    """Where a bar's value is written: at its end, or behind the line that would cross it."""
    crossed = level is not None and value <= level[1] < value + 0.16 * reach
    return number(level[1]) if level is not None and crossed else number(value)


def on(rows: Sequence[Row]) -> alt.Chart:
    """A chart on these rows, which need no data frame and have no limit of length."""
    with debug_mode(False):  # its check of every row takes longer than drawing the chart
        return alt.Chart(alt.InlineData(values=list(rows)))


def dot_layer(rows: Sequence[Row], *, size: float) -> alt.Chart:
    """Filled dots that say `what` they are when pointed at."""
    dots: alt.Chart = on(rows).mark_point(filled=True, size=size, opacity=0.8, aria=True)
    return dots.encode(tooltip="what:N", description="what:N")


def layered(
    title: str, layers: Sequence[alt.Chart], *, height: float | alt.Step, width: float = WIDTH - 70
) -> alt.LayerChart:
    """The layers as one chart under its title."""
    return alt.LayerChart(
        layer=list(layers), width=width, height=height, title=heading(title), description=title
    )


def heading(title: str, *, characters: int = 55, size: float = 13.5) -> alt.TitleParams:
    """A title that is wrapped where the chart ends."""
    lines = textwrap.wrap(title, characters) or [""]
    return alt.TitleParams(text=lines, anchor="start", frame="bounds", fontSize=size, offset=10)


def axis_scale(reach: Range | None, *, log: bool = False) -> alt.Scale:
    """A scale over exactly this range."""
    return alt.Scale(
        domain=list(reach) if reach else alt.Undefined,
        type="log" if log else "linear",
        nice=False,
        zero=alt.Undefined if log else False,
    )


def _x_axis(xs: Sequence[float], *, log: bool) -> alt.Axis:
    return marked_axis(marks(xs)) if log and marks(xs) else value_axis(extent(xs), log=log)


def _count_axis(xs: Sequence[float]) -> alt.Axis:
    first, last = math.ceil(min(xs)), math.floor(max(xs))
    step = max(1, math.ceil((last - first) / 6))
    return alt.Axis(values=list(range(first, last + 1, step)), format="d")


def value_axis(reach: Range | None, *, log: bool = False, form: str = NUMBER) -> alt.Axis:
    """About five round numbers; on a logarithmic axis over several decades, powers of ten."""
    if log and reach and reach[1] >= 100.0 * reach[0]:
        first, last = math.ceil(math.log10(reach[0])), math.floor(math.log10(reach[1]))
        step = max(1, math.ceil((last - first) / 6))
        return marked_axis([10.0**power for power in range(first, last + 1, step)])
    return alt.Axis(format=form, tickCount=5)


def marked_axis(marks: Sequence[float]) -> alt.Axis:
    """Ticks at these values, each with its number: a logarithmic axis would drop some."""
    return alt.Axis(values=list(marks), labelExpr=f"format(datum.value, '{NUMBER}')")


def rows_axis(names: Sequence[str], width: float, *, field: str = "name") -> alt.Y:
    """One row per name, in the given order; long names are whole, in several lines."""
    broken = {name: textwrap.wrap(name, NAME) for name in names if len(name) > NAME}
    axis = alt.Axis(
        labelExpr=f"({json.dumps(broken)})[datum.label] || datum.label",
        labelLimit=0,
        labelPadding=6,
        minExtent=width,
        maxExtent=width,
        ticks=False,
        domain=False,
    )
    return alt.Y(f"{field}:N", title=None, axis=axis).scale(domain=list(names)).sort(list(names))


def row_step(names: Iterable[str], least: float) -> alt.Step:
    """The height of a row, which has room for the longest name's lines."""
    n_lines = max((len(textwrap.wrap(name, NAME)) for name in names), default=1)
    return alt.Step(max(least, 13.0 * n_lines + 3.0))


def label_width(names: Iterable[str]) -> float:
    """Room for the longest name beside the rows."""
    return min(185.0, 14.0 + 5.8 * max((len(name) for name in names), default=0))


def colour_of(place: int) -> str:
    """The colour of the n-th series; they repeat after twelve."""
    return SERIES_COLOURS[place % len(SERIES_COLOURS)]


def colour_legend(
    names: Sequence[str], given: Mapping[str, str] | None = None, *, symbol: str | None = None
) -> alt.Color:
    """Colours by series, named below the chart; some may be `given`."""
    looks = {name: colour for name, (colour, _) in series_looks(names).items()}
    found = {**looks, **(given or {})}
    scale = alt.Scale(domain=list(names), range=[found[name] for name in names])
    return alt.Color("series:N", scale=scale, legend=_legend(names, symbol=symbol))


def shape_legend(names: Sequence[str]) -> alt.Shape:
    """Shapes by series, in one legend with their colours."""
    shapes = [shape for _, shape in series_looks(names).values()]
    scale = alt.Scale(domain=list(names), range=shapes)
    return alt.Shape("series:N", scale=scale, legend=_legend(names))


def _legend(names: Sequence[str], *, symbol: str | None = None) -> alt.Legend:
    """Names below the chart, in as many columns as fit, beside dots or pieces of lines."""
    longest = max(map(len, names), default=1)  # a reader's font may be wider than the one measured
    columns = max(1, int((WIDTH - 60) // (28 + 7.4 * longest)))
    return alt.Legend(
        title=None,
        orient="bottom",
        columns=columns,
        columnPadding=10 + 1.2 * longest,
        labelLimit=WIDTH - 30,
        symbolType=symbol or alt.Undefined,
        symbolStrokeWidth=3 if symbol == "stroke" else alt.Undefined,
        symbolSize=240 if symbol == "stroke" else alt.Undefined,
    )


def _dashes(lines: Sequence[Line]) -> alt.StrokeDash:
    """The dashes of lines; merged with the legend of their colours, which has the same names."""
    unique = _unique(lines)
    scale = alt.Scale(
        domain=[line.name for line in unique], range=[_DASHES[line.dashed] for line in unique]
    )
    names = [line.name for line in unique]
    return alt.StrokeDash("series:N", scale=scale, legend=_legend(names, symbol="stroke"))


def _rows(lines: Sequence[Line]) -> list[Row]:
    """The points of these lines; two lines of one name stay apart by their number."""
    return [
        {
            "series": line.name,
            "line": n,
            "x": float(at),
            "y": number(value),
            **({"what": said(line.name, at, value)} if _has_dots(line) else {}),
        }
        for n, line in enumerate(lines)
        for at, value in line.points
    ]


def _level_layers(name: str, value: float, *, left: bool) -> list[alt.Chart]:
    mark = on([{"level": float(value), "text": name}]).encode(y="level:Q")
    if left:
        words = mark.mark_text(x=4, align="left", baseline="top", dy=5, color=INK)
    else:
        words = mark.mark_text(x=WIDTH - 72, align="right", baseline="bottom", dy=-4, color=INK)
    return [mark.mark_rule(strokeDash=[2, 3], color=INK), words.encode(text="text:N")]


def _positive(line: Line) -> Line:
    """The line with gaps where a logarithmic axis has no place for its values."""
    return replace(line, points=[(x, y if y > 0.0 else math.nan) for x, y in line.points])


def _unique(lines: Sequence[Line]) -> list[Line]:
    return list({line.name: line for line in lines}.values())


def _has_dots(line: Line) -> bool:
    return len(line.points) <= _DOTS_UP_TO if line.dots is None else line.dots
