"""The web service for releases: it sees randomised values only.

Without a collector it classifies what a request brings and keeps nothing. With one, devices enrol
and upload, and operators read counts and shares. Bad input gets a status and one sentence. There is
no access log, and no page loads anything from elsewhere.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from tacit.errors import TacitError
from tacit.local.collector.messages import ENROL_PATH, MOST_BYTES, RELEASES_PATH, Refused
from tacit.local.collector.pages import DASHBOARD_HEADERS, DEVICE_HEADERS, Pages
from tacit.local.collector.storage.database import StoreUnavailable
from tacit.local.collector.uploads import as_object
from tacit.local.prevalence import Target, estimate_prevalence
from tacit.local.release import SYMBOL_KINDS, Release, release_from_plain
from tacit.system.extras import needs
from tacit.system.serving.bodies import BodyTooLarge, BodyTooSlow, read_body

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from tacit.local.collector.service import Collector
    from tacit.local.model import LocalModel

MOST_ROWS = 1_000_000
_MOST_QUERY_BYTES = 32_000_000  # a body of /classify, which holds up to MOST_ROWS
_ENROL_BYTES = 4_000
_RETRY_SECONDS = "2"
_PERIODS_SHOWN = 60
_GROUPS_SHOWN = 100  # on the dashboard; the API tells of any number

Handler = Callable[["Request"], Awaitable["Response"]]


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


def create_app(
    model: LocalModel,
    *,
    collector: Collector | None = None,
    reader_token: str | None = None,
    allow_origins: Sequence[str] = (),
    background: Callable[[], Awaitable[None]] | None = None,
    pages: Pages | None = None,
) -> Starlette:
    """The application for one model.

    With `reader_token`, everything but what devices need asks for it. `allow_origins` are the web
    pages whose scripts may enrol and upload. `background` runs beside the service. With `pages` a
    collector has a dashboard, and a device for browsers at `/device`.
    """
    needs("studio", "starlette", what="the service for releases")
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware

    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(allow_origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type"],
    )
    reading = _Reading(model, reader_token)
    refusals = _Refusals(collector, reading.figures)
    routes = _routes(reading, collector, pages)
    return Starlette(
        routes=routes,
        middleware=[cors] if allow_origins else [],
        exception_handlers={TacitError: refusals.refuse, Exception: refusals.fail},
        lifespan=_lifespan(collector, background),
    )


def _lifespan(collector: Collector | None, background: Callable[[], Awaitable[None]] | None) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        task = None if background is None else asyncio.ensure_future(background())
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
            if collector is not None:
                collector.close()

    return lifespan


class _Refusals:
    """From errors to answers."""

    def __init__(self, collector: Collector | None, figures: dict[str, float]) -> None:
        self._collector, self._figures = collector, figures

    async def refuse(self, request: Request, error: Exception) -> Response:
        from starlette.responses import JSONResponse

        unavailable = isinstance(error, StoreUnavailable)
        status = error.status if isinstance(error, Refused) else 503 if unavailable else 422
        self._figures["refusals"] += 1
        if self._collector is not None:
            self._collector.metrics.refusals.labels(str(status)).inc()
        body: dict[str, Any] = {"error": str(error)}
        windows = getattr(error, "windows", None)
        if windows is not None:
            body["windows"] = windows
        headers = {"Retry-After": _RETRY_SECONDS} if unavailable else {}
        return JSONResponse(body, status_code=status, headers=headers)

    async def fail(self, request: Request, error: Exception) -> Response:
        from starlette.responses import JSONResponse

        return JSONResponse({"error": "the service failed; send it again later."}, status_code=500)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What readers ask: nothing here changes anything."""

    model: LocalModel
    token: str | None
    figures: dict[str, float] = field(default_factory=lambda: {"answers": 0.0, "refusals": 0.0})

    def guarded(self, handler: Handler) -> Handler:
        """The handler for whoever has the token, if there is one."""

        async def checked(request: Request) -> Response:
            if self.token is not None and not _has_token(request, self.token):
                raise Refused(401, "this needs the reader's token, as ?token=… or a Bearer header.")
            answer = await handler(request)
            self.figures["answers"] += 1
            return answer

        return checked

    async def guarantee(self, request: Request) -> Response:
        return _json_response(self.model.guarantee.to_dict())

    async def health(self, request: Request) -> Response:
        about = {"status": "ok", "kind": self.model.head.kind, "model": self.model.identity}
        return _json_response(about)

    async def metrics(self, request: Request) -> Response:
        """Of a service that keeps nothing; a collector has its own."""
        from prometheus_client import generate_latest
        from prometheus_client.exposition import CONTENT_TYPE_LATEST
        from starlette.responses import Response

        from tacit.system.metrics import gauges

        page = generate_latest(gauges("classifier", lambda: self.figures))
        return Response(page, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def classify(self, request: Request) -> Response:
        return _json_response(classify_releases(self.model, await _json(request)))

    async def prevalence(self, request: Request) -> Response:
        of, level = _target(request), _level(request)
        return _json_response(class_shares(self.model, await _json(request), of=of, level=level))


@dataclass(frozen=True, slots=True)
class _Collecting:
    """What devices and operators ask of a collector."""

    collector: Collector

    async def about(self, request: Request) -> Response:
        return _json_response(self.collector.about())

    async def enrol(self, request: Request) -> Response:
        header = request.headers.get("authorization")
        body = await _body(request, _ENROL_BYTES)
        return _json_response(await self.collector.enrol(body, header), status=201)

    async def take(self, request: Request) -> Response:
        # Who sends is looked up first: strangers cannot make the service read large bodies.
        device, signature = await self.collector.known(request.headers.get("authorization"))
        body = await _body(request, MOST_BYTES)
        return _json_response(await self.collector.take(device, signature, body))

    async def counts(self, request: Request) -> Response:
        by, per_group, last = _window(request)
        return await _in_thread(
            lambda: self.collector.counts(by=by, per_group=per_group, last=last)
        )

    async def prevalence(self, request: Request) -> Response:
        by, per_group, last = _window(request)
        of, level = _target(request), _level(request)
        return await _in_thread(
            lambda: self.collector.prevalence(
                by=by, per_group=per_group, last=last, of=of, level=level
            )
        )

    async def totals(self, request: Request) -> Response:
        return await _in_thread(self.collector.totals)

    async def health(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        found = await run_in_threadpool(self.collector.health)
        return _json_response(found, status=200 if found["status"] == "ok" else 503)

    async def metrics(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        from tacit.local.collector.metrics import CONTENT_TYPE

        text = await run_in_threadpool(self.collector.metrics_text)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})


@dataclass(frozen=True, slots=True)
class _Showing:
    """The pages of a collector."""

    collector: Collector
    pages: Pages

    async def dashboard(self, request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import HTMLResponse

        text = await run_in_threadpool(self._dashboard)
        return HTMLResponse(text, headers=DASHBOARD_HEADERS)

    def _dashboard(self) -> str:
        collector, shares, overall, groups = self.collector, None, None, None
        totals = collector.totals()
        if collector.model.head.kind in SYMBOL_KINDS:
            asked: dict[str, Any] = {"per_group": False, "of": "device_labels", "level": 0.95}
            shares = collector.prevalence(by="day", last=_PERIODS_SHOWN, **asked)
            overall = collector.prevalence(by="all", last=None, **asked)
            if 1 < len(totals["groups"]) <= _GROUPS_SHOWN:
                asked["per_group"] = True
                groups = collector.prevalence(by="all", last=None, **asked)
        return self.pages.dashboard(
            about=collector.about(), totals=totals, shares=shares, overall=overall, groups=groups
        )

    async def device(self, request: Request) -> Response:
        from starlette.responses import Response

        file = self.pages.device.get(request.path_params.get("file", ""))
        if file is None:
            raise Refused(404, "there is no such file; open /device.")
        return Response(file.text, media_type=file.media_type, headers=DEVICE_HEADERS)


def _routes(reading: _Reading, collector: Collector | None, pages: Pages | None) -> list[Any]:
    from starlette.routing import Route

    guarded = reading.guarded
    routes = [
        Route("/guarantee", reading.guarantee),
        Route("/classify", guarded(reading.classify), methods=["POST"]),
        Route("/prevalence", guarded(reading.prevalence), methods=["POST"]),
    ]
    if collector is None:
        bare = (Route("/health", reading.health), Route("/metrics", guarded(reading.metrics)))
        return [*routes, *bare]
    own = _Collecting(collector)
    shown = []
    if pages is not None:
        showing = _Showing(collector, pages)
        shown = [
            Route("/", guarded(showing.dashboard)),
            Route("/device", showing.device),
            Route("/device/{file}", showing.device),
        ]
    return [
        *shown,
        Route(RELEASES_PATH, own.take, methods=["POST"]),
        Route(ENROL_PATH, own.enrol, methods=["POST"]),
        Route("/api/collector", own.about),
        *routes,
        Route("/health", own.health),
        Route("/api/counts", guarded(own.counts)),
        Route("/api/prevalence", guarded(own.prevalence)),
        Route("/api/totals", guarded(own.totals)),
        Route("/metrics", guarded(own.metrics)),
    ]


async def _body(request: Request, size: int) -> bytes:
    try:
        return await read_body(request, size)
    except BodyTooLarge as error:
        raise Refused(413, f"{str(error).rstrip('.')}; send fewer releases at once.") from None
    except BodyTooSlow as error:
        raise Refused(408, str(error)) from None


def _has_token(request: Request, token: str) -> bool:
    header = request.headers.get("authorization", "").removeprefix("Bearer ")
    given = request.query_params.get("token") or header
    return hmac.compare_digest(given.encode(), token.encode())


def _window(request: Request) -> tuple[Any, bool, int | None]:
    """`by`, `per_group` and `last` of a query; the counts check `by`."""
    asked = request.query_params
    last = asked.get("last", str(_PERIODS_SHOWN))
    if not last.isdecimal() or not 0 < int(last) <= 10_000:
        raise TacitError(f"last must be a whole number from 1 to 10000, got {last!r}.")
    per_group = asked.get("per_group", "false")
    if per_group not in ("true", "false"):
        raise TacitError(f"per_group must be true or false, got {per_group!r}.")
    return asked.get("by", "all"), per_group == "true", int(last)


def _target(request: Request) -> Target:
    asked = request.query_params.get("of", "device_labels")
    known: tuple[Target, ...] = get_args(Target)
    for target in known:
        if asked == target:
            return target
    raise TacitError(f"of must be one of {', '.join(known)}, got {asked!r}.")


def _level(request: Request) -> float:
    asked = request.query_params.get("level", "0.95")
    try:
        return float(asked)
    except ValueError:
        raise TacitError(f"level must be a number, got {asked!r}.") from None


async def _in_thread(answer: Callable[[], dict[str, Any]]) -> Response:
    from starlette.concurrency import run_in_threadpool

    return _json_response(await run_in_threadpool(answer))


def _json_response(plain: Any, *, status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(plain, status_code=status)


async def _json(request: Request) -> Any:
    return as_object(await _body(request, _MOST_QUERY_BYTES), what="releases")


def _checked(body: Any) -> Release:
    release = release_from_plain(body, where="the request")
    if len(release) > MOST_ROWS:
        raise TacitError(f"{len(release)} releases in one request; send at most {MOST_ROWS}.")
    return release
