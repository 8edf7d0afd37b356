"""Train: choose data and budget, watch it, and end with a model and its guarantee."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.errors import TacitError, check_epsilon
from tacit.studio.datasets import data_argument, data_names
from tacit.studio.jobs import start_job
from tacit.studio.pages.common import json_body, number_of, show, text_of, workspace_of
from tacit.studio.workspace import Workspace, checked_name

router = APIRouter()
METHODS = ("softshape", "fedst", "timefl")


@router.get("/train")
def train(request: Request, data: str = "", epsilon: str = "2") -> HTMLResponse:
    """The form."""
    names = data_names(workspace_of(request))
    return show(request, "train.html", names=names, chosen=data or names[0], epsilon=epsilon)


@router.post("/train")
async def start(request: Request) -> JSONResponse:
    """Start the training that the page describes."""
    workspace, body = workspace_of(request), await json_body(request)
    method, name = text_of(body, "method"), checked_name(text_of(body, "data"))
    if method not in METHODS:
        raise TacitError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
    model = workspace.free("models", f"{name}-{method}")
    arguments = ["train", method, "--data", data_argument(workspace, name)]
    arguments += {"softshape": _local, "fedst": _silo, "timefl": _fleet}[method](body)
    if method != "fedst":
        arguments += ["--out", str(model)]
    job = start_job(
        workspace,
        _TITLES[method].format(name),
        arguments,
        kind="train",
        method=method,
        data=name,
        model=model.name,
    )
    return JSONResponse({"job": job.id})


_TITLES = {
    "softshape": "Local releases of {}",
    "fedst": "Silo on {}",
    "timefl": "Fleet on {}",
}


def _local(body: dict[str, Any]) -> list[str]:
    release = text_of(body, "release", "label")
    if release not in ("label", "place"):
        raise TacitError(f"release must be label or place, got {release!r}.")
    return ["--epsilon", _epsilon(body), "--release", release]


def _silo(body: dict[str, Any]) -> list[str]:
    return ["--parties", _whole(body, "parties"), "--candidates", _whole(body, "candidates"),
            "--shapelets", _whole(body, "shapelets")]  # fmt: skip


def _fleet(body: dict[str, Any]) -> list[str]:
    return ["--epsilon", _epsilon(body), "--delta", "1e-5", "--clients", _whole(body, "clients"),
            "--mechanism", "distributed"]  # fmt: skip


def _epsilon(body: dict[str, Any]) -> str:
    epsilon = number_of(body, "epsilon")
    check_epsilon(epsilon)
    return repr(epsilon)


def _whole(body: dict[str, Any], key: str) -> str:
    value = number_of(body, key)
    if value != int(value):
        raise TacitError(f"{key} must be a whole number, got {value!r}.")
    return str(int(value))


def local_models(workspace: Workspace) -> list[str]:
    """Bundles in the workspace that make releases."""
    names = workspace.names("models")
    return [name for name in names if (workspace.root / "models" / name / "model.tacit").is_file()]
