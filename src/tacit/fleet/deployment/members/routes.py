"""What a service offers to nodes that join, leave or change their keys, and to those it renews for.

The shuffler and the analyser's public side both offer it, each over its own list.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tacit.errors import TacitError
from tacit.fleet.deployment.members import invitations, statements
from tacit.fleet.deployment.serving.bodies import read_at_most

_MOST_BYTES = 4096


def add_membership(app: FastAPI, *, folder: Path, part: str) -> None:
    """Offer joining with a code, and leaving and new keys under the node's signature."""

    @app.post("/v1/join")
    async def join(request: Request) -> Any:
        plain = await _read(request)
        return await _act(_join, folder, part, plain)

    @app.post("/v1/{kind}")
    async def statement(kind: str, request: Request) -> Any:
        if kind not in get_args(statements.Kind):
            return Response(status_code=404)
        return await _act(_state, folder, kind, await _read(request))

    @app.get("/v1/next-certificate")
    async def next_certificate() -> Response:
        """The certificate that this service will use soon, for those who trust the present one."""
        path = folder / "tls-next.crt"
        if not path.exists():
            return Response(status_code=204)
        return Response(path.read_bytes(), media_type="application/x-pem-file")


async def _act(action: Any, *arguments: Any) -> Any:
    try:
        return await run_in_threadpool(action, *arguments)
    except (KeyError, ValueError) as error:
        said = str(error) if isinstance(error, TacitError) else "this request is incomplete."
        return JSONResponse({"refused": said, "code": "not-a-member"}, status_code=403)


def _join(folder: Path, part: str, plain: dict[str, str]) -> dict[str, str]:
    name = invitations.redeem(folder, bytes.fromhex(plain["secret"]), plain["key"])
    plan = (folder / "plan.toml").read_text(encoding="utf-8")
    return {"name": name, "part": part, "plan": plan}


def _state(folder: Path, kind: statements.Kind, plain: dict[str, str]) -> dict[str, str]:
    statements.apply(
        folder,
        kind,
        node=plain["node"],
        signature=plain["signature"],
        key=plain.get("key", ""),
        proof=plain.get("proof", ""),
    )
    return {"node": plain["node"], "done": kind}


async def _read(request: Request) -> dict[str, str]:
    """A small JSON object of texts; anything else counts as an empty one."""
    body = await read_at_most(request, _MOST_BYTES)
    try:
        plain = json.loads(body)
    except ValueError:
        return {}
    if not isinstance(plain, dict) or not all(isinstance(text, str) for text in plain.values()):
        return {}
    return plain
