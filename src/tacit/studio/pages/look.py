"""Look: one series beside what leaves it; then attack the published and the sound mechanism."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.studio.datasets import data_argument, data_names
from tacit.studio.jobs import list_jobs, start_job
from tacit.studio.looking import look_at
from tacit.studio.pages.common import json_body, show, text_of, workspace_of
from tacit.studio.pages.train import local_models
from tacit.studio.workspace import Workspace, checked_name

router = APIRouter()


@router.get("/look")
def choose(request: Request) -> HTMLResponse:
    """Choose a model first."""
    return show(request, "look_choose.html", models=local_models(workspace_of(request)))


@router.get("/look/{model}")
def look(request: Request, model: str, data: str = "", index: int = 0) -> HTMLResponse:
    """One test series and its releases."""
    workspace = workspace_of(request)
    name = checked_name(data) if data else _trained_on(workspace, model)
    found = look_at(workspace, checked_name(model), name, index)
    names = data_names(workspace)
    return show(request, "look.html", name=model, data=name, names=names, look=found)


@router.post("/attack")
async def attack(request: Request) -> JSONResponse:
    """Re-identify series from published and from sound releases of a data set."""
    workspace, body = workspace_of(request), await json_body(request)
    name = checked_name(text_of(body, "data"))
    job = start_job(
        workspace,
        f"Attack releases of {name}",
        ["attack", "softshape", "--data", data_argument(workspace, name), "--no-trick"],
        kind="attack",
        data=name,
    )
    return JSONResponse({"job": job.id})


def _trained_on(workspace: Workspace, model: str) -> str:
    """The data set of the job that made this model; else the first that there is."""
    made = (job for job in list_jobs(workspace) if job.about.get("model") == model)
    found = next(made, None)
    return found.about["data"] if found else data_names(workspace)[0]
