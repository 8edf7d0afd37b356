"""A small web service for releases: it sees randomised values only, so it keeps no secret.

`create_app(model)` makes the FastAPI application; `serve` runs it. Bad input gets status 422 and
one sentence. The service trusts nobody: releases are checked against the model before use.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.local.prevalence import Target, estimate_prevalence
from tacit.local.release import release_from_plain
from tacit.system.extras import needs

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tacit.local.model import LocalModel

MOST_ROWS = 1_000_000


def classify_releases(model: LocalModel, body: Any) -> dict[str, Any]:
    """Labels and posteriors of the releases in a request."""
    release = _checked(body)
    return {
        "labels": model.labels(release),
        "posterior": model.posterior(release).tolist(),
        "classes": list(model.classes),
        "guarantee": model.guarantee.to_dict(),
    }


def class_shares(model: LocalModel, body: Any, *, of: Target, level: float) -> dict[str, Any]:
    """Class shares of the releases in a request, with confidence intervals."""
    return estimate_prevalence(model, _checked(body), of=of, level=level).to_dict()


def create_app(model: LocalModel) -> FastAPI:
    """The application for one model."""
    needs("studio", "fastapi", what="the service for releases")
    from fastapi import FastAPI
    from fastapi.requests import Request
    from fastapi.responses import JSONResponse

    app = FastAPI(title="Tacit releases", description=model.guarantee.sentence)

    @app.exception_handler(TacitError)
    async def refuse(request: Request, error: TacitError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=422)

    async def health() -> dict[str, Any]:
        return {"status": "ok", "kind": model.head.kind, "model": model.identity}

    async def guarantee() -> dict[str, Any]:
        return model.guarantee.to_dict()

    async def classify(request: Request) -> dict[str, Any]:
        return classify_releases(model, await _json(request))

    async def prevalence(
        request: Request, of: Target = "device_labels", level: float = 0.95
    ) -> dict[str, Any]:
        return class_shares(model, await _json(request), of=of, level=level)

    # Annotations are text in this module and FastAPI looks names up in it: hand it the real ones.
    classify.__annotations__["request"] = prevalence.__annotations__["request"] = Request
    app.get("/health")(health)
    app.get("/guarantee")(guarantee)
    app.post("/classify")(classify)
    app.post("/prevalence")(prevalence)
    return app


def bound_socket(host: str, port: int) -> socket.socket:
    """The address to listen on, taken before anybody is told about it."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise TacitError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --port or "
            "--host."
        ) from error


def serve(model: LocalModel, listening: socket.socket) -> None:
    """Run the service until it is stopped."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(create_app(model), log_level="warning"))
    server.run(sockets=[listening])


async def _json(request: Any) -> Any:
    try:
        return await request.json()
    except ValueError as error:
        raise TacitError("the request must be one JSON object with releases.") from error


def _checked(body: Any) -> Any:
    release = release_from_plain(body, where="the request")
    if len(release) > MOST_ROWS:
        raise TacitError(f"{len(release)} releases in one request; send at most {MOST_ROWS}.")
    return release
