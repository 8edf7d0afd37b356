"""Plan: what one epsilon buys and costs, before anything is trained."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse

from tacit.report.local_charts import budget_figure
from tacit.studio.datasets import data_names
from tacit.studio.pages.common import show, workspace_of
from tacit.studio.planning import Plan, plan_for
from tacit.studio.workspace import checked_name

router = APIRouter()


@router.get("/plan")
def choose(request: Request) -> HTMLResponse:
    """Choose a data set first."""
    return show(request, "plan_choose.html", names=data_names(workspace_of(request)))


@router.get("/plan/{name}")
def plan(request: Request, name: str) -> HTMLResponse:
    """The slider for one data set."""
    found = plan_for(workspace_of(request), checked_name(name))
    return show(request, "plan.html", name=name, plan=found, chart=_curve(found))


def _curve(plan: Plan) -> object:
    return budget_figure(
        [row["epsilon"] for row in plan.rows],
        {"label release, expected": [row["expected"] for row in plan.rows]},
        ceiling=[row["ceiling"] for row in plan.rows],
        floor=plan.commonest,
        title="Expected accuracy against the budget",
    )
