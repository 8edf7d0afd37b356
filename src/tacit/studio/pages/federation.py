"""Federation: what a silo run opened and why it decides as it does; where a fleet's run stands."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from tacit.errors import TacitError
from tacit.silo.party.receipts import RECEIPT
from tacit.studio.federations.fleet import fleet_run, is_fleet
from tacit.studio.federations.silo import (
    finished_folder,
    is_silo,
    model_files,
    openings_of,
    receipt_of,
    silo_run,
    why,
)
from tacit.studio.pages.common import show, workspace_of
from tacit.studio.pages.live import event_stream
from tacit.studio.workspace import checked_name

router = APIRouter()
_ASKED_SECONDS = 1.0


@router.get("/federation")
def choose(request: Request) -> HTMLResponse:
    """All runs in the workspace."""
    names = workspace_of(request).names("federations")
    return show(request, "federation_choose.html", names=names)


@router.get("/federation/{name}")
def federation(request: Request, name: str, index: int = 0) -> HTMLResponse:
    """One run."""
    folder = _known(request, name)
    if is_fleet(folder):
        return show(request, "federation_fleet.html", name=name, run=fleet_run(folder))
    finished = finished_folder(folder)
    if finished is None:
        return show(request, "federation_running.html", name=name, run=silo_run(folder))
    receipt = receipt_of(finished)
    return show(
        request,
        "federation_silo.html",
        name=name,
        receipt=receipt,
        openings=openings_of(receipt),
        why=why(finished, index),
        has_model=bool(model_files(finished)),
    )


@router.get("/federation/{name}/model")
def download(request: Request, name: str) -> Response:
    """The initiator's files of a finished silo run in one archive."""
    finished = finished_folder(_known(request, name))
    files = model_files(finished) if finished is not None else []
    if finished is None or not files:
        raise TacitError(
            f"{name} holds no model; only the initiator of a finished silo run has one."
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, f"{name}/{file.name}")
    said = {"Content-Disposition": f'attachment; filename="{checked_name(name)}.zip"'}
    return Response(packed.getvalue(), media_type="application/zip", headers=said)


@router.get("/federation/{name}/events")
async def events(request: Request, name: str) -> StreamingResponse:
    """What changes while it runs: its state, and the number of reports or how far a party is."""
    folder = _known(request, name)
    said = _fleet_said if is_fleet(folder) else _silo_said
    return event_stream(request, lambda: said(folder), pause_seconds=_ASKED_SECONDS)


def _known(request: Request, name: str) -> Path:
    folder = workspace_of(request).existing("federations", name)
    if is_fleet(folder) or is_silo(folder):
        return folder
    raise TacitError(
        f"{folder.name} holds no {RECEIPT}, no party.toml and no server.toml; put a party's folder "
        "or output, or a fleet's folder there."
    )


def _fleet_said(folder: Path) -> tuple[bool, dict[str, Any]]:
    run = fleet_run(folder)
    return run.finished, {"state": run.state, "values": {"received": run.received}}


def _silo_said(folder: Path) -> tuple[bool, dict[str, Any]]:
    if finished_folder(folder) is not None:
        return True, {"state": "finished", "values": {}}
    run = silo_run(folder)
    values: dict[str, Any] = {}
    for party in run.parties:
        values[f"state-{party.name}"] = party.state
        values[f"bar-{party.name}"] = [party.done, party.total]
    return False, {"state": "running", "values": values}
