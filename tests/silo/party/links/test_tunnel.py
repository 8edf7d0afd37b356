"""Engines joined by tunnels, in one process: real TLS, real sockets, engines that only listen."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from silo_pushes import push
from silo_relay import Relay, relay
from tacit.silo.party.folder import (
    Limits,
    PartyFolder,
    read_folder,
    split_address,
    write_folders,
)
from tacit.silo.party.links.gate import ForeignCertificate, Gate, Purpose
from tacit.silo.party.links.tunnel import EngineFolder, Tunnel
from tacit.silo.party.localhost import local_addresses
from tacit.silo.plan import Terms

TERMS = Terms(program="fedst", parties=("a", "b", "c"), protocol="ABY3")
LIMITS = Limits()
LONG = 60.0  # for a busy machine


@dataclass
class End:
    """One party's gate and tunnel, and an engine that keeps what it hears."""

    folder: PartyFolder
    home: Path
    heard: bytearray = field(default_factory=bytearray)
    lost: list[tuple[int, str, bool]] = field(default_factory=list)
    opened: list[asyncio.StreamWriter] = field(default_factory=list)
    server: asyncio.Server | None = None

    async def open(self) -> None:
        self.gate = Gate(self.folder)
        self.tunnel = Tunnel(
            self.gate,
            self.home,
            rank=self.folder.rank,
            n_computing=3,
            on_lost=lambda *what: self.lost.append(what),
        )
        await self.gate.open(
            lambda rank, purpose: self.tunnel.accept(rank) if purpose == Purpose.ENGINE else None
        )
        await self.tunnel.open(join_seconds=LONG)

    async def start_engine(self) -> None:
        async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(1 << 16):
                self.heard += data
                writer.write(b"ok")
            writer.close()

        address = self.tunnel.addresses[self.folder.rank].removeprefix("unix:")
        self.server = await asyncio.start_unix_server(listen, address)

    async def to(self, rank: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """What this party's engine gets when it connects to another engine."""
        path = self.tunnel.addresses[rank].removeprefix("unix:")
        reader, writer = await asyncio.open_unix_connection(path)
        self.opened.append(writer)
        return reader, writer

    async def close(self) -> None:
        await self.gate.shut()
        await self.tunnel.close()
        for writer in self.opened:
            writer.close()
        if self.server is not None:
            self.server.close()


@asynccontextmanager
async def two_ends(
    tmp_path: Path, *, limits: Limits = LIMITS, lines: list[Relay] | None = None
) -> AsyncIterator[tuple[End, End]]:
    """`lines` is given the line from a to b, if asked for."""
    with (
        local_addresses(3) as addresses,
        relay(split_address(addresses[1])) as line,
        tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as short,
    ):
        configs = write_folders(tmp_path / "f", TERMS, addresses=addresses, limits=limits)
        if lines is not None:
            lines.append(line)
            text = configs["a"].read_text().replace(addresses[1], line.address)
            configs["a"].write_text(text)
        ends = []
        for name in "ab":
            home = Path(short) / name
            home.mkdir()
            ends.append(End(read_folder(configs[name]), home))
            await ends[-1].open()
        try:
            yield ends[0], ends[1]
        finally:
            for end in ends:
                await end.close()
            await asyncio.sleep(0.2)  # for the ends of TLS to be said and heard


async def until(condition: Any) -> None:
    async with asyncio.timeout(LONG):
        while not condition():
            await asyncio.sleep(0.01)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_what_an_engine_says_arrives_and_the_answer_comes_back(tmp_path: Path) -> None:
    async def work() -> None:
        async with two_ends(tmp_path) as (a, b):
            reader, writer = await a.to(1)
            said = push(0) + push(0, b"x" * 3_000_000)
            writer.write(said)  # before the other engine listens
            await asyncio.sleep(0.1)
            await b.start_engine()
            await until(lambda: len(b.heard) == len(said))
            assert bytes(b.heard) == said
            assert await asyncio.wait_for(reader.readexactly(2), LONG) == b"ok"
            assert a.tunnel.n_sent == len(said)
            assert (a.lost, b.lost) == ([], [])

    run(work())


@pytest.mark.parametrize(
    ("forged", "words"),
    [(push(2), "in the name of rank 2"), (b"GET /flags HTTP/1.1\r\n\r\n", "not a message")],
    ids=["another rank", "http"],
)
def test_a_peer_that_forges_a_message_is_named_at_once(
    tmp_path: Path, forged: bytes, words: str
) -> None:
    async def work() -> None:
        async with two_ends(tmp_path) as (a, b):
            await b.start_engine()
            reader, writer = await a.to(1)
            writer.write(push(0))
            await until(lambda: len(b.heard) == len(push(0)))
            writer.write(forged)
            await until(lambda: b.lost)
            ((rank, reason, is_fault),) = b.lost
            assert rank == 0
            assert words in reason
            assert is_fault
            assert bytes(b.heard) == push(0)  # nothing of it reached the engine
            await asyncio.wait_for(reader.read(), LONG)  # and the line is closed

    run(work())


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the limit is Linux's")
@pytest.mark.seconds
@pytest.mark.parametrize("silence", [1.5, 60.0])
def test_a_line_that_takes_nothing_more_is_given_up(tmp_path: Path, silence: float) -> None:
    """After twice `silence_seconds`; with a long one the line is still open by then."""

    async def work() -> None:
        lines: list[Relay] = []
        limits = Limits(silence_seconds=silence)
        async with two_ends(tmp_path, limits=limits, lines=lines) as (a, b):
            await b.start_engine()
            reader, writer = await a.to(1)
            writer.write(push(0))
            assert await asyncio.wait_for(reader.readexactly(2), LONG) == b"ok"
            lines[0].hold_engines()
            writer.write(push(0, bytes(60_000_000)))  # more than all buffers on the way hold
            start = time.monotonic()
            if silence < 10.0:
                await until(lambda: a.lost)
                assert a.lost == [(1, "closed the connection of its engine", False)]
                assert time.monotonic() - start > 1.5 * silence
            else:
                await asyncio.sleep(6.0)
                assert a.lost == []

    run(work())


def test_a_second_line_of_one_engine_is_closed_and_the_first_goes_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with two_ends(tmp_path) as (a, b):
            await b.start_engine()
            _, first = await a.to(1)
            first.write(push(0))
            await until(lambda: len(b.heard) == len(push(0)))
            second, _ = await a.to(1)
            assert await asyncio.wait_for(second.read(), LONG) == b""
            first.write(push(0))
            await until(lambda: len(b.heard) == 2 * len(push(0)))
            assert b.lost == []

    run(work())


def test_nobody_else_answers_for_a_party(tmp_path: Path) -> None:
    """The certificate of b, whom a trusts, at the address that a has for c."""

    async def work() -> None:
        async with two_ends(tmp_path) as (a, b):
            peers = list(a.folder.peers)
            assert peers[2].name == "c"
            config = tmp_path / "f" / "a" / "party.toml"
            config.write_text(config.read_text().replace(peers[2].address, peers[1].address))
            gate = Gate(read_folder(config))
            with pytest.raises(ForeignCertificate, match="c"):
                await gate.connect(2, Purpose.ENGINE, asyncio.Protocol())
            # The twin: as itself it is found there.
            (await gate.connect(1, Purpose.ENGINE, asyncio.Protocol())).abort()
            assert b.lost == []

    run(work())


def test_the_folder_of_the_sockets_is_private_short_and_removed() -> None:
    made = EngineFolder()
    assert made.path.stat().st_mode & 0o777 == 0o700
    assert len(str(made.path / "to-255.sock")) <= 100
    (made.path / "own.sock").touch()
    made.remove()
    assert not made.path.exists()
