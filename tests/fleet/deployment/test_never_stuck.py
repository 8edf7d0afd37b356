"""What once stopped a fleet: a refused batch, a full disk, half-sent heads, a rush."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from fleet_localhost import free_ports
from fleet_servers import RUN, TwoServers
from tacit.features.feature_map import generated_signals
from tacit.fleet.deployment import analyser as analyser_module
from tacit.fleet.deployment import batch_delivery
from tacit.fleet.deployment.batch_delivery import BatchDelivery
from tacit.fleet.deployment.batches.pools import Refused
from tacit.fleet.deployment.batches.registry import Registry, write_registry
from tacit.fleet.deployment.http import (
    _bare_app,
    analyser_ingest_app,
    analyser_public_app,
    shuffler_app,
)
from tacit.fleet.deployment.members.routes import add_membership
from tacit.fleet.deployment.serving import bodies
from tacit.fleet.deployment.shuffler_state import Batch
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import make_plan
from tacit.system.files import write_atomic
from tacit.system.serving import bodies as shared_bodies
from tacit.system.serving import connections

N, LENGTH = 4, 24
X = generated_signals(1, 1, LENGTH, np.random.default_rng(1))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_delivery, "_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(batch_delivery, "_TICK_SECONDS", 0.02)


def plan(mechanism: str) -> FleetPlan:
    return make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=LENGTH,
        mechanism=mechanism,
        n_clients=N,
        n_rounds=2,
        n_kernels=4,
    )


@pytest.fixture(params=["privunit", "distributed"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoServers]:
    servers = TwoServers(plan(request.param), tmp_path, n=N)
    yield servers
    servers.close()


@contextlib.asynccontextmanager
async def listening(app: Any) -> AsyncIterator[str]:
    """An app behind the services' own limits, without TLS."""
    port = free_ports(1)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host="127.0.0.1",
            port=port,
            log_config=None,
            ws="none",
            http=connections.LimitedProtocol,
        )
    )
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
        if task.done():
            task.result()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def both(fleet: TwoServers) -> AsyncIterator[tuple[str, BatchDelivery]]:
    """Both services, talking to each other; the shuffler's address."""
    ingest = analyser_ingest_app(fleet.analyser, max_bytes=10**6)
    async with listening(ingest) as url:
        sums = fleet.sums if fleet.learner.helper_bytes else None
        delivery = BatchDelivery(url=url, tls=ssl.create_default_context(), sums=sums)
        async with listening(shuffler_app(fleet.shuffler, delivery)) as shuffler:
            yield shuffler, delivery


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


def send_all(fleet: TwoServers, round_number: int) -> None:
    for name in fleet.names:
        report = fleet.report(name, X, ["a"], round_number=round_number)
        fleet.send(report, round_number=round_number)


@pytest.mark.seconds
def test_both_mechanisms_go_through_the_same_services(fleet: TwoServers) -> None:
    async def story() -> None:
        async with both(fleet):
            for number in (1, 2):
                await until(lambda: fleet.shuffler.round_number == number)  # noqa: B023
                send_all(fleet, number)
            await until(lambda: fleet.analyser.finished)

    asyncio.run(story())
    assert [record.n for record in fleet.analyser.state.history] == [N, N]
    assert all(record.released for record in fleet.analyser.state.history)


