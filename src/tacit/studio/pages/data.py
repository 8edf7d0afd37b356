"""Data: drop a file, see what the importer understood, correct it, look at the series."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.errors import TacitError
from tacit.studio.datasets import (
    MOST_CLASSES,
    class_charts,
    data_names,
    load_named,
    near_names,
    series_chart,
    unlabelled_series,
)
from tacit.studio.dry_runs import dry_run, import_options, size_of
from tacit.studio.jobs import list_jobs, start_job
from tacit.studio.pages.common import Body, show, text_of, workspace_of
from tacit.studio.pages.removal import DAYS_KEPT, remove_old_uploads
from tacit.studio.previews import ROLES, preview_of
from tacit.studio.workspace import Workspace, checked_name
from tacit.system.files import written_whole

router = APIRouter()
MOST_UPLOAD = 2 * 1024**3
# What a page may say about a source; each is the option of 'tacit data import' with that name.
CORRECTIONS = (
    "format", "window", "stride", "rate", "source-rate", "channels", "label", "subject", "series",
    "time", "time-unit", "form", "ignore", "array", "axes", "classes", "cut", "missing",
)  # fmt: skip


@router.get("/data")
def data(request: Request) -> HTMLResponse:
    """What is there, and where to drop a file."""
    workspace = workspace_of(request)
    remove_old_uploads(workspace)
    near = near_names(workspace)
    uploads = workspace.names("uploads")
    done = _imported(workspace)
    return show(
        request,
        "data.html",
        names=near,
        others=data_names(workspace)[len(near) :],
        uploads=[name for name in uploads if name not in done],
        imported=[name for name in uploads if name in done],
        days=DAYS_KEPT,
    )


def _imported(workspace: Workspace) -> set[str]:
    """Dropped files that an import has read since."""
    jobs = [job for job in list_jobs(workspace) if job.about.get("kind") == "import"]
    found = set()
    for job in jobs:
        source = workspace.place("uploads", job.about["source"])
        if job.state == "done" and source.exists() and source.stat().st_mtime <= job.started:
            found.add(source.name)
    return found


@router.post("/data/uploads")
def new_folder(request: Request, body: Body) -> JSONResponse:
    """A folder for files that belong together, as a record's header and samples do."""
    place = workspace_of(request).free("uploads", Path(text_of(body, "name")).stem)
    place.mkdir()
    return JSONResponse({"name": place.name})


@router.put("/data/upload/{name}")
async def upload(request: Request, name: str) -> JSONResponse:
    """Store a dropped file; it is complete or it is not there."""
    return await _store(request, workspace_of(request).place("uploads", name))


@router.put("/data/upload/{folder}/{name}")
async def upload_into(request: Request, folder: str, name: str) -> JSONResponse:
    """Store one of several files that belong together."""
    above = workspace_of(request).existing("uploads", folder)
    if not above.is_dir():
        raise TacitError(f"{folder} is a file, not a folder of files; drop them all together.")
    place = above / checked_name(name)
    return await _store(request, place, before=size_of(place.parent))


async def _store(request: Request, place: Path, *, before: int = 0) -> JSONResponse:
    name = place.name
    if place.is_dir():
        raise TacitError(f"{name} is the name of a folder here; rename the file.")
    _check_size(name, before + int(request.headers.get("content-length") or 0))
    size = 0
    with written_whole(place, mode=0o600) as file:
        async for piece in request.stream():
            size += len(piece)
            _check_size(name, before + size)
            file.write(piece)
    return JSONResponse({"name": name, "bytes": size})


def _check_size(name: str, size: int) -> None:
    if size > MOST_UPLOAD:
        raise TacitError(
            f"{name} is larger than {MOST_UPLOAD // 1024**3} GB; import it with "
            "'tacit data import' instead."
        )


@router.get("/data/import/{name}")
def correct(request: Request, name: str) -> HTMLResponse:
    """How a file would be read with what is said in the address, and what to say instead."""
    source, said = workspace_of(request).existing("uploads", name), _said(request)
    preview = preview_of(source, said)
    return show(
        request,
        "import.html",
        name=name,
        said=said,
        preview=preview,
        roles=ROLES,
        files=sorted(path.name for path in source.iterdir()) if source.is_dir() else [],
    )


@router.get("/data/import/{name}/tried")
def tried(request: Request, name: str) -> JSONResponse:
    """What the importer would make of it; a dry run takes seconds, so the page asks for it."""
    source = workspace_of(request).existing("uploads", name)
    return JSONResponse(dry_run(source, _said(request)))


def _said(request: Request) -> dict[str, str]:
    return {key: value for key in CORRECTIONS if (value := request.query_params.get(key))}


@router.post("/data/import/{name}")
def start_import(request: Request, name: str, body: Body) -> JSONResponse:
    """Import it with what the page says; what is not said is guessed."""
    workspace = workspace_of(request)
    source = workspace.existing("uploads", name)
    out = workspace.free("data", source.stem, ".npz")
    said = {key: value for key in CORRECTIONS if (value := text_of(body, key))}
    job = start_job(
        workspace,
        f"Import {name}",
        ["data", "import", str(source), "--out", str(out), *import_options(said)],
        kind="import",
        data=out.stem,
        source=name,
        said=urlencode(said),
    )
    return JSONResponse({"job": job.id})


@router.get("/data/{name}")
def one(request: Request, name: str, channel: int = 0) -> HTMLResponse:
    """Series per class, and what is in the file."""
    workspace = workspace_of(request)
    plain = unlabelled_series(workspace, checked_name(name))
    if plain is not None:
        chart = series_chart(plain, channel=channel)
        shape = plain.shape
        return show(request, "unlabelled.html", name=name, shape=shape, chart=chart, own=True)
    found = load_named(workspace, name)
    return show(
        request,
        "dataset.html",
        name=name,
        data=found,
        own=workspace.place("data", f"{name}.npz").is_file(),
        summary=found.summary(),
        channel=channel,
        charts=class_charts(found, channel=channel),
        more=max(0, len(found.classes) - MOST_CLASSES),
    )
