"""The dashboard: one page without scripts and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640, 220, 44, 26
_COLOURS = ("#2563a8", "#c2571a", "#2f7d4f", "#8a3f8f", "#a98412", "#4a5568")
_MOST_LINES = len(_COLOURS)
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:46rem;padding:0 1rem}
body{color:#1c2430}table{border-collapse:collapse;width:100%}svg{width:100%;height:auto}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #d5dbe3}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.promise{border-left:4px solid #2563a8;padding:.3rem 1rem;background:#f2f5f9}
figcaption{color:#4a5568}h1{font-size:1.5rem}h2{font-size:1.15rem}
"""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def page(*, about: dict[str, Any], totals: dict[str, Any], shares: dict[str, Any] | None) -> str:
    """The page from the plain values that the API answers with."""
    parts = [
        "<h1>Collected releases</h1>",
        f'<p class="promise">{escape(about["guarantee"]["sentence"])}</p>',
        _facts(about, totals),
    ]
    if shares is None:
        parts.append(
            f"<p>Shares of the classes need label releases; this model makes "
            f"{escape(about['kind'])} ones. Counts are at <code>/api/counts</code>.</p>"
        )
    elif not shares["periods"]:
        parts.append("<p>No release has arrived yet.</p>")
    else:
        parts += [_chart(shares), _table(shares)]
    title = "Collected releases"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>"
    )


def _facts(about: dict[str, Any], totals: dict[str, Any]) -> str:
    rows = [
        ("Releases counted", f"{totals['releases']:,}"),
        ("Devices enrolled", f"{totals['devices']:,}"),
        ("Kind of release", about["kind"]),
        ("Model", about["model"]),
    ]
    body = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{body}</table>"


def _chart(shares: dict[str, Any]) -> str:
    """Estimated shares over the periods, each with its interval."""
    names, periods = shares["classes"], shares["periods"]
    if len(names) == 2:  # the other one is what is missing to 1
        shown = [1]
    else:
        last = periods[-1]["share"]
        shown = sorted(range(len(names)), key=lambda j: -last[j])[:_MOST_LINES]
    marks = "".join(_line(periods, j, _COLOURS[place]) for place, j in enumerate(shown))
    legend = ", ".join(
        f'<span style="color:{_COLOURS[place]}">■</span> {escape(names[j])}'
        for place, j in enumerate(shown)
    )
    first, final = periods[0]["start"], periods[-1]["start"]
    span = "" if first is None else f" from {first} to {final}"
    return (
        f'<h2>Shares by {escape(shares["by"])}</h2><figure><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'role="img" aria-label="Estimated class shares over time">{_axis()}{marks}</svg>'
        f"<figcaption>{legend}; estimated shares{span} with intervals of {shares['level']:.0%}, "
        "each for its own class and period.</figcaption></figure>"
    )


def _axis() -> str:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        lines.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d5dbe3"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="12">'
            f"{share:.0%}</text>"
        )
    return "".join(lines)


def _line(periods: Sequence[dict[str, Any]], j: int, colour: str) -> str:
    step = (_WIDTH - _LEFT) / len(periods)
    places = [(_LEFT + (k + 0.5) * step, one) for k, one in enumerate(periods)]
    points = " ".join(f"{x:.1f},{_y(one['share'][j]):.1f}" for x, one in places)
    marks = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_y(one["low"][j]):.1f}" '
        f'y2="{_y(one["high"][j]):.1f}" stroke="{colour}" stroke-opacity=".55" stroke-width="2"/>'
        f'<circle cx="{x:.1f}" cy="{_y(one["share"][j]):.1f}" r="3" fill="{colour}"/>'
        for x, one in places
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}"/>{marks}'


def _y(share: float) -> float:
    return 8.0 + (1.0 - share) * (_HEIGHT - _BOTTOM - 8.0)


def _table(shares: dict[str, Any]) -> str:
    names = shares["classes"]
    head = "".join(f'<th class="n">{escape(name)}</th>' for name in names)
    rows = "".join(
        f'<tr><td>{escape(one["start"] or "all")}</td><td class="n">{one["n"]:,}</td>'
        + "".join(f'<td class="n">{_interval(one, j)}</td>' for j in range(len(names)))
        + "</tr>"
        for one in reversed(shares["periods"])
    )
    last = shares["periods"][-1]
    warning = f"<p>{escape(last['warning'])}</p>" if last["warning"] else ""
    return (
        f'<table><tr><th>Period</th><th class="n">Releases</th>{head}</tr>{rows}</table>'
        f"<p>{escape(last['assumption']).capitalize()}.</p>{warning}"
    )


def _interval(one: dict[str, Any], j: int) -> str:
    return f"{one['share'][j]:.3f} ({one['low'][j]:.3f} to {one['high'][j]:.3f})"
