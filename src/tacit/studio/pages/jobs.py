"""Jobs: what runs and what ran, live; cancel, resume, and the command for the same result."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

from tacit.studio.jobs import cancel_job, list_jobs, load_job, resume_job
from tacit.studio.pages.common import show, workspace_of
from tacit.studio.pages.live import event_stream
from tacit.studio.results import summary_of

router = APIRouter()


@router.get("/jobs")
def jobs(request: Request) -> HTMLResponse:
    """All jobs, the newest first."""
    return show(request, "jobs.html", jobs=list_jobs(workspace_of(request)))


@router.get("/jobs/{name}")
def job(request: Request, name: str) -> HTMLResponse:
    """One job: live while it runs, its result when it is done."""
    found = load_job(workspace_of(request), name)
    result = found.result()
    summary = None if result is None else summary_of(found, result)
    return show(request, "job.html", job=found, progress=found.progress(), summary=summary)


@router.get("/jobs/{name}/events")
async def events(request: Request, name: str) -> StreamingResponse:
    """Progress as server-sent events until the job has ended."""
    workspace = workspace_of(request)
    load_job(workspace, name)

    def said() -> tuple[bool, dict[str, Any]]:
        found = load_job(workspace, name)
        return found.state != "running", {"state": found.state, **found.progress()}

    return event_stream(request, said)


@router.post("/jobs/{name}/cancel")
def cancel(request: Request, name: str) -> JSONResponse:
    """End it."""
    return JSONResponse({"state": cancel_job(workspace_of(request), name).state})


@router.post("/jobs/{name}/resume")
def resume(request: Request, name: str) -> JSONResponse:
    """Run its command again."""
    return JSONResponse({"state": resume_job(workspace_of(request), name).state})