@pytest.mark.seconds
def test_a_batch_that_is_refused_for_good_ends_its_round_on_both_sides(
    fleet: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once both waited for ever: the analyser for the batch, the shuffler for the next round."""

    async def story() -> None:
        async with both(fleet):
            await until(lambda: fleet.shuffler.round_number == 1)
            with monkeypatch.context() as patch:
                patch.setattr(fleet.analyser, "n_min", N + 1)  # so that the batch is too small
                send_all(fleet, 1)
                await until(lambda: fleet.analyser.state.next_round == 2)
            await until(lambda: fleet.shuffler.round_number == 2)
            send_all(fleet, 2)
            await until(lambda: fleet.analyser.finished)

    asyncio.run(story())
    assert [record.released for record in fleet.analyser.state.history] == [False, True]
    (debit,) = [e for e in fleet.analyser._books._ledger.entries() if e.subject]
    assert "round 2" in debit.purpose, "what was not opened costs nothing"


@pytest.mark.seconds
def test_a_sum_that_is_refused_for_good_ends_its_round_on_both_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once both waited for ever: the analyser for the sum, the helper for another question."""
    fleet = TwoServers(plan("distributed"), tmp_path, n=N)

    def never(*_: object, **__: object) -> bytes:
        raise Refused("wrong-set", "the analyser's set of reports is not this server's.")

    async def story() -> None:
        async with both(fleet):
            await until(lambda: fleet.shuffler.round_number == 1)
            with monkeypatch.context() as patch:
                patch.setattr(fleet.sums, "give", never)
                send_all(fleet, 1)
                await until(lambda: fleet.shuffler.round_number == 2)
            send_all(fleet, 2)
            await until(lambda: fleet.analyser.finished)

    asyncio.run(story())
    assert [record.released for record in fleet.analyser.state.history] == [False, True]
    fleet.close()


@pytest.mark.seconds
def test_a_full_disk_shows_and_heals(fleet: TwoServers, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        public = analyser_public_app(fleet.analyser)
        async with both(fleet) as (shuffler, delivery), listening(public) as url:
            await until(lambda: fleet.shuffler.round_number == 1)
            shown: list[str | None] = []  # by the shuffler, at each further attempt

            def full(*_: object) -> None:
                shown.append(delivery.trouble)
                raise OSError(28, "No space left on device")

            with monkeypatch.context() as patch:
                patch.setattr(analyser_module, "write_inbox", full)
                send_all(fleet, 1)
                await until(lambda: len(shown) >= 4)
                assert None not in shown[1:], "it is shown until the batch is taken"
                async with httpx.AsyncClient(trust_env=False) as client:
                    unwell = await client.get(f"{url}/healthz")
                    also = await client.get(f"{shuffler}/healthz")
                    said = (await client.get(f"{url}/v1/status")).json()["trouble"]
                    gauges = (await client.get(f"{url}/metrics")).text
                assert (unwell.status_code, also.status_code) == (503, 503)
                assert said == "the batch cannot be written to disk: No space left on device"
                assert "tacit_analyser_trouble 1.0" in gauges
            await until(lambda: fleet.analyser.state.next_round == 2)
            await until(lambda: fleet.shuffler.round_number == 2)
            async with httpx.AsyncClient(trust_env=False) as client:
                assert (await client.get(f"{url}/healthz")).json() == {
                    "healthy": True,
                    "trouble": None,
                }
                assert (await client.get(f"{shuffler}/healthz")).status_code == 200

    asyncio.run(story())
    assert [record.n for record in fleet.analyser.state.history] == [N]


BROKEN_LISTS = {
    "a bad line": b"node-x 12\n",
    "half a key": b"node-x abcdef",
    "no text": b"\xff\xfe",
    "two names for one key": b"again %s\n",
}


@pytest.mark.seconds
@pytest.mark.parametrize("how", [*BROKEN_LISTS, "empty", "gone"])
def test_a_list_of_nodes_that_cannot_be_read_shows_and_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Once it ended the run for good at the analyser, and answered nodes with a 500."""
    monkeypatch.setattr(analyser_module, "_RETRY_SECONDS", 0.05)
    fleet = TwoServers(plan("distributed"), tmp_path, n=N)
    path = tmp_path / "nodes.txt"
    write_registry(path, fleet.registry.nodes())
    whole = path.read_bytes()

    def break_it() -> None:
        if how == "gone":
            path.unlink()
        elif how == "empty":
            path.write_bytes(b"")
        else:
            added = BROKEN_LISTS[how]
            path.write_bytes(whole + (added % whole.split()[1] if b"%s" in added else added))

    fleet.registry = Registry.read(path)
    fleet.start_shuffler()
    fleet.close()
    fleet.start_analyser()

    async def story() -> None:
        public = analyser_public_app(fleet.analyser)
        async with (
            both(fleet) as (shuffler, _),
            listening(public) as analyser,
            httpx.AsyncClient(trust_env=False) as client,
        ):

            async def well() -> list[int]:
                asked = [await client.get(f"{url}/healthz") for url in (shuffler, analyser)]
                return [answer.status_code for answer in asked]

            await until(lambda: fleet.shuffler.round_number == 1)
            assert await well() == [200, 200]
            first = fleet.report(fleet.names[0], X, ["a"], round_number=1)
            break_it()
            answer = await client.post(
                f"{shuffler}/v1/reports/{RUN}/1",
                content=first.body,
                headers={"x-tacit-node": first.node, "x-tacit-signature": first.signature.hex()},
            )
            assert (answer.status_code, answer.json()["code"]) == (503, "list")
            assert await well() == [503, 503]
            said = (await client.get(f"{shuffler}/v1/status")).json()["trouble"]
            assert said.startswith("the list of nodes cannot be used: ")
            write_atomic(path, whole)
            assert await well() == [200, 200]
            taken = fleet.analyser.take

            def take_and_break(batch: Batch) -> None:
                taken(batch)
                break_it()

            with monkeypatch.context() as patch:
                patch.setattr(fleet.analyser, "take", take_and_break)
                send_all(fleet, 1)
                await until(lambda: fleet.analyser.processing)
                await asyncio.sleep(0.5)  # some attempts at it
            assert fleet.analyser.state.stopped is None
            assert fleet.analyser.state.next_round == 1
            assert await well() == [503, 503]
            write_atomic(path, whole)
            await until(lambda: fleet.analyser.state.next_round == 2)

    asyncio.run(story())
    (record,) = fleet.analyser.state.history
    assert (record.n, record.released) == (N, True)
    debits = [e for e in fleet.analyser._books._ledger.entries() if e.subject]
    assert len(debits) == 1, "an attempt is not paid for twice"
    fleet.close()


def test_an_analyser_that_is_away_shows_at_the_shuffler(tmp_path: Path) -> None:
    fleet = TwoServers(plan("privunit"), tmp_path, n=N)

    async def story() -> None:
        gone = f"http://127.0.0.1:{free_ports(1)}"
        delivery = BatchDelivery(url=gone, tls=ssl.create_default_context())
        app = shuffler_app(fleet.shuffler, delivery)
        async with listening(app) as url, httpx.AsyncClient(trust_env=False) as client:
            await until(lambda: delivery.trouble is not None)
            status = (await client.get(f"{url}/v1/status")).json()
            assert status["trouble"] == "the analyser does not answer (ConnectError)"
            assert (await client.get(f"{url}/healthz")).status_code == 503

    asyncio.run(story())
    fleet.close()


@pytest.mark.parametrize("mine", [True, False])
def test_only_the_operator_sees_reports_come(fleet: TwoServers, *, mine: bool) -> None:
    """Who sees the count grow sees when a device is there."""
    operator = "127.0.0.1" if mine else "127.0.0.2"

    async def story() -> None:
        delivery = BatchDelivery(url="https://localhost:1", tls=ssl.create_default_context())
        fleet.shuffler.open_round(1)
        app = shuffler_app(fleet.shuffler, delivery, count_shown_to=operator)
        async with listening(app) as url, httpx.AsyncClient(trust_env=False) as client:
            shown = []
            for name in fleet.names:
                report = fleet.report(name, X, ["a"], round_number=1)
                fleet.send(report, round_number=1)
                said = (await client.get(f"{url}/v1/status")).json()
                shown.append((said["received"], said["enough_reports"]))
        first = fleet.shuffler.n_min
        counts = range(1, N + 1)
        assert shown == [(n if mine else None, n >= first) for n in counts]

    asyncio.run(story())


async def raw(url: str, content: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(content)
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize(
    "half",
    [b"", b"GET /v1/sta", b"GET /v1/status HTTP/1.1\r\nhost: x\r\nx-slow: "],
    ids=["nothing", "half a line", "half a head"],
)
def test_half_a_head_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    fleet = TwoServers(plan("privunit"), tmp_path, n=N)

    async def story() -> None:
        async with listening(analyser_public_app(fleet.analyser)) as url:
            reader, writer = await raw(url, half)
            async with asyncio.timeout(30):  # far more than it takes; without a limit it hangs
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read() == b""
            writer.close()
            # A whole request is served, and a second half one on the same connection is not.
            whole = b"GET /v1/status HTTP/1.1\r\nhost: x\r\n\r\n"
            reader, writer = await raw(url, whole)
            assert b"200 OK" in await reader.readline()
            writer.write(b"GET /v1/sta")
            async with asyncio.timeout(30):
                with contextlib.suppress(ConnectionResetError):
                    await reader.read()
            writer.close()

    asyncio.run(story())
    fleet.close()


def test_a_report_that_drips_in_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "REPORT_SECONDS", 0.3)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    fleet = TwoServers(plan("privunit"), tmp_path, n=N)
    fleet.shuffler.open_round(1)

    async def story() -> None:
        delivery = BatchDelivery(url="http://127.0.0.1:1", tls=ssl.create_default_context())
        async with listening(shuffler_app(fleet.shuffler, delivery)) as url:
            head = (
                f"POST /v1/reports/{RUN}/1 HTTP/1.1\r\nhost: x\r\n"
                f"content-length: {fleet.shuffler.body_bytes}\r\n\r\n"
            )
            await drips(url, head)

    asyncio.run(story())
    assert fleet.shuffler.received == 0
    fleet.close()


async def drips(url: str, head: str) -> None:
    """Send a body byte by byte until the service has had enough, says so, and cuts off."""
    reader, writer = await raw(url, head.encode())
    async with asyncio.timeout(30):
        for _ in range(1000):
            writer.write(secrets.token_bytes(1))
            await asyncio.sleep(0.02)
            if reader._buffer:  # type: ignore[attr-defined]
                break
        assert b"408" in await reader.readline()
        while not reader.at_eof() and reader.exception() is None:  # then its connection ends
            writer.write(b" ")
            await asyncio.sleep(0.02)
            with contextlib.suppress(TimeoutError, ConnectionResetError):
                async with asyncio.timeout(0.01):
                    await reader.read(1000)
    writer.close()


@pytest.mark.parametrize("kind", ["join", "member", "leave", "rekey"])
def test_a_membership_request_that_drips_in_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Seen to fail at 1aadbb1: 4,096 bytes at one a minute held a connection for days."""
    monkeypatch.setattr(shared_bodies, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)

    async def story() -> None:
        app = _bare_app(None)
        add_membership(app, folder=tmp_path, part="shuffler")
        async with listening(app) as url:
            await drips(url, f"POST /v1/{kind} HTTP/1.1\r\nhost: x\r\ncontent-length: 4096\r\n\r\n")

    asyncio.run(story())


def test_beyond_the_most_connections_the_next_is_told_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 3)
    fleet = TwoServers(plan("privunit"), tmp_path, n=N)

    async def story() -> None:
        async with listening(analyser_public_app(fleet.analyser)) as url:
            held = [await raw(url, b"GET") for _ in range(3)]
            async with httpx.AsyncClient(trust_env=False) as client:
                await until_busy(client, url)
                for _, writer in held:
                    writer.close()
                async with asyncio.timeout(30):
                    while (await client.get(f"{url}/v1/status")).status_code != 200:
                        await asyncio.sleep(0.05)

    asyncio.run(story())
    fleet.close()


async def until_busy(client: httpx.AsyncClient, url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            answer = await client.get(f"{url}/v1/status", headers={"connection": "close"})
            if answer.status_code == 503:
                assert answer.json()["code"] == "busy"
                return
            await asyncio.sleep(0.05)
