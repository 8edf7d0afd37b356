"""How a service is: `/healthz` for whoever restarts it, `/metrics` for whoever watches it.

Both show coarse counts that are public anyway: rounds, reports in the open round only as enough or
not enough, and whether something stands in the way. Nothing says who reported, or when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from tacit.system.metrics import gauges


def add_health(
    app: FastAPI,
    *,
    part: str,
    trouble: Callable[[], str | None],
    counts: Callable[[], Mapping[str, float]],
) -> None:
    """Offer both; `counts` are gauges by their names, without the service's prefix."""

    @app.get("/healthz")
    async def healthz() -> JSONResponse:
        said = trouble()
        body = {"healthy": said is None, "trouble": said}
        return JSONResponse(body, status_code=200 if said is None else 503)

    registry = gauges(part, lambda: {**counts(), "trouble": float(trouble() is not None)})

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
