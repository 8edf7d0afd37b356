"""Start: who may see what? Three questions lead to one of the three trust models."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse

from tacit.studio.advice import plain_advice
from tacit.studio.jobs import list_jobs
from tacit.studio.pages.common import show, workspace_of

router = APIRouter()


@router.get("/")
def start(request: Request) -> HTMLResponse:
    """The front page."""
    workspace = workspace_of(request)
    return show(
        request,
        "start.html",
        advice=plain_advice(),
        data=workspace.names("data", "*.npz"),
        models=[name for name in workspace.names("models") if not name.endswith(".json")],
        jobs=list_jobs(workspace)[:5],
    )
