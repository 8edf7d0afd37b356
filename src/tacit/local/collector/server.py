"""The service on a socket: TLS 1.3, limits on time and size, and a log without devices."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TacitError, reason_of
from tacit.local.collector.app import create_app
from tacit.local.collector.retention import Retention, may_erase
from tacit.local.collector.storage.store import note_time
from tacit.system.certificates import TLS_FLOOR, check_private, self_signed

if TYPE_CHECKING:
    import uvicorn

    from tacit.local.collector.pages import Pages
    from tacit.local.collector.service import Collector
    from tacit.local.model import LocalModel

_LOG = logging.getLogger("tacit.local.collector")
_IDLE_SECONDS = 20  # between two requests of one connection
_HANDSHAKES = 2048  # that may wait to be accepted
_ERASE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


def own_certificate(folder: Path, *, names: tuple[str, ...]) -> Tls:
    """A certificate of its own making, kept in a folder; devices are given a copy of it."""
    tls = Tls(certificate=folder / "collector-cert.pem", key=folder / "collector-key.pem")
    if not tls.certificate.exists() or not tls.key.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pair = self_signed("tacit.local.collector", hosts=names)
        pair.write(certificate=tls.certificate, key=tls.key)
    return tls


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound_socket(host: str, port: int) -> socket.socket:
    """The address to listen on, taken before anybody is told about it."""
    from tacit.system.serving.connections import bound_at

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = bound_at(family, socket.SOCK_STREAM, 0, (host, port))
        bound.listen(_HANDSHAKES)  # whoever connects from now on waits, and is not refused
    except OSError as error:
        raise TacitError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --port or "
            "--host."
        ) from error
    return bound


def serve(model: LocalModel, listening: socket.socket) -> None:
    """Run the service that keeps nothing until it is stopped."""
    import uvicorn

    from tacit.system.serving.connections import LimitedProtocol

    config = uvicorn.Config(
        create_app(model),
        loop="asyncio",
        http=LimitedProtocol,
        ws="none",
        access_log=False,
        log_config=None,
        log_level="warning",
        backlog=_HANDSHAKES,
    )
    run(uvicorn.Server(config), listening)


def run(server: uvicorn.Server, listening: socket.socket) -> None:
    """Run a server until it is stopped, in a process of its own."""
    from tacit.system.serving.connections import tune_process

    tune_process()
    server.run(sockets=[listening])


def collecting_server(
    collector: Collector,
    *,
    tls: Tls | None,
    reader_token: str | None = None,
    allow_origins: tuple[str, ...] = (),
    retention: Retention | None = None,
    pages: Pages | None = None,
) -> uvicorn.Server:
    """The server of a collector; run it with the socket that `bound_socket` made."""
    import uvicorn

    from tacit.system.serving.connections import LimitedProtocol

    async def housekeeping() -> None:
        await _housekeeping(collector, retention or Retention())

    app = create_app(
        collector.model,
        collector=collector,
        reader_token=reader_token,
        allow_origins=allow_origins,
        background=housekeeping,
        pages=pages,
    )
    config = uvicorn.Config(
        app,
        loop="asyncio",  # whose sockets and handshakes are limited
        http=LimitedProtocol,
        ws="none",
        access_log=False,
        log_config=None,
        log_level="error",
        server_header=False,
        backlog=_HANDSHAKES,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=5,
    )
    if tls is not None:
        config.ssl_certfile, config.ssl_keyfile = str(tls.certificate), str(tls.key)
        check_private(tls.key)
    _load(config, tls)
    return uvicorn.Server(config)


def _load(config: uvicorn.Config, tls: Tls | None) -> None:
    try:
        config.load()
    except OSError as error:  # ssl.SSLError too
        assert tls is not None
        raise TacitError(
            f"cannot use the certificate {tls.certificate} and its key {tls.key} "
            f"({reason_of(error)}); give "
            "PEM files that belong together."
        ) from error
    if config.ssl is not None:
        config.ssl.minimum_version = TLS_FLOOR
        config.ssl.options |= ssl.OP_NO_COMPRESSION


async def _housekeeping(collector: Collector, retention: Retention) -> None:
    """Erase what is old, once an hour, as long as the clock can be trusted."""
    while True:
        await asyncio.sleep(_ERASE_SECONDS)
        await keep_house(collector, retention)


async def keep_house(collector: Collector, retention: Retention) -> None:
    """Note the time, also where nothing was sent for days, and erase if the clock allows it."""
    from starlette.concurrency import run_in_threadpool

    store = collector.store
    try:
        await asyncio.wrap_future(collector.writer.change(lambda db: note_time(db, store.clock)))
        if await run_in_threadpool(may_erase, store):
            await erase_in_background(collector, retention)
        else:
            _LOG.warning("nothing is erased: %s", collector.clock_said())
    except TacitError as error:  # the store cannot be reached; in an hour it may be
        _LOG.error("nothing was erased: %s", error)


async def erase_in_background(collector: Collector, retention: Retention) -> int:
    """Erase old releases in small transactions between those of the devices."""
    erased = 0
    try:
        for step in retention.steps(collector.store):
            erased += await asyncio.wrap_future(collector.writer.change(step))
    except TacitError as error:
        _LOG.error("erasing stopped: %s", error)
    if erased:
        _LOG.info("%d releases were erased because of their age", erased)
    return erased
