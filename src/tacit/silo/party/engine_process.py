"""The engine as a child of the party: start it, talk to it, and explain how it ended.

SPU is native code: when a peer dies it may raise, exit with 255, crash or hang. None of that may
take the party down or keep it waiting, so the engine has a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tacit.silo.party.links.frames import FrameError, Header, encode, read_frame

OnEngineFrame = Callable[[Header, bytes], None]
OnEngineEnd = Callable[[str, bool], None]


class EngineProcess:
    """One engine process; `on_end(reason, own_fault)` is called if it ends before we end it.

    `own_fault` is True where the engine itself was killed, stopped or crashed, False where it only
    lost contact with the others, so that the party can look for the true culprit first.
    """

    def __init__(self, *, log: Path, on_frame: OnEngineFrame, on_end: OnEngineEnd) -> None:
        self._log = log
        self._on_frame = on_frame
        self._on_end = on_end
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._ending = False

    async def start(self) -> None:
        """Start the process; it imports its libraries while the parties still join."""
        ours, theirs = socket.socketpair()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tacit.silo.party.engine_worker",
                str(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
                # Its matrix products are many and small: more threads only get in each other's way.
                env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
            )
        finally:
            os.close(descriptor)
            theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        self._tasks = [
            asyncio.ensure_future(self._read(reader)),
            asyncio.ensure_future(self._wait()),
            asyncio.ensure_future(self._watch_stops()),
        ]

    @property
    def pid(self) -> int:
        """The engine's process id."""
        assert self._process is not None
        return self._process.pid

    def send(self, header: Header, payload: bytes = b"") -> None:
        """Queue one frame to the engine."""
        assert self._writer is not None
        if not self._writer.is_closing():
            self._writer.write(encode(header, payload))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(asyncio.IncompleteReadError, OSError, FrameError):
            while True:
                header, payload = await read_frame(reader)
                self._on_frame(header, payload)

    async def _wait(self) -> None:
        assert self._process is not None
        code = await self._process.wait()
        if not self._ending:
            self._on_end(*explain_exit(code))

    async def _watch_stops(self) -> None:
        """A stopped engine answers nobody while its party still sends heartbeats: report it."""
        while not self._ending:
            await asyncio.sleep(0.5)
            with suppress(ChildProcessError):
                state = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
                if state is not None and not self._ending:
                    self._on_end("its engine was stopped", True)
                    return

    async def end(self) -> None:
        """Kill the process, whatever it does, and wait until it is gone."""
        self._ending = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._writer is not None:
            self._writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def explain_exit(code: int) -> tuple[str, bool]:
    """Turn an exit code into words, and say whether it was the engine's own fault."""
    if code >= 0:
        return f"its engine ended with code {code}", False
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    # A native engine that loses its peers may also abort or crash; being killed is different.
    return f"its engine was ended by {name}", name in ("SIGKILL", "SIGTERM", "SIGINT")
