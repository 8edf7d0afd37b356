"""Connections that never finish their TLS handshake: cut off, counted, and no harm to others."""

from __future__ import annotations

import asyncio
import asyncio.constants
import contextlib
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from fleet_localhost import free_ports, local_fleet
from tacit.fleet.deployment.http import _bare_app
from tacit.system.certificates import self_signed, trust_only
from tacit.system.serving import connections
from tacit.system.serving.connections import LimitedProtocol, listen

MOST = 4
SILENT = b""
HALF_A_HELLO = b"\x16\x03\x01\x02\x00\x01"


def server(folder: Path) -> uvicorn.Server:
    certificate, key = folder / "tls.crt", folder / "tls.key"
    self_signed("analyser", hosts=("127.0.0.1",)).write(certificate=certificate, key=key)
    app = _bare_app(None)

    @app.get("/")
    async def hello() -> str:
        return "hello"

    config = uvicorn.Config(
        app,
        ssl_certfile=str(certificate),
        ssl_keyfile=str(key),
        http=LimitedProtocol,
        log_config=None,
        ws="none",
    )
    return uvicorn.Server(config)


@pytest.mark.parametrize("half", [SILENT, HALF_A_HELLO], ids=["silent", "half a hello"])
def test_half_open_handshakes_are_counted_and_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: bytes
) -> None:
    """All places are taken by connections that say nothing; later they are free again."""
    defaults: Any = asyncio.constants
    monkeypatch.setattr(defaults, "SSL_HANDSHAKE_TIMEOUT", 60.0)  # put back afterwards
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 1.5)
    monkeypatch.setattr(connections.LimitedSocket, "most", MOST)
    connections.limit_handshakes()
    port = free_ports(1)

    async def story() -> None:
        (bound,) = listen("127.0.0.1", port)
        running = server(tmp_path)
        task = asyncio.create_task(running.serve([bound]))
        while not running.started:
            await asyncio.sleep(0.02)
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * MOST)]
        for _, writer in held:
            writer.write(half)
        await asyncio.sleep(0.5)
        assert isinstance(bound, connections.LimitedSocket)
        assert len(bound._let_in) == MOST, "the others were closed"
        tls = trust_only(tmp_path / "tls.crt")
        async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=60) as client:
            with pytest.raises(httpx.TransportError):
                await client.get(f"https://127.0.0.1:{port}/")
            await asyncio.sleep(1.5)
            async with asyncio.timeout(30):
                while not await greeted(client, f"https://127.0.0.1:{port}/"):
                    await asyncio.sleep(0.1)
        async with asyncio.timeout(30):
            for reader, writer in held:
                with contextlib.suppress(ConnectionResetError):
                    assert await reader.read() == b""
                writer.close()
        running.should_exit = True
        await task

    asyncio.run(story())


async def greeted(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return bool((await client.get(url)).json() == "hello")
    except httpx.TransportError:
        return False


@pytest.mark.seconds
@pytest.mark.timeout(240)
def test_a_service_cuts_off_who_never_begins_a_handshake(tmp_path: Path) -> None:
    """Each stayed for a minute, and they were not counted."""
    with local_fleet(tmp_path / "fleet", rounds=2, n_kernels=4) as fleet:
        fleet.start("analyser")
        assert fleet.status()["round"] == 1
        address = ("127.0.0.1", fleet.analyser.public_port)
        began = time.monotonic()
        held = [socket.create_connection(address) for _ in range(50)]
        for one in held:
            one.settimeout(100.0)
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
            one.close()
        assert time.monotonic() - began < 40.0, "a quarter of a minute on an idle machine"
        assert fleet.status()["round"] == 1


def test_a_host_of_several_addresses_is_bound_at_each() -> None:
    port = free_ports(1)
    bound = listen("localhost", port)
    families = {one.family for one in bound}
    found = socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM)
    for one in bound:
        one.close()
    assert families == {family for family, *_ in found}
    with pytest.raises(OSError, match=r".+"):
        listen("192.0.2.1", port)
