"""The server itself: limits on time, erasing beside the service, and how clients are told."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from collector_parts import SetClock, counting_model, enrolled, open_store, upload
from tacit.local.collector.messages import ENROL_PATH
from tacit.local.collector.retention import Retention, confirm_clock
from tacit.local.collector.server import (
    bound_socket,
    collecting_server,
    erase_in_background,
    keep_house,
)
from tacit.local.collector.service import Collector
from tacit.local.collector.storage.clock import DAY_SECONDS
from tacit.local.collector.storage.store import Store, store_uploads
from tacit.system.serving import bodies, connections


@contextlib.contextmanager
def running(store: Store) -> Iterator[int]:
    """A collector in this process, without TLS; yields its port."""
    listening = bound_socket("127.0.0.1", 0)
    server = collecting_server(Collector(counting_model(), store), tls=None)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=60)
        listening.close()


@pytest.mark.parametrize("sent", [b"", b"POST /api/releases HTTP/1.1\r\nHost: x\r\nX: "])
def test_whoever_sends_the_head_too_slowly_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    with (
        running(open_store(tmp_path / "r.db")) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as slow,
    ):
        slow.sendall(sent)
        with contextlib.suppress(ConnectionError):
            assert slow.recv(1) == b"", "the server ended it"
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200


def test_unfinished_handshakes_take_a_place() -> None:
    """What such a place means is tested on the fleet's services, which share it."""
    with bound_socket("127.0.0.1", 0) as listening:
        assert isinstance(listening, connections.LimitedSocket)


def test_a_body_that_drips_in_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.3)
    head = f"POST {ENROL_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n"
    with (
        running(open_store(tmp_path / "r.db")) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as slow,
    ):
        slow.sendall(head.encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                slow.sendall(b" ")
                time.sleep(0.02)
                if select.select([slow], [], [], 0)[0]:
                    break
            assert b"408" in slow.recv(100)


def test_a_head_without_end_is_cut_off(tmp_path: Path) -> None:
    with (
        running(open_store(tmp_path / "r.db")) as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as endless,
        contextlib.suppress(ConnectionError),
    ):
        endless.sendall(b"GET /health HTTP/1.1\r\nX: ")
        for _ in range(100):
            endless.sendall(b"x" * 10_000)
        assert endless.recv(1) == b""


def test_beyond_the_most_connections_a_device_is_told_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 1)
    with running(open_store(tmp_path / "r.db")) as port:
        url = f"http://127.0.0.1:{port}/health"
        with httpx.Client(trust_env=False) as first, httpx.Client(trust_env=False) as second:
            assert first.get(url).status_code == 200
            busy = second.get(url)
            assert busy.status_code == 503
            assert busy.headers["retry-after"] == "2"
            assert "come back later" in busy.json()["error"]


def test_a_slow_answer_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    health = Collector.health

    def slowly(collector: Collector) -> dict[str, object]:
        time.sleep(1.0)
        return health(collector)

    monkeypatch.setattr(Collector, "health", slowly)
    with running(open_store(tmp_path / "r.db")) as port:
        assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=60).status_code == 200


def test_old_releases_are_erased_beside_the_service(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SetClock()
    store = open_store(tmp_path / "r.db", clock=clock)
    device = enrolled(store)
    for _ in range(3):
        sent = upload(device, [secrets.token_hex(8)], [0])
        store.write(lambda database, sent=sent: store_uploads(database, [sent], day=clock.day()))  # type: ignore[misc]
        clock.passes(DAY_SECONDS)
    collector = Collector(counting_model(), store)
    with caplog.at_level(logging.INFO, logger="tacit.local.collector"):
        assert asyncio.run(erase_in_background(collector, Retention(releases_days=1))) == 2
    assert "2 releases were erased" in caplog.text
    assert store.read("SELECT count(*) FROM collector_releases") == [(1,)]
    collector.close()


def test_nothing_is_erased_by_a_clock_that_started_ahead(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Seen to fail at 1aadbb1: one hour after such a start everything was erased."""
    right = SetClock()
    store = open_store(tmp_path / "r.db", clock=right)
    sent = upload(enrolled(store), ["a"], [0])
    store.write(lambda database: store_uploads(database, [sent], day=right.day()))
    store.close()
    ahead = SetClock(right.now() + 400 * DAY_SECONDS)
    collector = Collector(counting_model(), open_store(tmp_path / "r.db", clock=ahead))
    ahead.passes(3600)
    for _ in range(2):
        asyncio.run(keep_house(collector, Retention(releases_days=30)))
    assert collector.store.read("SELECT count(*) FROM collector_releases") == [(1,)]
    assert "--confirm" in collector.health()["clock"]
    assert "nothing is erased" in caplog.text
    confirm_clock(collector.store)
    asyncio.run(keep_house(collector, Retention(releases_days=30)))
    assert collector.store.read("SELECT count(*) FROM collector_releases") == [(0,)]
    assert collector.health()["clock"] == "ok"
    collector.close()


def test_a_quiet_collector_notes_the_time(tmp_path: Path) -> None:
    """Otherwise its next start would look like a clock that is ahead."""
    clock = SetClock()
    collector = Collector(counting_model(), open_store(tmp_path / "r.db", clock=clock))
    for _ in range(10 * 24):
        clock.passes(3600)
        asyncio.run(keep_house(collector, Retention()))
    assert collector.store.last_seen() == int(clock.now())
    collector.close()


def test_health_tells_of_a_clock_that_was_set(tmp_path: Path) -> None:
    clock = SetClock()
    collector = Collector(counting_model(), open_store(tmp_path / "r.db", clock=clock))
    assert collector.health()["clock"] == "ok"
    clock.is_set(-7200)
    assert "-7200 s" in collector.health()["clock"]
    collector.close()
