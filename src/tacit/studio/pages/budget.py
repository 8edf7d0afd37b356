"""Budget: the ledgers of the workspace, per subject and purpose, with the chain verified."""

from __future__ import annotations

import math

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import FileResponse, HTMLResponse

from tacit.errors import TacitError
from tacit.guarantee import rounded_down, rounded_up
from tacit.ledger import Ledger
from tacit.studio.pages.common import show, workspace_of

router = APIRouter()
_MOST_SUBJECTS = 200


@router.get("/budget")
def budget(request: Request) -> HTMLResponse:
    """All ledgers in the workspace."""
    return show(request, "budget.html", ledgers=workspace_of(request).names("ledgers", "*.db"))


@router.get("/budget/{name}")
def ledger(request: Request, name: str) -> HTMLResponse:
    """One ledger: what each subject has spent and has left."""
    path = workspace_of(request).existing("ledgers", name)
    with Ledger.open(path, create=False) as account:
        verified = account.verify()
        subjects = account.subjects()
        rows = [
            (subject, rounded_up(spent.epsilon), _left(account.remaining(subject).epsilon))
            for subject, spent in list(subjects.items())[:_MOST_SUBJECTS]
        ]
        purposes = sorted({entry.purpose for entry in account.entries()})
        return show(
            request,
            "ledger.html",
            name=name,
            rows=rows,
            n_subjects=len(subjects),
            verified=verified,
            spent=rounded_up(account.spent().epsilon),
            purposes=purposes,
        )


@router.get("/budget/{name}/export")
def export(request: Request, name: str) -> FileResponse:
    """The entries as a file to keep."""
    workspace = workspace_of(request)
    path = workspace.existing("ledgers", name)
    out = workspace.free("ledgers", f"{path.stem}-entries", ".csv")
    with Ledger.open(path, create=False) as account:
        if account.export(out) == 0:
            raise TacitError(f"{name} has no entries yet; release something first.")
    return FileResponse(out, filename=out.name)


def _left(epsilon: float) -> str:
    return "no limit" if math.isinf(epsilon) else rounded_down(epsilon)
