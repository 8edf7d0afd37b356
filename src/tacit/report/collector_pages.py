"""The collector's pages in the one look: its dashboard, and a device that runs in a browser.

The dashboard has no script. The device's page classifies and randomises a window where it is; what
it sends is a release, and before the first one its own public key.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

from markupsafe import Markup

from tacit._version import VERSION
from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.guarantee import from_dict, rounded_up
from tacit.local.collector.pages import File, Pages
from tacit.local.exports.golden import golden_series
from tacit.local.exports.portable import PortableModel, portable_model
from tacit.local.exports.web import MODULE, web_files
from tacit.local.model import LocalModel
from tacit.report.look import guarantee_html, render, stylesheet
from tacit.report.share_chart import share_chart

Examples = Sequence[tuple[str, Floats]]
Links = Sequence[tuple[str, str]]  # where to, and what it is called
_NETWORK = "This page talks to its own address and to nobody else."


def collector_pages(model: LocalModel, *, examples: Examples = (), onward: Links = ()) -> Pages:
    """The pages for one model; without `examples` the device offers made-up windows.

    `onward` is shown once a release was counted.
    """
    device = device_files(model, examples=examples, onward=onward)
    return Pages(dashboard=dashboard, device=device)


def dashboard(
    *,
    about: dict[str, Any],
    totals: dict[str, Any],
    shares: dict[str, Any] | None,
    overall: dict[str, Any] | None,
    groups: dict[str, Any] | None = None,
) -> str:
    """The dashboard as one page."""
    body = dashboard_body(about=about, totals=totals, shares=shares, overall=overall, groups=groups)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return _document("Collected releases", body, policy=policy)


def dashboard_body(
    *,
    about: dict[str, Any],
    totals: dict[str, Any],
    shares: dict[str, Any] | None,
    overall: dict[str, Any] | None,
    groups: dict[str, Any] | None = None,
    more: str = "",
) -> Markup:
    """What the collector's own page and the studio's show; `more` follows the figures.

    `groups` are the shares of each group over all time.
    """
    stated = from_dict(about["guarantee"])
    epsilon = about["guarantee"].get("epsilon")
    return Markup(
        render(
            "dashboard.html",
            headline=_headline(overall),
            about=about,
            totals=totals,
            shares=shares,
            groups=groups,
            epsilon=None if epsilon is None else rounded_up(epsilon),
            chart=Markup(share_chart(shares)) if shares and shares["periods"] else "",
            guarantee=Markup(guarantee_html(stated)),
            more=Markup(more),
        )
    )


def device_files(
    model: LocalModel, *, examples: Examples = (), onward: Links = ()
) -> dict[str, File]:
    """The files below `/device`; a model that browsers cannot run gets a page that says so."""
    try:
        portable = portable_model(model, format="web")
    except TacitError as error:
        body = render("device_refused.html", sentence=str(error))
        return {"": File("text/html", _document("No device here", body, policy=_policy()))}
    offered = examples or _made_up(portable)
    plain = [{"name": name, "series": series.tolist()} for name, series in offered]
    script = resources.files("tacit.report") / "assets" / "device.js"
    body = render(
        "device.html", model=model, guarantee=Markup(guarantee_html(model.guarantee)),
        epsilon=rounded_up(portable.epsilon), onward=onward,
        odds=rounded_up(math.exp(portable.epsilon), digits=3),
    )  # fmt: skip
    page = _document("A device in this browser", body, policy=_policy(), network=_NETWORK)
    return {
        "": File("text/html", page),
        "page.js": File("text/javascript", script.read_text(encoding="utf-8")),
        "device.mjs": File("text/javascript", web_files(portable, ())[MODULE]),
        "examples.json": File("application/json", json.dumps(plain, allow_nan=False)),
    }


def _made_up(portable: PortableModel) -> Examples:
    return [(f"made-up window {n + 1}", series) for n, series in enumerate(golden_series(portable))]


def _policy() -> str:
    """The policy of the response header, repeated in the page for those who save it as a file."""
    return "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'"


def _headline(overall: dict[str, Any] | None) -> str:
    """The commonest class, in words that hold."""
    if not overall or not overall["periods"]:
        return "Collected releases"
    (one,) = overall["periods"]
    top = max(range(len(one["share"])), key=lambda j: one["share"][j])
    low, high = math.floor(100 * one["low"][top]), math.ceil(100 * one["high"][top])
    name = overall["classes"][top]
    if overall["of"] != "device_labels":
        return f"{low} to {high} % of the windows are of class {name}"
    return f"Devices call {low} to {high} % of their windows class {name}"


def _document(title: str, body: str, *, policy: str, **more: str) -> str:
    return render(
        "document.html",
        **more,
        title=title,
        body=body,
        script="",
        style=stylesheet(),
        policy=policy,
        version=VERSION,
    )
