"""The service on a socket: TLS 1.3, limits on time and size, and a log without devices."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError, reason_of
from tacit.local.collector.app import create_app
from tacit.local.collector.retention import Retention, may_erase
from tacit.system.certificates import TLS_FLOOR, check_private, self_signed

if TYPE_CHECKING:
    import uvicorn

    from tacit.local.collector.pages import Pages
    from tacit.local.collector.service import Collector
    from tacit.local.model import LocalModel

_LOG = logging.getLogger("tacit.local.collector")
_HEAD_SECONDS = 20.0  # for the head of a request
_HEAD_BYTES = 32_768
_IDLE_SECONDS = 60  # between two requests of one connection
_CONNECTIONS = 2000
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
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_HANDSHAKES)
    except OSError as error:
        raise TacitError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another --port or "
            "--host."
        ) from error


def serve(model: LocalModel, listening: socket.socket) -> None:
    """Run the service that keeps nothing until it is stopped."""
    import uvicorn

    config = uvicorn.Config(
        create_app(model), access_log=False, log_config=None, log_level="warning"
    )
    server = uvicorn.Server(config)
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
        http=_patient_protocol(),
        ws="none",
        access_log=False,
        log_config=None,
        log_level="error",
        server_header=False,
        limit_concurrency=_CONNECTIONS,
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


def _patient_protocol() -> type[asyncio.Protocol]:
    """uvicorn's protocol, with a limit on how long and how large the head of a request may be."""
    base = _fast_protocol()

    class PatientProtocol(base):  # type: ignore[misc, valid-type]  # one of two, chosen here
        """Ends connections that send nothing, or the head of a request too slowly."""

        _timer: asyncio.TimerHandle | None = None
        _head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch(0)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch(len(data))

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            super().connection_lost(exc)

        def _watch(self, n: int) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._rest()
                return
            self._head += n
            if self._head > _HEAD_BYTES:
                self.transport.abort()
            elif self._timer is None:
                self._timer = self.loop.call_later(_HEAD_SECONDS, self._too_slow)

        def _too_slow(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self.transport.abort()

        def _rest(self) -> None:
            self._head = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return PatientProtocol


def _fast_protocol() -> type[asyncio.Protocol]:
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ModuleNotFoundError:
        from uvicorn.protocols.http.h11_impl import H11Protocol

        return H11Protocol
    return HttpToolsProtocol


async def _housekeeping(collector: Collector, retention: Retention) -> None:
    """Erase what is old, once an hour, as long as the clock can be trusted."""
    warned = False
    while True:
        await asyncio.sleep(_ERASE_SECONDS)
        if may_erase(collector.store):
            await erase_in_background(collector, retention)
        elif not warned:
            warned = True
            _LOG.warning("the machine's clock was set; nothing is erased until a restart")


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
