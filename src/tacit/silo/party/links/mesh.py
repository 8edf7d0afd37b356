"""The parties' own channel: mutual TLS between every two, heartbeats, and which party is at fault.

Every party listens at its address and connects to every other one; it sends on the connections
that it opened and receives on those that it accepted. The gate checks both ends of each connection
against the pinned certificate, so everybody notices a foreign certificate and can name its party.
Over this channel travel the plan, the shares of inputs and openings, and signs of life; the traffic
of the engines goes through the tunnel.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tacit.errors import TacitError
from tacit.silo.party.folder import PartyFolder
from tacit.silo.party.links.frames import FrameError, Header, encode, read_frame
from tacit.silo.party.links.gate import ForeignCertificate, Gate, stream_protocol

BEAT_SECONDS = 1.0
RETRY_SECONDS = 0.2
LINGER_SECONDS = 5.0
# How long a party that cannot take part tries to reach the others, to tell them why.
REFUSAL_SECONDS = 10.0
# A party that is only leaving an earlier run closes once or twice.
TURNED_AWAY_TIMES = 5

OnHello = Callable[[int, Header], None]
OnFrame = Callable[[int, Header, bytes], None]


class RunFailure(TacitError):
    """The run is over because of one party; the sentence names it."""

    def __init__(self, culprit: str, sentence: str) -> None:
        super().__init__(sentence)
        self.culprit = culprit


@dataclass(slots=True)
class _PeerState:
    """What is known about one other party: its connections and its last sign of life."""

    rank: int
    name: str
    sender: asyncio.StreamWriter | None = None
    heard: float = field(default_factory=time.monotonic)
    greeted: asyncio.Event = field(default_factory=asyncio.Event)
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    told: bool = False
    finished: bool = False


class Mesh:
    """All connections of one party to the others, until the first failure or the end."""

    def __init__(
        self, folder: PartyFolder, gate: Gate, *, on_hello: OnHello, on_frame: OnFrame
    ) -> None:
        self._folder = folder
        self._gate = gate
        self._on_hello = on_hello
        self._on_frame = on_frame
        self._hello: Header = {}
        self._peers = [_PeerState(rank, peer.name) for rank, peer in enumerate(folder.peers)]
        self.others = [p for p in self._peers if p.rank != folder.rank]
        self.failed: asyncio.Future[RunFailure] = asyncio.get_running_loop().create_future()
        self._tasks: list[asyncio.Task[None]] = []
        self._deadline = 0.0
        self._refuses = False
        self._joined = False
        self._closing = False

    # -- joining ---------------------------------------------------------------------------

    def open(self, hello: Header) -> None:
        """Start connecting to everybody; `hello` is what each of them is told.

        If it says that this party cannot take part, each has to hear it once, and may go then.
        """
        self._hello = hello
        self._refuses = "refused" in hello
        self._deadline = time.monotonic() + self._patience
        for peer in self.others:
            self._start(self._connect(peer))

    async def wait_until_joined(self) -> None:
        """Wait until every other party has joined; name the first one that did not in time."""
        limit = self._patience
        everybody = asyncio.ensure_future(self._everybody())
        either: set[asyncio.Future[Any]] = {everybody, self.failed}
        first = asyncio.FIRST_COMPLETED
        try:
            done, _ = await asyncio.wait(either, timeout=limit, return_when=first)
        finally:
            everybody.cancel()
        if not done:
            raise self._absent(limit)
        if self.failed.done():
            await self._linger()
            raise self.failed.result()
        self._joined = True
        self._start(self._send_heartbeats())
        self._start(self._watch_silence())

    @property
    def _patience(self) -> float:
        limit = self._folder.limits.join_seconds
        return min(limit, REFUSAL_SECONDS) if self._refuses else limit

    @property
    def is_complete(self) -> bool:
        """Whether every other party has connected to this one: nobody else is expected."""
        return all(peer.came.is_set() for peer in self.others)

    async def _linger(self) -> None:
        """Stay a little after an early refusal, so that parties that come later learn why."""
        end = min(time.monotonic() + LINGER_SECONDS, self._deadline)
        while time.monotonic() < end and not all(p.greeted.is_set() for p in self.others):
            await asyncio.sleep(0.05)

    async def _everybody(self) -> None:
        # A peer that leaves before the start may come back, hence the loop.
        while not all(self._has_met(peer) for peer in self.others):
            await asyncio.sleep(0.02)

    def _has_met(self, peer: _PeerState) -> bool:
        return peer.told if self._refuses else peer.greeted.is_set() and peer.accepted.is_set()

    def _absent(self, limit: float) -> RunFailure:
        late = [peer.name for peer in self.others if not self._has_met(peer)]
        names = ", ".join(f"'{name}'" for name in late)
        sentence = f"party {names} did not join within {limit:g} s; start it again."
        return RunFailure(late[0], sentence)

    async def _connect(self, peer: _PeerState) -> None:
        """Open our connection to one peer, trying again until the deadline."""
        turned_away = 0
        while time.monotonic() < self._deadline and not self._closing:
            try:
                await self._greet(peer)
                return
            except (ForeignCertificate, ssl.SSLCertVerificationError):
                self.fail(peer.name, foreign_certificate(peer.name))
                return
            except asyncio.IncompleteReadError:
                # The peer closed the connection without a reply: asyncio does not show TLS alerts.
                turned_away += 1
                if turned_away == TURNED_AWAY_TIMES:
                    self.fail(
                        peer.name,
                        f"party '{peer.name}' does not accept the certificate of "
                        f"'{self._folder.name}'; exchange certificates again.",
                    )
                    return
            except (OSError, FrameError):
                pass  # not listening yet, or just leaving an earlier run
            await asyncio.sleep(RETRY_SECONDS)

    async def _greet(self, peer: _PeerState) -> None:
        reader, writer = await self._gate.open_stream(peer.rank)
        writer.write(encode(self._hello))
        header, _ = await read_frame(reader)
        if header.get("dry"):
            writer.close()
            raise FrameError(f"party '{peer.name}' only checks whether it could start.")
        peer.sender = writer
        self._note_hello(peer, header)
        peer.told = True
        peer.accepted.set()
        # Nothing more comes on this connection; its end is the first sign that the peer is gone.
        self._start(self._listen_for_end(peer, reader))

    def accept(self, rank: int) -> asyncio.BaseProtocol:
        """A protocol for a connection that the party `rank` opened."""
        peer = self._peers[rank]
        return stream_protocol(lambda reader, writer: self._serve(peer, reader, writer))

    async def _serve(
        self, peer: _PeerState, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One accepted connection: exchange hellos, then read the peer's frames."""
        try:
            header, _ = await read_frame(reader)
            if header["t"] != "hello":
                return
            writer.write(encode(self._hello))
            if header.get("dry"):
                return  # only a check
            self._note_hello(peer, header)
            peer.told = True
            peer.came.set()
            await self._receive(peer, reader)
        except (OSError, ssl.SSLError, asyncio.IncompleteReadError, FrameError):
            pass  # it left before saying anything
        except asyncio.CancelledError:
            pass  # the server closes; the streams module would log this as an error
        finally:
            writer.close()

    def _note_hello(self, peer: _PeerState, hello: Header) -> None:
        peer.heard = time.monotonic()
        if hello.get("t") != "hello" or peer.greeted.is_set():
            return
        try:
            self._on_hello(peer.rank, hello)
        except RunFailure as failure:
            self.fail(failure.culprit, str(failure))
        except TacitError as error:
            self.fail(peer.name, f"party '{peer.name}' sent an invalid hello: {error}")
        peer.greeted.set()

    # -- running ---------------------------------------------------------------------------

    async def _receive(self, peer: _PeerState, reader: asyncio.StreamReader) -> None:
        def heard() -> None:
            peer.heard = time.monotonic()

        try:
            while True:
                header, payload = await read_frame(reader, heard=heard)
                self._dispatch(peer, header, payload)
        except (OSError, ssl.SSLError, asyncio.IncompleteReadError):
            self._lost(peer)
        except FrameError as error:
            self.fail(peer.name, f"party '{peer.name}' sent something unreadable: {error}")

    def _dispatch(self, peer: _PeerState, header: Header, payload: bytes) -> None:
        kind = header["t"]
        if kind == "abort":
            self._aborted(peer, header)
        elif kind == "done":
            peer.finished = True
            self._on_frame(peer.rank, header, payload)
        elif kind != "beat":
            self._on_frame(peer.rank, header, payload)

    def _aborted(self, peer: _PeerState, header: Header) -> None:
        sentence = printable(header.get("sentence", ""))
        culprit = printable(header.get("culprit", peer.name))
        if culprit == self._folder.name:
            sentence = f"party '{peer.name}' ended the run: {sentence}"
        self.fail(culprit, sentence)

    async def _listen_for_end(self, peer: _PeerState, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, ssl.SSLError):
            await reader.read()
        self._lost(peer)

    def _lost(self, peer: _PeerState) -> None:
        if peer.finished or self._closing or self._refuses:
            return
        if not self._joined:
            # It was leaving an earlier run, or it was restarted: wait for it again.
            self._forget(peer)
        else:
            # An abort with the true reason may still be in the other connection.
            asyncio.get_running_loop().call_later(0.3, self._blame_death, peer)

    def _forget(self, peer: _PeerState) -> None:
        if peer.accepted.is_set():
            peer.accepted.clear()
            self._start(self._connect(peer))
        peer.greeted.clear()
        peer.came.clear()

    def _blame_death(self, peer: _PeerState) -> None:
        if not peer.finished and not self._closing:
            self.fail(
                peer.name,
                f"party '{peer.name}' is gone: its connection closed in the middle of the run; "
                "start all parties again.",
            )

    async def _send_heartbeats(self) -> None:
        while True:
            for peer in self.others:
                # A full buffer means that data is on its way, which is a sign of life in itself.
                if peer.sender is not None and not peer.sender.transport.get_write_buffer_size():
                    peer.sender.write(encode({"t": "beat"}))
            await asyncio.sleep(BEAT_SECONDS)

    async def _watch_silence(self) -> None:
        limit = self._folder.limits.silence_seconds
        last = time.monotonic()
        while True:
            await asyncio.sleep(min(BEAT_SECONDS, limit / 4))
            now = time.monotonic()
            if now - last > limit / 2:
                # It was this process that was suspended: give the others time to be heard again.
                for peer in self.others:
                    peer.heard = now
            last = now
            for peer in self.others:
                if not peer.finished and now - peer.heard > limit:
                    self.fail(
                        peer.name,
                        f"party '{peer.name}' has been silent for {limit:g} s, frozen or cut "
                        "off; start all parties again.",
                    )

    def send(self, to: int, header: Header, payload: bytes = b"") -> None:
        """Queue one frame to a party; the order is kept."""
        sender = self._peers[to].sender
        if sender is not None and not sender.is_closing():
            sender.write(encode(header, payload))

    def fail(self, culprit: str, sentence: str) -> None:
        """End the run for one reason; the first reason counts."""
        if not self.failed.done():
            self.failed.set_result(RunFailure(culprit, sentence))

    async def send_to_all(self, header: Header, *, within: float) -> None:
        """Send to all that can be reached, and wait until it has left this process."""
        for peer in self.others:
            self.send(peer.rank, header)
        await self.flush(within=within)

    async def flush(self, *, within: float) -> None:
        """Wait until everything queued has left this process."""
        writers = [p.sender for p in self.others if p.sender is not None]
        flushed = asyncio.gather(*(_flush(w) for w in writers), return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(flushed, within)

    async def close(self) -> None:
        """Close all connections."""
        self._closing = True
        for task in self._tasks:
            task.cancel()
        for peer in self.others:
            if peer.sender is not None:
                peer.sender.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))


async def _flush(writer: asyncio.StreamWriter) -> None:
    while writer.transport.get_write_buffer_size() and not writer.is_closing():
        await asyncio.sleep(0.01)


def foreign_certificate(name: str) -> str:
    """The sentence about a party at whose address somebody else answers."""
    return (
        f"the certificate presented at the address of party '{name}' is not the one in this "
        "folder; exchange certificates again."
    )


def printable(text: object) -> str:
    """A peer's text, made safe to print: one line, no control characters, not too long."""
    line = "".join(c for c in str(text) if c.isprintable())
    return line[:400]
