"""A party's one TCP port: mutual TLS 1.3, and certainty about who is at the other end.

Every connection is pinned: the certificate at its other end must be exactly the one of the party
that is meant. What the connection is for is agreed in the handshake (ALPN), so mesh and engines
share the port. Strangers never get beyond the handshake, and cannot hold many connections.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum

from tacit.errors import TacitError
from tacit.silo.party.folder import PartyFolder, split_address
from tacit.system.certificates import check_private, fingerprint, mutual_tls

HANDSHAKE_SECONDS = 10.0
# Connections in their handshake; beyond, the oldest is closed. A real one takes a few times the
# delay of its line.
MOST_PENDING = 64
_BACKLOG = 128
_READ_LIMIT = 1 << 20


class Purpose(StrEnum):
    """What a connection carries; the names that TLS agrees on."""

    MESH = "tacit-mesh"
    ENGINE = "tacit-engine"


class ForeignCertificate(TacitError):
    """Somebody else than the party meant is at its address."""


# Given rank and purpose of a proved peer: who handles the connection, or None to close it.
Accept = Callable[[int, Purpose], asyncio.BaseProtocol | None]
StreamHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Gate:
    """All TLS connections of one party, accepted and opened."""

    def __init__(self, folder: PartyFolder) -> None:
        check_private(folder.key)
        self._folder = folder
        self._pins = [fingerprint(peer.certificate) for peer in folder.peers]
        self._server = self._tls(server=True, purposes=list(Purpose))
        self._clients = {p: self._tls(server=False, purposes=[p]) for p in Purpose}
        self._accept: Accept = lambda _rank, _purpose: None
        self._listeners: list[socket.socket] = []
        self._loops: list[asyncio.Task[None]] = []
        self._pending: dict[asyncio.Task[None], None] = {}

    def _tls(self, *, server: bool, purposes: list[Purpose]) -> ssl.SSLContext:
        folder = self._folder
        context = mutual_tls(
            server=server, key=folder.key, certificate=folder.certificate, trusted=folder.trusted
        )
        context.set_alpn_protocols([purpose.value for purpose in purposes])
        return context

    # -- accepting -------------------------------------------------------------------------

    async def open(self, accept: Accept) -> None:
        """Listen at this party's address."""
        self._accept = accept
        host, port = split_address(self._folder.peers[self._folder.rank].address)
        try:
            self._listeners = await _listen(host, port)
        except OSError as error:
            raise TacitError(
                f"party '{self._folder.name}' cannot listen at {host}:{port}: {error.strerror}; "
                "is an earlier run still going?"
            ) from error
        self._loops = [asyncio.ensure_future(self._serve(one)) for one in self._listeners]

    async def shut(self) -> None:
        """Listen no more; what is connected stays. Until then unproved connections are closed."""
        tasks = [*self._loops, *self._pending]
        self._loops = []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        self._listeners = []

    async def _serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                raw, _ = await loop.sock_accept(listener)
            except OSError:  # no descriptor is left: somebody holds too many connections
                self._drop_oldest()
                await asyncio.sleep(0.05)
                continue
            task = asyncio.ensure_future(self._admit(raw))
            self._pending[task] = None
            task.add_done_callback(self._pending.pop)
            if len(self._pending) > MOST_PENDING:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        if self._pending:
            next(iter(self._pending)).cancel()

    async def _admit(self, raw: socket.socket) -> None:
        """One handshake; whoever does not prove to be a party is gone after it."""
        loop = asyncio.get_running_loop()
        try:
            _tune(raw, self._folder.limits.silence_seconds)
            await loop.connect_accepted_socket(
                lambda: _Door(self._protocol_for),
                raw,
                ssl=self._server,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
            )
        except (OSError, ssl.SSLError):
            raw.close()
        except BaseException:
            raw.close()
            raise

    def _protocol_for(self, seen: str, purpose: str | None) -> asyncio.BaseProtocol | None:
        if seen not in self._pins or purpose not in set(Purpose):
            return None
        rank = self._pins.index(seen)
        return None if rank == self._folder.rank else self._accept(rank, Purpose(purpose))

    # -- connecting ------------------------------------------------------------------------

    async def connect(
        self, rank: int, purpose: Purpose, protocol: asyncio.BaseProtocol
    ) -> asyncio.Transport:
        """A connection to exactly the party `rank`; nothing is sent before it has proved itself."""
        loop = asyncio.get_running_loop()
        host, port = split_address(self._folder.peers[rank].address)
        meant = self._pins[rank]
        seen: list[tuple[str, str | None]] = []

        def choose(found: str, agreed: str | None) -> asyncio.BaseProtocol | None:
            seen.append((found, agreed))
            return protocol if (found, agreed) == (meant, purpose.value) else None

        transport, _ = await loop.create_connection(
            lambda: _Door(choose),
            host,
            port,
            ssl=self._clients[purpose],
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
        )
        if seen != [(meant, purpose.value)]:
            transport.abort()
            if seen and seen[0][0] != meant:
                raise ForeignCertificate(self._folder.peers[rank].name)
            raise ConnectionError("the other end does not know what the connection is for")
        _tune(transport.get_extra_info("socket"), self._folder.limits.silence_seconds)
        return transport

    async def open_stream(self, rank: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of the mesh to the party `rank`, as streams."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_READ_LIMIT)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = await self.connect(rank, Purpose.MESH, protocol)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def stream_protocol(handle: StreamHandler) -> asyncio.BaseProtocol:
    """A protocol that hands its connection as streams to the coroutine function `handle`."""
    return asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=_READ_LIMIT), handle)


class _Door(asyncio.Protocol):
    """Stands in until the handshake is done; then the proved peer's own protocol takes over."""

    def __init__(self, choose: Callable[[str, str | None], asyncio.BaseProtocol | None]) -> None:
        self._choose = choose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        tls: ssl.SSLObject = transport.get_extra_info("ssl_object")
        seen = hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()
        protocol = self._choose(seen, tls.selected_alpn_protocol())
        if protocol is None:
            transport.abort()
            return
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


async def _listen(host: str, port: int) -> list[socket.socket]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    try:
        for family, kind, number, _, address in dict.fromkeys(found):
            listener = socket.socket(family, kind, number)
            listeners.append(listener)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def _tune(connection: socket.socket, silence_seconds: float) -> None:
    """Small messages leave at once, and a line that acknowledges nothing is given up."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    timeout = getattr(socket, "TCP_USER_TIMEOUT", None)  # Linux
    if timeout is not None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, timeout, int(2000 * silence_seconds))
