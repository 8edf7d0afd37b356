"""Population: what a collector has counted, with intervals; devices as numbers only."""

from __future__ import annotations

import math
from typing import Any

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse

from tacit.errors import TacitError
from tacit.guarantee import rounded_down, rounded_up
from tacit.local.collector.counts import PERIODS, windows_per_device
from tacit.local.collector.service import Collector
from tacit.local.release import SYMBOL_KINDS
from tacit.report.collector_pages import dashboard_body
from tacit.studio.collecting import budgets_left, store_names
from tacit.studio.pages.common import collectors_of, fragment, show, workspace_of
from tacit.studio.workspace import checked_name

router = APIRouter()
_SHOWN = 60
_ASKED: dict[str, Any] = {"per_group": False, "of": "device_labels", "level": 0.95}


@router.get("/population")
def choose(request: Request) -> HTMLResponse:
    """All stores in the workspace."""
    return show(request, "population_choose.html", stores=store_names(workspace_of(request)))


@router.get("/population/{store}")
def population(request: Request, store: str, by: str = "day", budget: str = "") -> HTMLResponse:
    """Shares over time, counts of devices, and what they have left of a budget."""
    most = _budget(budget)
    workspace_of(request).existing("stores", f"{checked_name(store)}.db")
    collector = collectors_of(request).of(store)
    shares = overall = None
    if collector.model.head.kind in SYMBOL_KINDS:
        period = next((known for known in PERIODS if known == by), None)
        if period is None:
            raise TacitError(f"by must be one of {', '.join(PERIODS)}, got {by!r}.")
        shares = collector.prevalence(by=period, last=_SHOWN, **_ASKED)
        overall = collector.prevalence(by="all", last=None, **_ASKED)
    more = fragment("population_more.html", by=by, periods=PERIODS, **_left(collector, most))
    body = dashboard_body(
        about=collector.about(), totals=collector.totals(), shares=shares, overall=overall,
        more=more,
    )  # fmt: skip
    return show(request, "population.html", name=store, body=body)


def _budget(said: str) -> float:
    """What a device may spend; no number means that nobody said it."""
    try:
        return float(said) if said.strip() else math.inf
    except ValueError as error:
        raise TacitError(f"budget must be a number, got {said!r}.") from error


def _left(collector: Collector, budget: float) -> dict[str, Any]:
    """What the busiest device spent and, of a budget if one is said, has left."""
    epsilon = float(collector.model.head.epsilon)
    found = budgets_left(windows_per_device(collector.store), epsilon=epsilon, budget=budget)
    return {
        "budget": f"{budget:g}" if math.isfinite(budget) else "",
        "most": found["most"],
        "spent": rounded_up(found["most"] * epsilon),
        "left": rounded_down(found["left"]) if math.isfinite(budget) else "",
        "through": found["through"],
    }
