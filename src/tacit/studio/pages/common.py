"""What the pages share: the workspace, the templates, and how a result is shown."""

from __future__ import annotations

import functools
import json
import math
import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends
from fastapi.requests import Request
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from tacit._version import VERSION
from tacit.errors import TacitError
from tacit.guarantee import Guarantee, from_dict
from tacit.report.charts import ChartType
from tacit.report.look import environment, guarantee_html
from tacit.report.render import embed
from tacit.studio.collecting import Collectors
from tacit.studio.plans.planner import Planner
from tacit.studio.workspace import Workspace

PAGES = (
    ("/", "Start"),
    ("/data", "Data"),
    ("/plan", "Plan"),
    ("/train", "Train"),
    ("/look", "Look"),
    ("/device", "Device"),
    ("/population", "Population"),
    ("/federation", "Federation"),
    ("/budget", "Budget"),
    ("/arena", "Arena"),
    ("/jobs", "Jobs"),
)
MOST_BODY = 64 * 1024


def workspace_of(request: Request) -> Workspace:
    """The workspace that this studio shows."""
    found: Workspace = request.app.state.workspace
    return found


def collectors_of(request: Request) -> Collectors:
    """The collectors of this studio's workspace."""
    found: Collectors = request.app.state.collectors
    return found


def planner_of(request: Request) -> Planner:
    """The plans that this studio has at work."""
    found: Planner = request.app.state.planner
    return found


def fragment(template: str, **values: Any) -> str:
    """Part of a page from its template."""
    return _templates().get_template(template).render(**values)


def show(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page from its template; the navigation marks where it belongs."""
    here = "/" + request.url.path.split("/")[1]
    text = (
        _templates()
        .get_template(template)
        .render(
            pages=PAGES,
            here=here,
            version=VERSION,
            workspace=workspace_of(request).root.name,
            **values,
        )
    )
    return HTMLResponse(text, status_code=status)


def refusal(request: Request, sentence: str, *, status: int = 422) -> HTMLResponse:
    """The page that says why something was refused."""
    return show(request, "refusal.html", status=status, sentence=sentence)


def figure(chart: ChartType) -> Markup:
    """A chart as part of a page."""
    return Markup(embed(chart))  # its labels are escaped where it is made


def written_page(file: Path, *, policy: str, back: tuple[str, str]) -> HTMLResponse:
    """A page that a command wrote, with a way back to the studio above it."""
    path, words = back
    links = Markup(
        '<nav class="top" aria-label="Studio"><p class="bar"><a class="brand" href="/">Tacit</a>'
        '<a href="{}">{}</a></p></nav>'
    ).format(path, words)
    text = file.read_text(encoding="utf-8").replace("<body>", f"<body>\n{links}", 1)
    return HTMLResponse(text, headers={"Content-Security-Policy": policy})


def guarantee_box(guarantee: Guarantee | dict[str, Any]) -> Markup:
    """A guarantee as part of a page."""
    stated = from_dict(guarantee) if isinstance(guarantee, dict) else guarantee
    return Markup(guarantee_html(stated))


async def json_body(request: Request) -> dict[str, Any]:
    """The small JSON object that a page sent."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # a form of another page can send any other kind
        raise TacitError(f"a page sends JSON here, got {kind or 'no content type'!r}; reload it.")
    body = await limited_body(request, MOST_BODY)
    try:
        found = json.loads(body)
    except ValueError as error:
        raise TacitError("the page sent something that is not JSON; reload it.") from error
    if not isinstance(found, dict):
        raise TacitError("the page sent something that is not a JSON object; reload it.")
    return found


# A handler that takes one is run in a thread: what it starts may take a while.
Body = Annotated[dict[str, Any], Depends(json_body)]


async def limited_body(request: Request, most: int) -> bytes:
    """The body of a request, refused as soon as it is longer than `most`."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TacitError(f"what was sent is larger than {most // 1024} kB; send less at once.")
        parts.append(part)
    return b"".join(parts)


def text_of(body: dict[str, Any], key: str, default: str = "") -> str:
    """A text field of what the page sent."""
    value = body.get(key, default)
    if not isinstance(value, str):
        raise TacitError(f"{key} must be a text, got {value!r}.")
    return value.strip()


def number_of(body: dict[str, Any], key: str) -> float:
    """A finite number that the page sent as text or number."""
    try:
        found = float(body.get(key, ""))
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise TacitError(f"{key} must be a number, got {body.get(key)!r}.")
    return found


def whole_of(body: dict[str, Any], key: str) -> int:
    """A whole number that the page sent."""
    found = number_of(body, key)
    if found != int(found):
        raise TacitError(f"{key} must be a whole number, got {found!r}.")
    return int(found)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400.0 else f"{seconds / 3600:.1f} h"


@functools.cache
def _templates() -> Environment:
    loader = ChoiceLoader([PackageLoader("tacit.studio"), PackageLoader("tacit.report")])
    found = environment(loader)
    found.filters["percent"] = lambda value: f"{100 * value:.1f} %"
    found.filters["duration"] = duration
    found.filters["moment"] = _moment
    found.filters["megabytes"] = lambda value: f"{value:,.{int(value < 10)}f} MB"
    found.globals["figure"] = figure
    found.globals["guarantee_box"] = guarantee_box
    return found


def _moment(at: float) -> str:
    """Day and time in one piece, however narrow its column."""
    return time.strftime("%d %b, %H:%M", time.localtime(at)).replace(" ", "\N{NO-BREAK SPACE}")
