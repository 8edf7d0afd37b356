"""What a service allows a connection: so long for a request's head, and so many at once.

A sender that connects and then falls silent, or sends its head byte by byte or without an end, is
cut off, before its TLS handshake as after it; beyond the largest number of connections the next one
is told to come back later, and beyond twice as many it is closed at once. So a few hundred broken
devices, or a rush of thousands, cost the service neither its memory nor its time.
"""

from __future__ import annotations

import asyncio
import asyncio.constants
import asyncio.sslproto
import contextlib
import ctypes
import json
import os
import socket
import sys
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 15.0
HANDSHAKE_SECONDS = 10.0
MOST_CONNECTIONS = 1024
_MOST_WITH_HANDSHAKES = 2 * MOST_CONNECTIONS  # of which some are told to come back
_MOST_HEAD_BYTES = 32_768
_OTHER_FILES = 128  # that a service has open beside its connections
_BUSY_TEXT = "too many connections; come back later."
_BUSY = json.dumps({"refused": _BUSY_TEXT, "error": _BUSY_TEXT, "code": "busy"}).encode()
_M_MMAP_THRESHOLD = -3  # glibc's number for the size from which memory goes back when freed
_RETURNED_BYTES = 64 * 1024


class LimitedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """One connection, with limits for every request's head and a place in a full house."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _turned_away = False

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head, or turn the connection away."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._turned_away = True
            transport.write(
                b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 2\r\n"
                b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BUSY) + _BUSY
            )
            transport.close()
            return
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Stop the clock once a request has begun; start it for the next one."""
        if self._turned_away:
            return  # over TLS a request may be here already, and its answer could not leave
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_clock()
            return
        if self.cycle is None or not self.cycle.more_body:  # the rest of a body is no head
            self._head_bytes += len(data)
        if self._head_bytes > _MOST_HEAD_BYTES:
            self._cut_off()
        elif self._timer is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self._cut_off)

    def _cut_off(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.abort()

    def _stop_clock(self) -> None:
        self._head_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class LimitedSocket(socket.socket):
    """A listening socket that lets so many connections in, handshakes included, and no more.

    Those beyond it are closed at once, which costs nothing; whoever means it tries again.
    """

    most = _MOST_WITH_HANDSHAKES

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._let_in: set[socket.socket] = set()

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; `ConnectionAbortedError` if there was no place for it."""
        connection, address = super().accept()
        if len(self._let_in) >= self.most:
            self._let_in = {one for one in self._let_in if one.fileno() >= 0}
        if len(self._let_in) >= self.most:
            connection.close()
            raise ConnectionAbortedError("all places are taken")  # asyncio goes on with the next
        self._let_in.add(connection)
        return connection, address


def bound_at(family: int, kind: int, protocol: int, address: Any) -> LimitedSocket:
    """A socket bound to one address; OSError if that is not possible."""
    bound = LimitedSocket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let a second service take the same address
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def listen(host: str, port: int) -> list[socket.socket]:
    """Bound sockets for every address of the host; OSError if one cannot be bound."""
    bound: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, kind, protocol, _, address in dict.fromkeys(found):
            bound.append(bound_at(family, kind, protocol, address))
    except OSError:
        for one in bound:
            one.close()
        raise
    return bound


def limit_handshakes() -> None:
    """Cut off whoever has not finished a TLS handshake in time."""
    defaults: Any = asyncio.constants  # uvicorn hands no limit on
    defaults.SSL_HANDSHAKE_TIMEOUT = HANDSHAKE_SECONDS


def tune_process() -> None:
    """Allow as many open connections as the system does, and give memory back when it is freed."""
    _raise_open_files()
    limit_handshakes()
    # Of every TLS connection's read buffer, which is four times as large by default.
    buffers: Any = asyncio.sslproto.SSLProtocol
    buffers.max_size = min(_RETURNED_BYTES, buffers.max_size)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            # A TLS connection's buffers are large; kept in the heap they would never be returned.
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _RETURNED_BYTES)


def _raise_open_files() -> None:
    """Raise the number of open files, and let no more connections in than it has room for."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        LimitedSocket.most = max(1, min(LimitedSocket.most, soft - _OTHER_FILES))
