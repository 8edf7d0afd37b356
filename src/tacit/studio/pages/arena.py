"""Arena: results of comparisons as a table to sort, and the papers' figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.arena.statistics import label_of
from tacit.arena.store import read_records
from tacit.errors import TacitError
from tacit.guarantee import from_dict, rounded_up
from tacit.report.arena.tables import Record, short_guarantee
from tacit.report.look import promise
from tacit.studio.access import WRITTEN_POLICY
from tacit.studio.jobs import start_job
from tacit.studio.pages.common import show, workspace_of, written_page

router = APIRouter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method at one budget in one suite, over its data sets and seeds."""

    suite: str
    method: str
    epsilon: str
    promise: str
    n_sets: int
    n_runs: int
    accuracy: float
    seconds: float
    kind: str  # protected, nominal or unprotected, as in the boxes of guarantees


@router.get("/arena")
def choose(request: Request) -> HTMLResponse:
    """All comparisons in the workspace."""
    return show(request, "arena_choose.html", names=workspace_of(request).names("arena"))


@router.get("/arena/{name}")
def arena(request: Request, name: str) -> HTMLResponse:
    """The table of one comparison."""
    folder = workspace_of(request).existing("arena", name)
    records = _done(folder)
    return show(
        request,
        "arena.html",
        name=name,
        rows=rows_of(records),
        n_records=len(records),
        current=_is_current(folder),
    )


@router.get("/arena/{name}/report")
def report(request: Request, name: str) -> HTMLResponse:
    """The whole report."""
    page = workspace_of(request).existing("arena", name) / "report.html"
    if not page.exists():
        raise TacitError(f"{name} has no report yet; write it on its page.")
    back = (f"/arena/{quote(name)}", "Back to the comparison")
    return written_page(page, policy=WRITTEN_POLICY, back=back)


@router.post("/arena/{name}/report")
def write_report(request: Request, name: str) -> JSONResponse:
    """Write the report anew, as 'tacit arena report' does."""
    workspace = workspace_of(request)
    folder = workspace.existing("arena", name)
    title = f"Report of {name}"
    job = start_job(workspace, title, ["arena", "report", str(folder)], kind="report", arena=name)
    return JSONResponse({"job": job.id})


def _is_current(folder: Path) -> bool:
    """Whether the report is there and no result is newer than it."""
    page = folder / "report.html"
    newest = max((path.stat().st_mtime for path in folder.rglob("results.jsonl")), default=0.0)
    return page.exists() and page.stat().st_mtime >= newest


def rows_of(records: Sequence[Record]) -> list[Row]:
    """Means by suite, method and budget, in the order in which they were run."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        task = record["task"]
        epsilon = "none" if task["epsilon"] is None else rounded_up(task["epsilon"])
        groups.setdefault((task["suite"], label_of(task), epsilon), []).append(record)
    return [
        Row(
            suite=suite,
            method=method,
            epsilon=epsilon,
            promise=", ".join(sorted({short_guarantee(record) for record in found})),
            n_sets=len({record["task"]["data"] for record in found}),
            n_runs=len(found),
            accuracy=float(np.mean([record["accuracy"] for record in found])),
            seconds=float(np.mean([record["cpu_seconds"] for record in found])),
            kind=weakest(found),
        )
        for (suite, method, epsilon), found in groups.items()
    ]


def weakest(records: Sequence[Record]) -> str:
    """How the least protected of these runs is protected."""
    kinds = {promise(from_dict(record["guarantee"]))[0] for record in records}
    return next(kind for kind in ("unprotected", "nominal", "protected") if kind in kinds)


def _done(folder: Path) -> list[Record]:
    done: list[Record] = [record for record in read_records(folder) if record["status"] == "done"]
    if not done:
        raise TacitError(f"{folder.name} has no finished task; run 'tacit arena run' first.")
    return done
