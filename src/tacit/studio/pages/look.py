"""Look: one series beside what leaves it; then attack the published and the sound mechanism."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.guarantee import rounded_up
from tacit.local.release import SYMBOL_KINDS
from tacit.studio.collecting import local_models
from tacit.studio.datasets import data_argument, data_names
from tacit.studio.jobs import start_job
from tacit.studio.looking import look_at
from tacit.studio.pages.common import Body, show, text_of, whole_of, workspace_of
from tacit.studio.workspace import checked_name

router = APIRouter()


@router.get("/look")
def choose(request: Request) -> HTMLResponse:
    """Choose a model first."""
    return show(request, "look_choose.html", models=local_models(workspace_of(request)))


@router.get("/look/{model}")
def look(request: Request, model: str, data: str = "", index: int = 0) -> HTMLResponse:
    """One test series and its releases."""
    workspace = workspace_of(request)
    found = look_at(workspace, checked_name(model), checked_name(data) if data else "", index)
    names = data_names(workspace)
    head = found.model.head
    return show(
        request,
        "look.html",
        name=model,
        data=found.data_name,
        names=names,
        look=found,
        epsilon=rounded_up(float(head.epsilon)),
        attackable=head.kind in SYMBOL_KINDS,
    )


@router.post("/attack")
def attack(request: Request, body: Body) -> JSONResponse:
    """Re-identify series from published and from sound releases, of the model that is open."""
    workspace = workspace_of(request)
    name, model = checked_name(text_of(body, "data")), text_of(body, "model")
    arguments = ["attack", "softshape", "--data", data_argument(workspace, name), "--no-trick"]
    if model:
        bundle = workspace.existing("models", checked_name(model))
        arguments += ["--bundle", str(bundle), "--first", str(whole_of(body, "index"))]
    job = start_job(
        workspace,
        f"Attack releases of {name}",
        arguments,
        kind="attack",
        data=name,
        model=model,
    )
    return JSONResponse({"job": job.id})


@router.post("/release")
def release(request: Request, body: Body) -> JSONResponse:
    """Release every test series once, as its device would; the ledger is debited first."""
    workspace = workspace_of(request)
    model, name = checked_name(text_of(body, "model")), checked_name(text_of(body, "data"))
    bundle = workspace.existing("models", model)
    ledger = workspace.place("ledgers", f"{model}.db")
    out = workspace.free("releases", model, ".jsonl")
    job = start_job(
        workspace,
        f"Releases of {name} by {model}",
        ["release", str(bundle), "--data", data_argument(workspace, name), "--out", str(out),
         "--ledger", str(ledger)],
        kind="release",
        data=name,
        model=model,
        ledger=ledger.name,
        out=out.name,
    )  # fmt: skip
    return JSONResponse({"job": job.id})
