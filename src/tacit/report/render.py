"""From charts to files: SVG, PNG, and parts of a page, without a browser and without a network."""

from __future__ import annotations

import functools
import html
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from tacit.report.look import GRID, INK, PAPER, RULE, in_page
from tacit.system.files import write_atomic

if TYPE_CHECKING:
    from tacit.report.charts import ChartType

# Arial's measures are those of Liberation Sans, which vl-convert brings along: text that it has
# measured has the same width on a reader's screen.
_FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
_LOOK = {
    "aria": False,  # only dots and bars, whose marks ask for it, get a label
    "background": PAPER,
    "font": _FONT,
    "view": {"stroke": None},
    "title": {"fontWeight": "normal", "color": INK},
    "axis": {
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 6,
        "labelColor": INK,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": RULE,
        "tickColor": RULE,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "text": {"fontSize": 11, "color": INK},
}
_SVG = "http://www.w3.org/2000/svg"
# The font is set once, on the root; the rest helps Vega's own event handling and styling.
_UNUSED = ("class", "role", "aria-roledescription", "aria-hidden", "pointer-events", "font-family")
_START = """
globalThis.drawChart = (place, specification) =>
  vegaEmbed(place, specification, {mode: "vega-lite", renderer: "svg", actions: false})
    .then((made) => { place.view = made.view; place.dispatchEvent(new Event("drawn")); });
for (const figure of document.querySelectorAll("figure.chart")) {
  const data = figure.querySelector("script");
  if (data) { drawChart(figure.querySelector("div"), JSON.parse(data.textContent)); }
}
document.dispatchEvent(new Event("charts-ready"));
"""

ElementTree.register_namespace("", _SVG)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn chart: part of a page without scripts, and the content of a picture file."""

    title: str
    svg: str


def draw(chart: ChartType) -> Picture:
    """Draw a chart once, for a page and for files."""
    title = _title_of(chart)
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(_specification(chart), allowed_base_urls=[])
    return Picture(title, _slim(svg, title))


def to_svg(chart: ChartType) -> str:
    """The chart as SVG; its dots and bars say what they are when pointed at."""
    return draw(chart).svg


def embed(chart: ChartType) -> str:
    """The chart as part of a page that ends with `page_script()`, which draws it."""
    # A label "</script>" must not end the element that holds the specification.
    data = json.dumps(specification(chart), allow_nan=False).replace("<", "\\u003c")
    return (
        f'<figure class="chart" aria-label="{html.escape(_title_of(chart))}">'
        f'<script type="application/json">{data}</script><div></div></figure>'
    )


def page_script() -> str:
    """The script that draws the embedded charts. It holds the Vega library: once a page will do."""
    harmless = vega_library().replace("</script", "<\\/script")
    return f'<script type="module">{harmless}</script>'


def library_mark() -> str:
    """What changes when the lines that `vega_library` adds to the library do."""
    return f"{zlib.crc32(_START.encode()):08x}"


@functools.cache
def vega_library() -> str:
    """The Vega library as one module that draws a page's charts when it is loaded."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(_START)
    return bundle


def specification(chart: ChartType) -> dict[str, Any]:
    """A chart for a page that draws it later, in the page's colours."""
    plain: dict[str, Any] = json.loads(in_page(json.dumps(_specification(chart), allow_nan=False)))
    return plain


def write_pictures(folder: Path, pictures: Sequence[Picture], *, png: bool = False) -> Path:
    """One file per picture, numbered in the order given; those of an earlier call are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("[0-9][0-9]-*.svg"), *folder.glob("[0-9][0-9]-*.png")):
        old.unlink()
    for place, picture in enumerate(pictures, start=1):
        path = folder / f"{place:02d}-{_slug(picture.title)}.svg"
        write_atomic(path, picture.svg.encode())
        if png:
            write_atomic(path.with_suffix(".png"), _rasterise(picture.svg))
    return folder


def _title_of(chart: ChartType) -> str:
    from tacit.report.charts import title_of  # not above: pages without charts need no Altair

    return title_of(chart)


def _specification(chart: ChartType) -> dict[str, Any]:
    return {**chart.to_dict(), "config": _LOOK}


def _rasterise(svg: str) -> bytes:
    import vl_convert

    png: bytes = vl_convert.svg_to_png(svg, scale=2.0)
    return png


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60]


def _slim(svg: str, title: str) -> str:
    """Turn labels into tooltips, and drop what only Vega uses: more than half of the text."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.get("class") in {"background", "foreground"} and not _is_seen(child):
                parent.remove(child)
    for element in list(root.iter()):
        label = element.attrib.pop("aria-label", "")
        if label and element.tag == f"{{{_SVG}}}path":
            ElementTree.SubElement(element, f"{{{_SVG}}}title").text = label
        for name in _UNUSED:
            element.attrib.pop(name, None)
        for name in {"d", "transform"} & element.attrib.keys():
            element.attrib[name] = re.sub(r"(\.\d\d)\d+", r"\1", element.attrib[name])
    root.attrib |= {"font-family": _FONT, "role": "img", "aria-label": title}
    return ElementTree.tostring(root, encoding="unicode")


def _is_seen(element: ElementTree.Element) -> bool:
    return bool(element.get("fill") or element.get("stroke"))
