"""The application: one router per page, the same checks before all of them."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import TYPE_CHECKING

from tacit._version import VERSION
from tacit.studio.access import Access, add_access, allowed_hosts, new_token
from tacit.studio.refusals import add_refusals
from tacit.studio.vega import vega_file
from tacit.studio.workspace import Workspace
from tacit.system.extras import needs

if TYPE_CHECKING:
    from fastapi import FastAPI


def create_app(workspace: Workspace, *, token: str, host: str, port: int) -> FastAPI:
    """The studio on one workspace."""
    needs("studio", "fastapi", "uvicorn", what="'tacit studio'")
    from fastapi import FastAPI
    from fastapi.responses import FileResponse, Response
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    from tacit.studio.collecting import Collectors
    from tacit.studio.pages import (
        arena,
        budget,
        data,
        device,
        federation,
        jobs,
        look,
        plan,
        population,
        removal,
        start,
        train,
    )  # fmt: skip
    from tacit.studio.plans.planner import Planner

    collectors, planner = Collectors(workspace), Planner(workspace)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        threading.Thread(target=removal.remove_old_uploads, args=(workspace,), daemon=True).start()
        threading.Thread(target=vega_file, args=(workspace,), daemon=True).start()
        yield
        collectors.close()
        planner.close()

    app = FastAPI(title="Tacit studio", version=VERSION, docs_url=None, redoc_url=None,
                  openapi_url=None, lifespan=lifespan)  # fmt: skip
    app.state.workspace, app.state.collectors = workspace, collectors
    app.state.planner = planner
    app.router.routes.append(Mount("/collect/{store}", app=collectors))
    hosts, session = allowed_hosts(host, port), new_token()
    add_access(app, Access(token=token, session=session, hosts=hosts, port=port))
    pages = (start, data, plan, train, jobs, look, device, population, federation, budget, arena,
             removal)  # fmt: skip
    for page in pages:
        app.include_router(page.router)
    static = resources.files("tacit.studio") / "static"
    app.mount("/static", StaticFiles(directory=str(static)), name="static")

    add_refusals(app)

    async def stylesheet() -> Response:
        from tacit.report.look import stylesheet

        return Response(stylesheet(), media_type="text/css")

    def vega() -> Response:
        headers = {"Cache-Control": "private, max-age=86400"}
        return FileResponse(vega_file(workspace), media_type="text/javascript", headers=headers)

    app.get("/style.css")(stylesheet)
    app.get("/vega.js")(vega)
    return app


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Run until it is stopped; jobs go on in their own processes."""
    import uvicorn

    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        log_level="warning",
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    uvicorn.Server(config).run(sockets=[listening])
