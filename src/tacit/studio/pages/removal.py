"""Remove what is in the workspace for good: dropped files, data sets, models and ended jobs.

Ledgers and stores are not removed here: what was spent stays spent.
"""

from __future__ import annotations

import math
import secrets
import shutil
import time
from pathlib import Path

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import JSONResponse

from tacit.errors import TacitError
from tacit.studio.jobs import list_jobs
from tacit.studio.pages.common import Body, text_of, workspace_of
from tacit.studio.workspace import Workspace
from tacit.system.files import move_synced

router = APIRouter()
ROOMS = ("uploads", "data", "models", "jobs")
DAYS_KEPT = 7  # of a dropped file: it is raw, and who dropped it has it elsewhere
_DAY_SECONDS = 86_400.0


@router.post("/remove/{room}/{name}")
def remove(request: Request, room: str, name: str, body: Body) -> JSONResponse:
    """Remove one; the page repeats its name, so that no other request removes anything."""
    if room not in ROOMS or text_of(body, "name") != name:
        raise TacitError(f"{name!r} of {room!r} is not removed like this; use its page.")
    workspace = workspace_of(request)
    place = workspace.existing(room, name)
    _check_unused(workspace, place)
    remove_place(place)
    return JSONResponse({"removed": name})


def remove_old_uploads(workspace: Workspace, *, now: float | None = None) -> list[str]:
    """Remove dropped files after `DAYS_KEPT` days, but none while a job may be reading it."""
    for room in ROOMS:  # what a studio that was killed had put aside
        for left in (workspace.root / room).glob(".removed.*"):
            _erase(left)
    limit = (time.time() if now is None else now) - DAYS_KEPT * _DAY_SECONDS
    places = [workspace.place("uploads", name) for name in workspace.names("uploads")]
    old = [place for place in places if _newest(place) < limit]
    if not old or any(job.state == "running" for job in list_jobs(workspace)):
        return []
    for place in old:
        remove_place(place)
    return [place.name for place in old]


def remove_place(place: Path) -> None:
    """A file or a folder; it is out of sight at once, whatever happens on the way."""
    aside = place.with_name(f".removed.{place.name}.{secrets.token_hex(4)}")
    try:
        move_synced(place, aside)
    except FileNotFoundError:  # somebody else has just removed it
        return
    _erase(aside)


def _erase(aside: Path) -> None:
    if aside.is_dir():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        aside.unlink(missing_ok=True)


def _check_unused(workspace: Workspace, place: Path) -> None:
    names = {place.name, place.stem}
    for job in list_jobs(workspace):
        if job.state == "running" and names & {job.id, *job.about.values()}:
            raise TacitError(f"{job.title!r} is running and uses {place.name}; cancel it first.")


def _newest(place: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in (place, *place.rglob("*")))
    except FileNotFoundError:  # a file of it is just being written, or removed
        return math.inf
