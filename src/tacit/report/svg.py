"""Small static drawings as SVG: no script, no browser, no library, for phone and paper alike.

The page of the arena has dozens of figures. As SVG they are part of the page, and the same text is
the picture file. A drawing is 460 units wide, so that its letters stay readable at phone width.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

WIDTH = 460.0
_COLOURS = (
    "#b2182b", "#2166ac", "#1b7837", "#e08214", "#762a83", "#35978f", "#8c510a", "#c51b7d",
    "#4d4d4d", "#7fbc41", "#01665e", "#9970ab",
)  # fmt: skip
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)

Point = tuple[float, float, str]  # x, y, what it is
Numbers = Sequence[float]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished figure; `to_html` is what the page asks every figure for."""

    title: str
    svg: str

    def to_html(self, **_: object) -> str:
        """The figure as part of a page."""
        return f'<figure style="margin:1rem 0;max-width:44rem">{self.svg}</figure>'


@dataclass(slots=True)
class _Axis:
    """From values to places on the drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    marks: tuple[float, ...] = ()

    def __call__(self, value: float) -> float:
        low, high, at = (self._scaled(v) for v in (self.low, self.high, value))
        share = 0.5 if high == low else (at - low) / (high - low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, 1e-12)) if self.log else value

    def ticks(self) -> list[float]:
        """A handful of round numbers, or the `marks` if there are any."""
        if self.marks:
            return list(self.marks)
        if self.log:
            powers = range(
                math.ceil(self._scaled(self.low)), math.floor(self._scaled(self.high)) + 1
            )
            return [10.0**power for power in powers]
        raw = max(self.high - self.low, 1e-9) / 5.0
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(factor * power for factor in _STEPS if factor * power >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [n * step for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


@dataclass(slots=True)
class _Canvas:
    title: str
    parts: list[str] = field(default_factory=list)
    height: float = 34.0

    def line(self, ends: Numbers, colour: str = "#333", width: float = 1.0, dash: str = "") -> None:
        x1, y1, x2, y2 = ends
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
            f'stroke-width="{width:g}"{dashed}/>'
        )

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", size: float = 12.0,
             colour: str = "#222", turn: bool = False) -> None:  # fmt: skip
        turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" '
            f'text-anchor="{anchor}"{turned}>{escape(words)}</text>'
        )

    def dot(self, x: float, y: float, colour: str, label: str = "", radius: float = 3.0) -> None:
        name = f"<title>{escape(label)}</title>" if label else ""
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}" '
            f'fill-opacity="0.75">{name}</circle>'
        )

    def drawing(self) -> Drawing:
        body = "".join(self.parts)
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {self.height:.0f}" '
            f'width="100%" role="img" aria-label="{escape(self.title, quote=True)}" '
            'font-family="system-ui, sans-serif">'
            f'<rect width="{WIDTH:g}" height="{self.height:.0f}" fill="#fff"/>{body}</svg>'
        )
        return Drawing(self.title, svg)


def _canvas(title: str) -> _Canvas:
    canvas = _Canvas(title)
    words, line = title.split(), ""
    for word in words:
        if len(line) + len(word) > 58:
            canvas.text(4, canvas.height - 16, line, size=13.5, colour="#000")
            canvas.height += 17
            line = ""
        line = f"{line} {word}".strip()
    canvas.text(4, canvas.height - 16, line, size=13.5, colour="#000")
    return canvas


def _legend(canvas: _Canvas, names: Sequence[str]) -> None:
    x = 8.0
    for place, name in enumerate(names):
        wide = 22.0 + 6.6 * len(name)
        if x + wide > WIDTH and x > 8.0:
            x, canvas.height = 8.0, canvas.height + 17.0
        canvas.dot(x + 4, canvas.height + 8, colour_of(place), radius=4)
        canvas.text(x + 12, canvas.height + 12, name)
        x += wide
    canvas.height += 22.0


def colour_of(place: int) -> str:
    """The colour of the n-th series; they repeat after twelve."""
    return _COLOURS[place % len(_COLOURS)]


def _number(value: float) -> str:
    return f"{value:.4g}"


def _grid(canvas: _Canvas, across: _Axis, up: _Axis | None, *, x: str, y: str = "") -> None:
    bottom = canvas.height
    top = up.end if up else canvas.height
    for tick in across.ticks():
        if up:
            canvas.line((across(tick), bottom, across(tick), top), "#e5e5e5")
        canvas.text(across(tick), bottom + 15, _number(tick), anchor="middle", size=11)
    if up:
        for tick in up.ticks():
            canvas.line((across.start, up(tick), across.end, up(tick)), "#e5e5e5")
            canvas.text(across.start - 5, up(tick) + 4, _number(tick), anchor="end", size=11)
        canvas.text(13, (bottom + top) / 2, y, anchor="middle", size=12, turn=True)
    canvas.line((across.start, bottom, across.end, bottom), "#888")
    canvas.text((across.start + across.end) / 2, bottom + 32, x, anchor="middle", size=12)
    canvas.height = bottom + 42


def line_plot(
    title: str, lines: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str,
    log_x: bool = False, y_range: tuple[float, float] | None = None,
) -> Drawing:  # fmt: skip
    """One line with dots per series."""
    canvas = _canvas(title)
    points = [point for series in lines.values() for point in series]
    low, high = y_range or _room([value for _, value in points])
    top, bottom = canvas.height, canvas.height + 230
    canvas.height = bottom
    xs = [at for at, _ in points]
    marks = tuple(sorted(set(xs))) if log_x and len(set(xs)) <= 8 else ()
    across = _Axis(min(xs), max(xs), 52, WIDTH - 12, log=log_x, marks=marks)
    up = _Axis(low, high, bottom, top)
    _grid(canvas, across, up, x=x, y=y)
    for place, (name, series) in enumerate(lines.items()):
        colour = colour_of(place)
        where = [(across(at), up(value)) for at, value in sorted(series)]
        for (x1, y1), (x2, y2) in itertools.pairwise(where):
            canvas.line((x1, y1, x2, y2), colour, 2.0)
        if len(where) <= 20:
            for (at, value), (px, py) in zip(sorted(series), where, strict=True):
                canvas.dot(px, py, colour, f"{name}: {_number(at)}, {value:.3f}", radius=3.5)
    _legend(canvas, list(lines))
    return canvas.drawing()


def scatter_plot(title: str, clouds: Mapping[str, Sequence[Point]], *, x: str, y: str) -> Drawing:
    """Accuracy against accuracy, with the diagonal on which nothing is lost."""
    canvas = _canvas(title)
    values = [v for cloud in clouds.values() for point in cloud for v in point[:2]]
    low, high = _room(values)
    top, bottom = canvas.height, canvas.height + 380
    canvas.height = bottom
    across, up = _Axis(low, high, 52, WIDTH - 12), _Axis(low, high, bottom, top)
    _grid(canvas, across, up, x=x, y=y)
    canvas.line((across(low), up(low), across(high), up(high)), "#888", 1.2, "5 4")
    for place, (name, cloud) in enumerate(clouds.items()):
        for at, value, what in cloud:
            label = f"{name}, {what}: {at:.3f}, {value:.3f}"
            canvas.dot(across(at), up(value), colour_of(place), label)
    _legend(canvas, list(clouds))
    return canvas.drawing()


def box_plot(
    title: str, groups: Mapping[str, Sequence[tuple[float, str]]], *, x: str, log: bool = False
) -> Drawing:
    """Median, quartiles and every value, one row per group: names stay readable."""
    canvas = _canvas(title)
    values = [value for group in groups.values() for value, _ in group]
    low, high = (min(values) * 0.8, max(values) * 1.25) if log else _room(values)
    left = _label_width(groups)
    across = _Axis(low, high, left, WIDTH - 14, log=log)
    top = canvas.height
    bottom = top + 26.0 * len(groups)
    for tick in across.ticks():
        canvas.line((across(tick), top, across(tick), bottom), "#e5e5e5")
    for place, (name, group) in enumerate(groups.items()):
        middle = top + 26.0 * place + 13
        canvas.text(left - 6, middle + 4, _short(name), anchor="end")
        _box(canvas, across, middle, group, colour_of(place))
    canvas.height = bottom
    _grid(canvas, across, None, x=x)
    return canvas.drawing()


def _box(
    canvas: _Canvas, across: _Axis, middle: float, group: Sequence[tuple[float, str]], colour: str
) -> None:
    numbers = np.array([value for value, _ in group])
    first, median, third = np.quantile(numbers, (0.25, 0.5, 0.75))
    x1, x2 = across(first), across(third)
    canvas.parts.append(
        f'<rect x="{x1:.1f}" y="{middle - 8:.1f}" width="{max(x2 - x1, 1):.1f}" height="16" '
        f'fill="{colour}" fill-opacity="0.15" stroke="{colour}"/>'
    )
    canvas.line((across(numbers.min()), middle, x1, middle), colour)
    canvas.line((x2, middle, across(numbers.max()), middle), colour)
    canvas.line((across(median), middle - 8, across(median), middle + 8), colour, 2.5)
    for value, what in group:
        canvas.dot(across(value), middle, colour, f"{what}: {value:.3f}", radius=2.2)


def rank_plot(
    title: str, ranks: Mapping[str, float], *, difference: float,
    groups: Sequence[Sequence[str]] = (),
) -> Drawing:  # fmt: skip
    """Average ranks, best first, the critical difference, and bars over equals."""
    canvas = _canvas(title)
    order = sorted(ranks, key=lambda name: ranks[name])
    left = _label_width(order)
    across = _Axis(1.0, max(2.0, math.ceil(max(ranks.values()))), left, WIDTH - 64)
    top = canvas.height + 18
    reach = across.start + _length(across, difference)
    canvas.line((across.start, top - 6, reach, top - 6), "#000", 2.5)
    canvas.text(across.start, top - 11, f"critical difference {difference:.2f}", size=11)
    bottom = top + 22.0 * len(order) + 6
    for tick in across.ticks():
        canvas.line((across(tick), top, across(tick), bottom), "#e5e5e5")
    for place, name in enumerate(order):
        y = top + 22.0 * place + 14
        canvas.text(left - 6, y + 4, _short(name), anchor="end")
        canvas.dot(across(ranks[name]), y, "#2166ac", f"{name}: {ranks[name]:.2f}", radius=4.5)
        canvas.text(across(ranks[name]) + 8, y + 4, f"{ranks[name]:.2f}", size=10.5)
    for place, group in enumerate(groups):
        rows = [top + 22.0 * order.index(name) + 14 for name in group]
        x = WIDTH - 6 - 5.0 * (place % 6)
        canvas.line((x, min(rows) - 6, x, max(rows) + 6), "#b2182b", 3.0)
    canvas.height = bottom
    _grid(canvas, across, None, x="average rank (a red bar: not told apart)")
    return canvas.drawing()


def dot_plot(title: str, rows: Mapping[str, Mapping[str, float]], *, x: str) -> Drawing:
    """One row per case with a dot per series, as for their number and ours."""
    canvas = _canvas(title)
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    low, high = _room([value for row in rows.values() for value in row.values()])
    left = _label_width(rows)
    across = _Axis(low, high, left, WIDTH - 14)
    top = canvas.height
    bottom = top + 22.0 * len(rows) + 4
    for tick in across.ticks():
        canvas.line((across(tick), top, across(tick), bottom), "#e5e5e5")
    for place, (label, row) in enumerate(rows.items()):
        y = top + 22.0 * place + 12
        canvas.text(left - 6, y + 4, _short(label), anchor="end")
        canvas.line((across(min(row.values())), y, across(max(row.values())), y), "#bbb")
        for name, value in row.items():
            colour = colour_of(names.index(name))
            canvas.dot(across(value), y, colour, f"{label}, {name}: {value:.3f}", radius=4.5)
    canvas.height = bottom
    _grid(canvas, across, None, x=x)
    _legend(canvas, names)
    return canvas.drawing()


def _length(axis: _Axis, amount: float) -> float:
    return abs(axis(axis.low + min(amount, axis.high - axis.low)) - axis(axis.low))


def _label_width(names: Sequence[str] | Mapping[str, object]) -> float:
    return min(210.0, 14.0 + 6.6 * max(len(name) for name in names))


def _short(name: str) -> str:
    """A label that fits; the dots' tooltips have it whole."""
    return name if len(name) <= 30 else f"{name[:16]}…{name[-13:]}"


def _room(values: Numbers) -> tuple[float, float]:
    """The values' range with a margin, inside 0 to 1 for accuracies."""
    low, high = min(values), max(values)
    margin = 0.05 * max(high - low, 0.02)
    if low >= 0.0 and high <= 1.0:
        return max(0.0, low - margin), min(1.0, high + margin)
    return low - margin, high + margin
