"""Data: drop a file, see what the importer understood, correct it, look at the series."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.data import load_dataset
from tacit.errors import TacitError
from tacit.studio.datasets import MOST_CLASSES, class_charts, data_argument, data_names
from tacit.studio.jobs import start_job
from tacit.studio.pages.common import json_body, show, text_of, workspace_of
from tacit.studio.workspace import checked_name

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
    uploads = workspace.names("uploads")
    return show(request, "data.html", names=data_names(workspace), uploads=uploads)


@router.put("/data/upload/{name}")
async def upload(request: Request, name: str) -> JSONResponse:
    """Store a dropped file; it is complete or it is not there."""
    place = workspace_of(request).place("uploads", name)
    part = place.with_name(f"{place.name}.part")
    size = 0
    try:
        with part.open("wb") as file:
            async for piece in request.stream():
                size += len(piece)
                if size > MOST_UPLOAD:
                    raise TacitError(
                        f"{name} is larger than {MOST_UPLOAD // 1024**3} GB; import it with "
                        "'tacit data import' instead."
                    )
                file.write(piece)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
    return JSONResponse({"name": place.name, "bytes": size})


@router.get("/data/import/{name}")
def correct(request: Request, name: str) -> HTMLResponse:
    """What to say about a file before it is imported."""
    workspace_of(request).existing("uploads", name)
    return show(request, "import.html", name=name)


@router.post("/data/import/{name}")
async def start_import(request: Request, name: str) -> JSONResponse:
    """Import it with what the page says; what is not said is guessed."""
    workspace = workspace_of(request)
    source = workspace.existing("uploads", name)
    body = await json_body(request)
    out = workspace.free("data", source.stem, ".npz")
    said = [(key, text_of(body, key)) for key in CORRECTIONS]
    options = [word for key, value in said if value for word in (f"--{key}", value)]
    job = start_job(
        workspace,
        f"Import {name}",
        ["data", "import", str(source), "--out", str(out), *options],
        kind="import",
        data=out.stem,
        source=name,
    )
    return JSONResponse({"job": job.id})


@router.get("/data/{name}")
def one(request: Request, name: str, channel: int = 0) -> HTMLResponse:
    """Series per class, and what is in the file."""
    workspace = workspace_of(request)
    found = load_dataset(data_argument(workspace, checked_name(name)))
    return show(
        request,
        "dataset.html",
        name=name,
        data=found,
        summary=found.summary(),
        channel=channel,
        charts=class_charts(found, channel=channel),
        more=max(0, len(found.classes) - MOST_CLASSES),
    )
