"""Device: open a device of a model in this browser; its page is the collector's own."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.studio.collecting import local_models
from tacit.studio.pages.common import collectors_of, show, workspace_of
from tacit.studio.workspace import checked_name

router = APIRouter()


@router.get("/device")
def choose(request: Request) -> HTMLResponse:
    """Choose a model."""
    return show(request, "device.html", models=local_models(workspace_of(request)))


@router.post("/device/{model}")
def open_device(request: Request, model: str) -> JSONResponse:
    """Make a one-time code and say where the device's page is; a fragment is never sent."""
    name = checked_name(model)
    workspace_of(request).existing("models", name)
    code = collectors_of(request).new_code(name)
    return JSONResponse({"path": f"/collect/{quote(name)}/device#{code}"})
