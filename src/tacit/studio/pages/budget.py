"""Budget: the ledgers of the workspace, per purpose and subject, with the chain verified."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from starlette.background import BackgroundTask

from tacit.guarantee import rounded_up
from tacit.ledger import Ledger, Verification
from tacit.ledger.anchors import configured_anchor
from tacit.studio.budgets import by_purpose, by_subject, disclosure
from tacit.studio.collecting import local_models
from tacit.studio.commands import answer_of
from tacit.studio.jobs import start_job
from tacit.studio.pages.common import Body, show, text_of, workspace_of
from tacit.studio.workspace import Workspace, checked_name

router = APIRouter()
_SHORT = 2000  # entries that are recomputed while the page is made


@router.get("/budget")
def budget(request: Request) -> HTMLResponse:
    """All ledgers in the workspace."""
    return show(request, "budget.html", ledgers=workspace_of(request).names("ledgers", "*.db"))


@router.get("/budget/{name}")
def ledger(request: Request, name: str) -> HTMLResponse:
    """One ledger: what each subject has spent and has left."""
    workspace = workspace_of(request)
    path = workspace.existing("ledgers", name)
    with _opened(path) as account:
        amounts, subjects = account.amounts(), account.subjects()
        return show(
            request,
            "ledger.html",
            name=name,
            rows=by_subject(account, amounts, subjects),
            purposes=by_purpose(amounts),
            n_subjects=len(subjects),
            most=rounded_up(max((one.epsilon for one in subjects.values()), default=0.0)),
            limit=account.budgets()["per_subject_epsilon"],
            verified=_verified(account),
            models=_models_of(workspace, path.stem),
        )


@router.get("/budget/{name}/verified")
def verified(request: Request, name: str) -> JSONResponse:
    """The chain recomputed, in a process of its own: of a long one it takes a while."""
    path = workspace_of(request).existing("ledgers", name)
    return JSONResponse(answer_of(["ledger", "verify", "--db", str(path)], codes=(0, 1)))


@router.get("/budget/{name}/disclosure")
def disclose(request: Request, name: str, subject: str = "") -> HTMLResponse:
    """What was released about one subject, to hand to them."""
    path = workspace_of(request).existing("ledgers", name)
    with _opened(path) as account:
        verified, found = _verified(account), disclosure(account, subject)
    return show(request, "disclosure.html", name=name, found=found, verified=verified)


@router.post("/budget/{name}/document")
def document(request: Request, name: str, body: Body) -> JSONResponse:
    """Write what a model promises and this ledger has spent, as 'tacit disclose' does."""
    workspace = workspace_of(request)
    ledger = workspace.existing("ledgers", name)
    model = checked_name(text_of(body, "model"))
    bundle = workspace.existing("models", model)
    out = workspace.free("pages", f"{model}-disclosure", ".html")
    job = start_job(
        workspace,
        f"Disclosure of {model}",
        ["disclose", str(bundle), "--ledger", str(ledger), "--out", str(out)],
        kind="disclose",
        model=model,
        page=out.stem,
    )
    return JSONResponse({"job": job.id})


@router.get("/budget/{name}/export")
def export(request: Request, name: str) -> FileResponse:
    """The entries as a file to keep; nothing is left in the workspace."""
    path = workspace_of(request).existing("ledgers", name)
    folder = Path(tempfile.mkdtemp())
    out = folder / f"{path.stem}-entries.csv"
    try:
        answer_of(["ledger", "export", "--db", str(path), "--out", str(out)])
    except BaseException:
        shutil.rmtree(folder)
        raise
    return FileResponse(out, filename=out.name, background=BackgroundTask(shutil.rmtree, folder))


def _opened(path: Path) -> Ledger:
    return Ledger.open(path, create=False, anchor=configured_anchor(path))


def _verified(account: Ledger) -> Verification | None:
    """The chain recomputed at once if it is short; None if the page has to ask for it."""
    short = int(account.anchor().split(":")[0]) <= _SHORT
    return account.verify() if short else None


def _models_of(workspace: Workspace, stem: str) -> list[str]:
    """Models, the one first that the ledger is named after."""
    return sorted(local_models(workspace), key=lambda name: name != stem)
