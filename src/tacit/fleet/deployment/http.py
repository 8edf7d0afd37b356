"""The two services behind HTTPS: the shuffler for nodes, the analyser for the shuffler.

The analyser listens on two ports. On the first it accepts batches, and TLS itself demands the one
certificate that the shuffler holds, so that nobody else gets as far as a request. It answers when
a batch is on its disk, opens it in the background, and accepts no other until that has ended. On
the second it publishes the model and the status, which are the protected output, to whoever asks.
Neither service keeps an access log: who asked when is nobody's business.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from tacit.errors import TacitError, reason_of
from tacit.fleet.deployment.analyser import Analyser
from tacit.fleet.deployment.batch_delivery import BatchDelivery
from tacit.fleet.deployment.batches.share_sums import ShareSums
from tacit.fleet.deployment.config import AnalyserConfig, ShufflerConfig
from tacit.fleet.deployment.members.routes import add_membership
from tacit.fleet.deployment.serving.bodies import BATCH_SECONDS, read_at_most, read_exactly
from tacit.fleet.deployment.serving.health import add_health
from tacit.fleet.deployment.serving.upkeep import Upkeep
from tacit.fleet.deployment.shuffler import Batch, Refused, Shuffler
from tacit.system.certificates import TLS_FLOOR, trust_only
from tacit.system.serving.connections import LimitedProtocol, listen, tune_process

_LOG = logging.getLogger("tacit.fleet")
_STATUS_OF = {"not-registered": 403, "wrong-size": 413, "closed": 503, "slow": 408, "list": 503}
# All others are refusals for good, and end the round.
_INGEST_STATUS_OF = {"busy": 503, "disk": 503, "slow": 408}


def shuffler_app(
    shuffler: Shuffler,
    delivery: BatchDelivery,
    upkeep: Upkeep | None = None,
    *,
    count_shown_to: str = "",
) -> FastAPI:
    """What the shuffler offers to nodes; batches are delivered in the background.

    Who watches the number of reports grow sees when a device reports, so it is shown to the
    operator's address alone.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(delivery.run(shuffler))
        task.add_done_callback(_stop_with_delivery)
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = _bare_app(lifespan)

    add_health(
        app,
        part="shuffler",
        trouble=lambda: _shuffler_trouble(shuffler, delivery, upkeep),
        counts=lambda: {
            **_days(upkeep),
            "round": float(shuffler.round_number or 0),
            "forwarded_rounds": float(shuffler.forwarded),
            "enough_reports": float(shuffler.received >= shuffler.n_min),
        },
    )

    @app.get("/v1/status")
    async def status(request: Request) -> dict[str, Any]:
        asked_from = "" if request.client is None else request.client.host
        shown = bool(asked_from) and asked_from == count_shown_to
        return {
            "run": shuffler.run,
            "round": shuffler.round_number,
            "enough_reports": shuffler.received >= shuffler.n_min,
            "received": shuffler.received if shown else None,
            "n_min": shuffler.n_min,
            "forwarded": shuffler.forwarded,
            "instance": shuffler.instance,
            "finished": delivery.finished,
            "trouble": _shuffler_trouble(shuffler, delivery, upkeep),
            "next_certificate": None if upkeep is None else upkeep.announced,
        }

    @app.get("/v1/model")
    async def model() -> Response:
        if delivery.model is None or delivery.model[0] != shuffler.round_number:
            raise Refused("closed", "no round is open; ask for the status again later.")
        return _model_response(delivery.model[1], round_number=delivery.model[0], run=shuffler.run)

    @app.post("/v1/reports/{run}/{round_number}")
    async def report(run: str, round_number: int, request: Request) -> dict[str, Any]:
        body = await read_exactly(request, shuffler.body_bytes)
        shuffler.accept(
            node=request.headers.get("x-tacit-node", ""),
            signature=_from_hex(request.headers.get("x-tacit-signature", "")),
            run=run,
            round_number=round_number,
            body=body,
        )
        return {"accepted": True, "round": round_number}

    return app


def _shuffler_trouble(
    shuffler: Shuffler, delivery: BatchDelivery, upkeep: Upkeep | None
) -> str | None:
    return delivery.trouble or shuffler.trouble() or (None if upkeep is None else upkeep.trouble)


