"""The engine's way to the other engines: a private folder here, pinned TLS between the parties.

The engine listens on a Unix socket in a folder that only this account can enter, and finds one
socket there for each other engine. The party carries the bytes of each through its gate, so no
engine has a port, and what arrives under a rank came from that rank's party.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path

from tacit.errors import TacitError
from tacit.silo.party.links.gate import ForeignCertificate, Gate, Purpose
from tacit.silo.party.links.pushes import ForgedPush, PushCheck

# A Unix socket's path has at most 108 characters, 104 on some systems.
_LONGEST_PATH = 100
_BUFFER = 4 << 20
_RETRY_SECONDS = 0.05

# Rank of the peer, what it did, and whether that is certain to be its own fault.
OnLost = Callable[[int, str, bool], None]


class EngineFolder:
    """A private folder (0700) for the engine's sockets and log, removed whatever happens."""

    def __init__(self) -> None:
        self.path = Path(_private_folder())
        # Removes the folder when this process is gone, even if it was killed.
        self._remover = subprocess.Popen(
            ["/bin/sh", "-c", 'cat; rm -rf -- "$0"', str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def remove(self) -> None:
        """Remove the folder and wait until it is gone."""
        assert self._remover.stdin is not None
        self._remover.stdin.close()
        self._remover.wait()


def _private_folder() -> str:
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):
        if base and len(base) + len("/tacit-12345678/to-255.sock") <= _LONGEST_PATH:
            with suppress(OSError):
                return tempfile.mkdtemp(prefix="tacit-", dir=base)
    raise TacitError("found no folder for the engine's sockets; set TMPDIR to a short path.")


class Tunnel:
    """The engine's connections to the engines of the other computing parties."""

    def __init__(
        self, gate: Gate, folder: Path, *, rank: int, n_computing: int, on_lost: OnLost
    ) -> None:
        self._gate = gate
        self._folder = folder
        self._rank = rank
        self.n_sent = 0  # bytes of the engine that went to other parties
        self._others = [r for r in range(n_computing) if r != rank] if rank < n_computing else []
        self._on_lost = on_lost
        self._inbound: dict[int, _End] = {}
        self._carried: set[int] = set()
        self._begun: list[_End] = []
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._deadline = 0.0
        self._closing = False
        n_all = n_computing if rank < n_computing else 0
        self.addresses = [f"unix:{self._socket(r)}" for r in range(n_all)]

    @property
    def is_complete(self) -> bool:
        """Whether all engines are connected both ways: nobody else is expected any more."""
        joined = {rank for rank, end in self._inbound.items() if end.n_received}
        return set(self._others) == joined == self._carried

    def _socket(self, rank: int) -> Path:
        return self._folder / ("own.sock" if rank == self._rank else f"to-{rank}.sock")

    async def open(self, *, join_seconds: float) -> None:
        """Listen on the sockets where the engine will look for the others."""
        loop = asyncio.get_running_loop()
        self._deadline = time.monotonic() + 2 * join_seconds
        for rank in self._others:
            begin = partial(_End, self._begin_outbound, rank)
            server = await loop.create_unix_server(begin, str(self._socket(rank)))
            self._servers.append(server)

    def accept(self, rank: int) -> asyncio.BaseProtocol | None:
        """A protocol for the connection that the party `rank` opened for its engine, or None."""
        earlier = self._inbound.get(rank)
        if rank not in self._others or self._closing or (earlier and earlier.n_received):
            return None
        if earlier is not None:
            earlier.drop()  # of a run that never began
        end = _End(self._begin_inbound, rank, check=PushCheck(rank))
        self._inbound[rank] = end
        return end

    def _begin_inbound(self, outside: _End) -> None:
        self._begun.append(outside)
        self._start(self._join_inbound(outside))

    def _begin_outbound(self, inside: _End) -> None:
        self._begun.append(inside)
        self._start(self._join_outbound(inside))

    async def _join_inbound(self, outside: _End) -> None:
        """Connect a peer's bytes to our own engine, which may still be starting."""
        loop = asyncio.get_running_loop()
        inside = _End(None, outside.rank)
        while time.monotonic() < self._deadline and not outside.is_closed:
            with suppress(OSError):
                path = str(self._socket(self._rank))
                await loop.create_unix_connection(lambda: inside, path)
                self._pair(outside, inside)
                return
            await asyncio.sleep(_RETRY_SECONDS)
        outside.close()

    async def _join_outbound(self, inside: _End) -> None:
        """Connect our engine's bytes to a peer, which may not be listening yet."""
        outside = _End(None, inside.rank)
        while time.monotonic() < self._deadline and not inside.is_closed:
            try:
                await self._gate.connect(inside.rank, Purpose.ENGINE, outside)
            except ForeignCertificate:
                break
            except OSError:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self._carried.add(inside.rank)
            self._pair(outside, inside)
            return
        inside.close()

    def _pair(self, outside: _End, inside: _End) -> None:
        outside.other, inside.other = inside, outside
        inside.count = self._count
        outside.on_end = partial(self._ended, outside)
        inside.resume()
        outside.resume()

    def _count(self, n_bytes: int) -> None:
        self.n_sent += n_bytes

    def _ended(self, outside: _End, rank: int, reason: str, is_fault: bool) -> None:
        # A connection that never carried anything was left over by a run that never began.
        if not self._closing and (outside.n_received or is_fault):
            self._on_lost(rank, reason, is_fault)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all connections of the engine."""
        self._closing = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            server.close()
        for end in self._begun:
            end.abort()


class _End(asyncio.Protocol):
    """One end of a pipe: what comes in here goes out at the other end, without a copy in between.

    It reads nothing before both ends are there. `check` sees every piece first and may refuse it.
    """

    def __init__(
        self, begin: Callable[[_End], None] | None, rank: int, *, check: PushCheck | None = None
    ) -> None:
        self.rank = rank
        self.other: _End | None = None
        self.on_end: OnLost | None = None
        self.is_closed = False
        self.n_received = 0
        self.count: Callable[[int], None] = lambda _n_bytes: None
        self._begin = begin
        self._check = check
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the other end."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_BUFFER)
        transport.pause_reading()
        if self._begin is not None:
            self._begin(self)

    def resume(self) -> None:
        """Read, now or again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        """Pass one piece on, if it may pass."""
        self.n_received += len(data)
        self.count(len(data))
        try:
            if self._check is not None:
                self._check.feed(data)
        except ForgedPush as error:
            self._finish(f"sent {error}", is_fault=True)
            return
        if self.other is not None and self.other._transport is not None:
            self.other._transport.write(data)

    def pause_writing(self) -> None:
        """Too much is waiting to leave here: read no more there."""
        if self.other is not None and self.other._transport is not None:
            self.other._transport.pause_reading()

    def resume_writing(self) -> None:
        """There is room again."""
        if self.other is not None:
            self.other.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """What ends here ends there."""
        self._finish("closed the connection of its engine")

    def drop(self) -> None:
        """Close both ends without a word."""
        self.close()
        if self.other is not None:
            self.other.close()

    def close(self) -> None:
        """Close this end; what is on its way out still goes."""
        self.is_closed = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close both ends now, whatever is on its way."""
        self.drop()
        for end in (self, self.other):
            if end is not None and end._transport is not None:
                with suppress(AttributeError):  # Python 3.11.2, of a transport closed twice
                    end._transport.abort()

    def _finish(self, reason: str, *, is_fault: bool = False) -> None:
        first, on_end = not self.is_closed, self.on_end
        self.drop()
        if first and on_end is not None:
            on_end(self.rank, reason, is_fault)
