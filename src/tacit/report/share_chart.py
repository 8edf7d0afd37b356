"""Class shares over time as plain SVG: light enough for a collector, and no script in the page.

Why Altair does not draw this one: docs/decisions/2026-11-18-share-chart.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from tacit.report.look import SERIES_COLOURS

_WIDTH, _HEIGHT = 520, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 110, 12, 28
_MOST_LINES = 6
_LETTERS = 14
_APART = 15.0  # between two labels at the end of lines


def share_chart(shares: dict[str, Any]) -> str:
    """A line with its interval per class, named where it ends; of two classes one is enough."""
    names, periods = shares["classes"], shares["periods"]
    shown = _chosen(names, periods)
    colours = [SERIES_COLOURS[place] for place in range(len(shown))]
    lines = "".join(_line(periods, j, colour) for j, colour in zip(shown, colours, strict=True))
    ends = _spread([_y(periods[-1]["share"][j]) for j in shown])
    labels = "".join(
        f'<rect x="{_WIDTH - _RIGHT + 8}" y="{y - 5:.1f}" width="4" height="11" fill="{colour}"/>'
        f'<text x="{_WIDTH - _RIGHT + 16}" y="{y + 4:.1f}" fill="var(--ink)" font-weight="600">'
        f"{escape(_short(names[j]))}: {periods[-1]['share'][j]:.0%}</text>"
        for j, y, colour in zip(shown, ends, colours, strict=True)
    )
    first, last = periods[0]["start"] or "", periods[-1]["start"] or ""
    words = f"Estimated shares by {shares['by']}" + (f", {first} to {last}" if first else "")
    return (
        f'<figure class="chart"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-size="13" '
        f'font-family="Arial, Helvetica, sans-serif" aria-label="{escape(words)}">'
        f"{_axis(first, last)}{lines}{labels}</svg>"
        f"<figcaption>{escape(words)}. Bands are intervals of {shares['level']:.0%}, each for its "
        "own class and period.</figcaption></figure>"
    )


def _chosen(names: Sequence[str], periods: Sequence[dict[str, Any]]) -> list[int]:
    if len(names) == 2:  # the other one is what is missing to 1
        return [1]
    last = periods[-1]["share"]
    return sorted(range(len(names)), key=lambda j: -last[j])[:_MOST_LINES]


def _axis(first: str, last: str) -> str:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    grid = "".join(
        f'<line x1="{_LEFT}" x2="{right}" y1="{_y(share):.1f}" y2="{_y(share):.1f}" '
        'stroke="var(--grid)"/>'
        f'<text x="{_LEFT - 7}" y="{_y(share) + 4.5:.1f}" text-anchor="end" fill="var(--soft)">'
        f"{share:.0%}</text>"
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    days = (
        f'<text x="{_LEFT}" y="{bottom + 20}" fill="var(--soft)">{escape(first)}</text>'
        f'<text x="{right}" y="{bottom + 20}" fill="var(--soft)" text-anchor="end">'
        f"{escape(last if last != first else '')}</text>"
    )
    return grid + days


def _line(periods: Sequence[dict[str, Any]], j: int, colour: str) -> str:
    xs = _places(len(periods))
    above = [f"{x:.1f},{_y(one['high'][j]):.1f}" for x, one in zip(xs, periods, strict=True)]
    below = [f"{x:.1f},{_y(one['low'][j]):.1f}" for x, one in zip(xs, periods, strict=True)]
    points = " ".join(
        f"{x:.1f},{_y(one['share'][j]):.1f}" for x, one in zip(xs, periods, strict=True)
    )
    band = " ".join([*above, *reversed(below)])
    # A single period has no area: its interval is a stroke.
    wide = 9 if len(periods) == 1 else 0
    marks = "".join(_mark(x, one, j, colour) for x, one in zip(xs, periods, strict=True))
    return (
        f'<polygon points="{band}" fill="{colour}" fill-opacity=".18" stroke="{colour}" '
        f'stroke-opacity=".18" stroke-width="{wide}"/>'
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>{marks}'
    )


def _mark(x: float, one: dict[str, Any], j: int, colour: str) -> str:
    said = f"{one['start'] or 'all'}: {one['share'][j]:.1%} ({one['low'][j]:.1%} to "
    said += f"{one['high'][j]:.1%}), {one['n']:,} releases"
    return (
        f'<circle cx="{x:.1f}" cy="{_y(one["share"][j]):.1f}" r="2.6" fill="{colour}">'
        f"<title>{escape(said)}</title></circle>"
    )


def _places(n: int) -> list[float]:
    width = _WIDTH - _LEFT - _RIGHT
    return [_LEFT + width / 2] if n == 1 else [_LEFT + width * k / (n - 1) for k in range(n)]


def _spread(ys: Sequence[float]) -> list[float]:
    """The heights of labels, moved apart so that each can be read; lines keep their order."""
    placed = list(ys)
    last = -_APART
    for place in sorted(range(len(ys)), key=lambda k: ys[k]):
        placed[place] = last = max(ys[place], last + _APART)
    over = max(placed, default=0.0) - (_HEIGHT - _BOTTOM)
    return [y - max(0.0, over) for y in placed]


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"


def _y(share: float) -> float:
    return _TOP + (1.0 - share) * (_HEIGHT - _TOP - _BOTTOM)