def _days(upkeep: Upkeep | None) -> dict[str, float]:
    return {} if upkeep is None else {"certificate_days": float(int(upkeep.days()))}


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def _stop_with_delivery(task: asyncio.Task[None]) -> None:
    """A shuffler that cannot deliver would collect reports for nobody: say why, and stop."""
    if not task.cancelled() and task.exception() is not None:
        _LOG.critical("delivering batches failed; the shuffler stops", exc_info=task.exception())
        signal.raise_signal(signal.SIGTERM)


def analyser_ingest_app(analyser: Analyser, *, max_bytes: int) -> FastAPI:
    """What the analyser offers to the shuffler; TLS has already made sure that it is the one."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        analyser.work_in_background()  # what a crash left
        yield

    app = _bare_app(lifespan)
    receiving = asyncio.Lock()

    @app.get("/v1/status")
    async def status() -> dict[str, Any]:
        return _ingest_status(analyser)

    @app.get("/v1/model")
    async def model() -> Response:
        return _analyser_model(analyser)

    @app.post("/v1/batches/{run}/{round_number}")
    async def batch(
        run: str, round_number: int, batch_id: str, n_nodes: int, request: Request
    ) -> JSONResponse:
        try:
            if not analyser.knows(batch_id):
                analyser.check(run=run, round_number=round_number, batch_id=batch_id)
                _check_free(receiving)
                async with receiving:
                    taken = Batch(
                        run=run,
                        round_number=round_number,
                        batch_id=batch_id,
                        n_nodes=n_nodes,
                        messages=await read_at_most(request, max_bytes, seconds=BATCH_SECONDS),
                    )
                    await run_in_threadpool(analyser.take, taken)
                analyser.work_in_background()
        except Refused as refused:
            await run_in_threadpool(analyser.give_up, refused, round_number)
            _LOG.warning("batch refused: %s", refused)
            body = {"refused": str(refused), **_ingest_status(analyser)}
            return JSONResponse(body, status_code=_INGEST_STATUS_OF.get(refused.code, 409))
        return JSONResponse(_ingest_status(analyser), status_code=202)

    @app.post("/v1/sums/{run}/{round_number}")
    async def helper_sum(
        run: str,
        round_number: int,
        batch_id: str,
        digest: str,
        request: Request,
        refused: str | None = None,
    ) -> JSONResponse:
        content = await read_at_most(request, analyser.rule.message_bytes)
        try:
            analyser.take_sum(batch_id=batch_id, digest=digest, content=content, refused=refused)
        except Refused as error:
            return JSONResponse({"refused": str(error), **_ingest_status(analyser)}, 409)
        analyser.work_in_background()
        return JSONResponse(_ingest_status(analyser), status_code=202)

    return app


def _check_free(receiving: asyncio.Lock) -> None:
    """One body at a time, and none while a batch is processed, which may take all the memory."""
    if receiving.locked():
        raise Refused("busy", "a batch is being received; ask for the status again later.")


def analyser_public_app(analyser: Analyser, upkeep: Upkeep | None = None) -> FastAPI:
    """What the analyser publishes: the status with its guarantee, and the model."""
    app = _bare_app(None)

    def trouble() -> str | None:
        return analyser.trouble() or (None if upkeep is None else upkeep.trouble)

    add_health(
        app,
        part="analyser",
        trouble=lambda: trouble() or analyser.state.stopped,
        counts=lambda: {
            **_days(upkeep),
            "round": float(analyser.state.next_round),
            "rounds": float(analyser.rounds),
            "released_rounds": float(sum(r.released for r in analyser.state.history)),
            "finished": float(analyser.finished),
        },
    )

    @app.get("/v1/status")
    async def status() -> dict[str, Any]:
        return {**analyser.status(), "trouble": trouble()}

    @app.get("/v1/model")
    async def model() -> Response:
        return _analyser_model(analyser)

    return app


def _analyser_model(analyser: Analyser) -> Response:
    now = analyser.state
    return _model_response(now.model, round_number=now.next_round, run=analyser.run)


def _model_response(model: bytes, *, round_number: int, run: str) -> Response:
    return Response(
        model,
        media_type="application/octet-stream",
        headers={"x-tacit-round": str(round_number), "x-tacit-run": run},
    )


def _ingest_status(analyser: Analyser) -> dict[str, Any]:
    # The batch first: once it is no longer on its way, round and end are those after it.
    processing, last = analyser.processing, analyser.last_batch
    asked = analyser.agreement
    return {
        "processing": processing,
        "batch": last,
        "agreed": None if asked is None else asdict(asked),
        "round": analyser.state.next_round,
        "finished": analyser.finished,
    }


def _bare_app(lifespan: Any) -> FastAPI:
    """No documentation pages, and every refusal as one sentence with its code."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> JSONResponse:
        body = {"refused": str(error), "code": error.code}
        return JSONResponse(body, status_code=_STATUS_OF.get(error.code, 409))

    return app


