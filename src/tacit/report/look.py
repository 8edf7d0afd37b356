"""The one look of all pages: the stylesheet, the templates, and the colours of charts in them.

Charts are drawn with plain colours, so that a picture file needs no page. Inside a page those
colours become the stylesheet's, which has a light and a dark value for each.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources
from typing import Any

from tacit.guarantee import Guarantee, Unprotected
from tacit.system.extras import needs

needs("charts", "jinja2", what="a page")

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined  # noqa: E402

FAMILY_COLOURS = {"local": "#2b62a8", "silo": "#2c7a4d", "fleet": "#b0531f", "none": "#6d6a64"}
PROTECTED, NOMINAL, UNPROTECTED = "#2c7a4e", "#8a6100", "#b3261e"
INK, SOFT, RULE, GRID, PAPER = "#222222", "#444444", "#888888", "#e5e5e5", "#fefefe"
# Readable on light and on dark paper.
SERIES_COLOURS = (
    "#c8553d", "#2f7fc1", "#3a9b5c", "#d08a1d", "#8d62b5", "#2b9a97", "#a06a3c", "#d0569b",
    "#7d7d7d", "#7fa335", "#5f8f9b", "#a88bd0",
)  # fmt: skip
# Every colour goes with a shape, so that neither alone tells two series apart.
SERIES_SHAPES = (
    "diamond", "circle", "square", "triangle-up", "cross", "triangle-down", "triangle-right",
    "triangle-left", "square", "diamond", "circle", "cross",
)  # fmt: skip
# The place of a series among colours and shapes, the same in every figure. A name that goes on
# after a comma, a colon or a bracket is the same series: "FedST, default", "ours, noisy".
SERIES_PLACES = {
    "paper": 0, "ours": 1, "ours, preset paper": 10, "ours, preset tuned": 1,
    "DP-SoftShape, preset tuned": 1, "DP-SoftShape, preset paper": 10,
    "rocket": 2, "arsenal": 3, "tsf": 4, "1-nn": 5, "fcn": 6, "inceptiontime": 7, "quant": 8,
    "minirocket": 9, "multirocket-hydra": 11, "QUANT": 8, "MiniRocket": 9, "ceiling": 0,
    "softshape-label": 1, "softshape-place": 10, "softshape-vector": 4, "softshape-shapes": 7,
    "label": 1, "place": 10, "no method can exceed": 0, "majority": 6,
    "FedST": 1, "GlobalST": 2, "LocalST": 3, "LocalS+FedT": 4, "FedS+LocalT": 5, "FedST-F": 10,
    "IG": 3, "F": 1, "FedAvg": 8, "central DP": 4, "this fleet": 1,
    "distributed": 1, "privunit": 3, "dp-fedavg": 4, "CDP-FL": 4,
    '"8"': 3, '"10"': 0, '"100"': 1, 'DP-TimeFL "8"': 3, 'DP-TimeFL "10"': 0,
    'DP-TimeFL "100"': 1, 'CDP-FL "8"': 5, 'CDP-FL "10"': 4, 'CDP-FL "100"': 7,
}  # fmt: skip
_IN_PAGES = {
    **{colour: f"var(--{family},{colour})" for family, colour in FAMILY_COLOURS.items()},
    PROTECTED: f"var(--protected,{PROTECTED})",
    NOMINAL: f"var(--nominal,{NOMINAL})",
    UNPROTECTED: f"var(--unprotected,{UNPROTECTED})",
    INK: f"var(--ink,{INK})",
    SOFT: f"var(--soft,{SOFT})",
    RULE: f"var(--rule,{RULE})",
    GRID: f"var(--grid,{GRID})",
    PAPER: "transparent",
}


def series_looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and shape of each series of a figure: a known one has the same in every figure."""
    places = _series_places(names)
    return {name: (SERIES_COLOURS[places[name]], SERIES_SHAPES[places[name]]) for name in names}


def _series_places(names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        place = _known_place(name)
        if place is not None and place not in found.values():
            found[name] = place
    free = [n for n in range(len(SERIES_COLOURS)) if n not in found.values()]
    others = [name for name in dict.fromkeys(names) if name not in found]
    for n, name in enumerate(others):
        found[name] = free[n] if n < len(free) else n % len(SERIES_COLOURS)
    return found


def _known_place(name: str) -> int | None:
    known = [k for k in SERIES_PLACES if name == k or name.startswith((f"{k},", f"{k}:", f"{k} ("))]
    return SERIES_PLACES[max(known, key=len)] if known else None


def stylesheet() -> str:
    """The text of the stylesheet."""
    return (resources.files("tacit.report") / "assets" / "style.css").read_text(encoding="utf-8")


def in_page(drawn: str) -> str:
    """A chart's text, SVG or JSON, with the stylesheet's colours in place of the plain ones."""
    for plain, named in _IN_PAGES.items():
        drawn = drawn.replace(f'"{plain}"', f'"{named}"')
    return drawn


def promise(guarantee: Guarantee) -> tuple[str, str]:
    """The class of a guarantee's box, and the word that says the same without colour."""
    if not isinstance(guarantee, Unprotected):
        return "protected", "Protected"
    if guarantee.nominal_epsilon is not None:
        return "nominal", "Nominal only"
    return "unprotected", "Unprotected"


def guarantee_html(guarantee: Guarantee) -> str:
    """The box that every result carries."""
    macros: Any = templates().get_template("guarantee.html").module
    return str(macros.guarantee_box(guarantee, *promise(guarantee)))


def render(name: str, **values: Any) -> str:
    """One of the report's templates with these values."""
    return templates().get_template(name).render(**values)


@functools.cache
def templates() -> Environment:
    """The report's templates; text in them is escaped unless it is marked as safe."""
    return environment(PackageLoader("tacit.report"))


def environment(loader: BaseLoader) -> Environment:
    """Templates that escape text, and refuse a value that was forgotten."""
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
