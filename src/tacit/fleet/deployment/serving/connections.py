"""What a service allows a connection: so long for a request's head, and so many at once.

A sender that connects and then falls silent, or sends its head byte by byte, is cut off; beyond
the largest number of connections the next one is told to come back later. So a few hundred broken
devices, or a rush of thousands, cost the service neither its memory nor its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import resource
import sys
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

HEAD_SECONDS = 15.0
MOST_CONNECTIONS = 1024
_BUSY = b'{"refused": "too many connections; come back later.", "code": "busy"}'
_M_MMAP_THRESHOLD = -3  # glibc's number for the size from which memory goes back when freed
_RETURNED_BYTES = 64 * 1024


class LimitedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """One connection, with a time limit for every request's head and a place in a full house."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a head, or turn the connection away."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.write(
                b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 2\r\n"
                b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BUSY) + _BUSY
            )
            transport.close()
            return
        self._wait_for_head(transport)

    def data_received(self, data: bytes) -> None:
        """Stop the clock once a request has begun; start it for the next one."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_clock()
        elif self._timer is None:
            self._wait_for_head(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def _wait_for_head(self, transport: Any) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def _stop_clock(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def tune_process() -> None:
    """Allow as many open connections as the system does, and give memory back when it is freed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            # A TLS connection's buffers are large; kept in the heap they would never be returned.
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _RETURNED_BYTES)