def serve(servers: Sequence[uvicorn.Server], upkeep: Upkeep) -> None:
    """Run until stopped by a signal; all servers share one loop and stop together."""

    async def all_of_them() -> None:
        looking = asyncio.create_task(upkeep.run())
        tasks = [
            asyncio.create_task(server.serve(sockets))
            for server, sockets in zip(servers, bound, strict=True)
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for server in servers:
            server.should_exit = True
        await asyncio.gather(*tasks)
        looking.cancel()

    tune_process()
    try:
        bound = [listen(server.config.host, server.config.port) for server in servers]
    except OSError as error:
        raise TacitError(
            "the service could not listen; choose another host or port in its configuration."
        ) from error
    asyncio.run(all_of_them())


def shuffler_servers(
    config: ShufflerConfig, shuffler: Shuffler, sums: ShareSums | None
) -> tuple[list[uvicorn.Server], Upkeep]:
    """The shuffler's one server, with its client certificate for the analyser."""
    tls = trust_only(config.analyser_certificate)
    tls.load_cert_chain(config.client_certificate, config.client_key)
    upkeep = _upkeep(config)
    upkeep.follow_own(tls, config.client_certificate, config.client_key)
    upkeep.follow_trusted(tls, config.analyser_certificate)
    delivery = BatchDelivery(url=config.analyser_url, tls=tls, sums=sums)
    app = shuffler_app(shuffler, delivery, upkeep, count_shown_to=config.count_shown_to)
    add_membership(app, folder=config.nodes.parent, part="shuffler")
    return [_server(app, config, upkeep, port=config.port)], upkeep


def analyser_servers(
    config: AnalyserConfig, analyser: Analyser, *, max_bytes: int
) -> tuple[list[uvicorn.Server], Upkeep]:
    """The analyser's two servers: batches from the shuffler alone, and the public side."""
    upkeep = _upkeep(config)
    ingest = _server(
        analyser_ingest_app(analyser, max_bytes=max_bytes),
        config,
        upkeep,
        port=config.ingest_port,
        ssl_ca_certs=str(config.shuffler_certificate),
        ssl_cert_reqs=ssl.CERT_REQUIRED,
    )
    assert ingest.config.ssl is not None, "a certificate was given"
    upkeep.follow_trusted(ingest.config.ssl, config.shuffler_certificate)
    public = analyser_public_app(analyser, upkeep)
    if analyser.rule.helper_bytes:  # otherwise it must not know who takes part
        add_membership(public, folder=config.nodes.parent, part="analyser")
    return [ingest, _server(public, config, upkeep, port=config.public_port)], upkeep


def _upkeep(config: ShufflerConfig | AnalyserConfig) -> Upkeep:
    following = config.certificate.with_name("tls-next.crt")
    return Upkeep(certificate=config.certificate, next_certificate=following)


def _server(
    app: FastAPI,
    config: ShufflerConfig | AnalyserConfig,
    upkeep: Upkeep,
    *,
    port: int,
    **tls: Any,
) -> uvicorn.Server:
    settings = uvicorn.Config(
        app,
        host=config.host,
        port=port,
        ssl_certfile=str(config.certificate),
        ssl_keyfile=str(config.private_key),
        ws="none",
        http=LimitedProtocol,
        access_log=False,
        log_level="warning",
        log_config=None,
        timeout_graceful_shutdown=2,
        **tls,
    )
    try:
        settings.load()
    except OSError as error:  # ssl.SSLError too
        raise TacitError(
            f"cannot use the certificate {config.certificate} and its key "
            f"({reason_of(error)}); copy both "
            "from the folder that 'tacit fleet init' wrote."
        ) from error
    assert settings.ssl is not None, "a certificate was given"
    settings.ssl.minimum_version = TLS_FLOOR
    # Two certificates of one name are trusted while one is renewed: each for itself, no chain.
    settings.ssl.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    upkeep.follow_own(settings.ssl, config.certificate, config.private_key)
    return uvicorn.Server(settings)
