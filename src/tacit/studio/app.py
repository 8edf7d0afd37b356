"""The application: one router per page, the same checks before all of them."""

from __future__ import annotations

import socket
from importlib import resources
from typing import TYPE_CHECKING, Any

from tacit._version import VERSION
from tacit.errors import TacitError
from tacit.studio.access import Access, add_access, allowed_hosts
from tacit.studio.workspace import Workspace
from tacit.system.extras import needs

if TYPE_CHECKING:
    from fastapi import FastAPI


def create_app(workspace: Workspace, *, token: str, host: str, port: int) -> FastAPI:
    """The studio on one workspace."""
    needs("studio", "fastapi", "uvicorn", what="'tacit studio'")
    from fastapi import FastAPI
    from fastapi.responses import JSONResponse, Response
    from starlette.staticfiles import StaticFiles

    from tacit.studio.pages import budget, data, jobs, look, plan, start, train

    app = FastAPI(title="Tacit studio", version=VERSION, docs_url=None, redoc_url=None,
                  openapi_url=None)  # fmt: skip
    app.state.workspace = workspace
    add_access(app, Access(token=token, hosts=allowed_hosts(host, port)))
    for page in (start, data, plan, train, jobs, look, budget):
        app.include_router(page.router)
    static = resources.files("tacit.studio") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")

    async def refuse(request: Any, error: Exception) -> Response:
        from tacit.studio.pages.common import refusal

        if request.headers.get("accept", "").startswith("application/json"):
            return JSONResponse({"error": str(error)}, status_code=422)
        return refusal(request, str(error))

    app.add_exception_handler(TacitError, refuse)

    async def stylesheet() -> Response:
        from tacit.report.look import stylesheet

        return Response(stylesheet(), media_type="text/css")

    async def vega() -> Response:
        from tacit.report.render import vega_library

        return Response(
            vega_library(),
            media_type="text/javascript",
            headers={"Cache-Control": "private, max-age=86400"},
        )

    app.get("/style.css")(stylesheet)
    app.get("/vega.js")(vega)
    return app


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Run until it is stopped; jobs go on in their own processes."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", timeout_keep_alive=5, timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[listening])
