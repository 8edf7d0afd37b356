"""Jobs: what runs and what ran, live; cancel, resume, and the command for the same result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse

from tacit.studio.jobs import Job, cancel_job, list_jobs, load_job, resume_job
from tacit.studio.pages.common import show, workspace_of
from tacit.studio.results import summary_of
from tacit.studio.workspace import Workspace

router = APIRouter()
_PAUSE_SECONDS = 0.25


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
    return StreamingResponse(_watch(request, workspace, name), media_type="text/event-stream")


@router.post("/jobs/{name}/cancel")
def cancel(request: Request, name: str) -> JSONResponse:
    """End it."""
    return JSONResponse({"state": cancel_job(workspace_of(request), name).state})


@router.post("/jobs/{name}/resume")
def resume(request: Request, name: str) -> JSONResponse:
    """Run its command again."""
    return JSONResponse({"state": resume_job(workspace_of(request), name).state})


async def _watch(request: Request, workspace: Workspace, name: str) -> AsyncIterator[str]:
    last = ""
    while not await request.is_disconnected():
        found = await asyncio.to_thread(load_job, workspace, name)
        said = _event(found)
        if said != last:
            yield f"data: {said}\n\n"
            last = said
        if found.state != "running":
            return
        await asyncio.sleep(_PAUSE_SECONDS)


def _event(found: Job) -> str:
    return json.dumps({"state": found.state, **found.progress()})
