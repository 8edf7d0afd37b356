"""Plan: what one epsilon buys and costs, before anything is trained."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, StreamingResponse

from tacit.report.charts import FAMILY_COLOURS, ChartType, alt, on
from tacit.report.local_charts import budget_figure
from tacit.studio.datasets import data_argument, trainable_names
from tacit.studio.pages.common import planner_of, show, workspace_of
from tacit.studio.pages.live import event_stream
from tacit.studio.plans.planning import Plan
from tacit.studio.workspace import checked_name

router = APIRouter()
_FIRST = 2.0
_WAITING = "a quick classifier is held out series by series"


@router.get("/plan")
def choose(request: Request) -> HTMLResponse:
    """Choose a data set first."""
    return show(request, "plan_choose.html", names=trainable_names(workspace_of(request)))


@router.get("/plan/{name}")
def plan(request: Request, name: str) -> HTMLResponse:
    """The slider for one data set; the first time a page that waits for it."""
    workspace = workspace_of(request)
    data_argument(workspace, checked_name(name))
    found = planner_of(request).plan(name)
    if found is None:
        return show(request, "plan_wait.html", name=name)
    start = [row["epsilon"] for row in found.rows].index(_FIRST)
    return show(request, "plan.html", name=name, plan=found, chart=curve(found), start=start)


@router.get("/plan/{name}/events")
async def events(request: Request, name: str) -> StreamingResponse:
    """Say when it is there."""
    planner = planner_of(request)

    def said() -> tuple[bool, dict[str, Any]]:
        state = planner.state(name)
        return state != "running", {"state": state, "done": 0, "total": 0, "message": _WAITING}

    return event_stream(request, said)


def curve(plan: Plan) -> ChartType:
    """Accuracy by budget, with a line at the one that is chosen: the signal `chosen`."""
    epsilons = [row["epsilon"] for row in plan.rows]
    chart = budget_figure(
        epsilons,
        {"label release, expected": [row["expected"] for row in plan.rows]},
        ceiling=[row["ceiling"] for row in plan.rows],
        floor=plan.commonest,
        title="Expected accuracy against the budget",
    )
    here = on([{"at": epsilon} for epsilon in epsilons]).transform_filter("datum.at == chosen")
    side = alt.ExprRef(f"chosen > {_FIRST} ? 'right' : 'left'")
    beside = alt.ExprRef(f"chosen > {_FIRST} ? -5 : 5")
    colour = FAMILY_COLOURS["local"]
    words = here.mark_text(align=side, dx=beside, y=222, baseline="bottom", color=colour)
    chart.layer = [
        *chart.layer,
        here.mark_rule(color=colour, strokeWidth=2).encode(x="at:Q"),
        words.encode(x="at:Q", text=alt.TextValue("your budget")),
    ]
    chart.params = [alt.VariableParameter(name="chosen", value=_FIRST)]
    return chart
