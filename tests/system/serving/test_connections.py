"""The limits of a process that serves; what they do to senders is tested on the services."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tacit.system.certificates import self_signed, trust_only
from tacit.system.serving import connections

CODE = """\
import asyncio.constants, json, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, tuple(json.loads(sys.argv[1])))
from tacit.system.serving.connections import LimitedSocket, tune_process
tune_process()
soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
told = {"soft": soft, "most": LimitedSocket.most}
print(json.dumps({**told, "handshake": asyncio.constants.SSL_HANDSHAKE_TIMEOUT}))
"""


def tuned(soft: int, hard: int) -> dict[str, float]:
    """What a process of its own has after `tune_process`, under limits on its open files."""
    command = [sys.executable, "-c", CODE, json.dumps([soft, hard])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def test_a_service_may_open_as_many_files_as_the_system_allows() -> None:
    assert tuned(256, 3000) == {"soft": 3000, "most": 2048, "handshake": 10.0}


def test_no_more_connections_are_let_in_than_there_is_room_for() -> None:
    assert tuned(256, 1024) == {"soft": 1024, "most": 896, "handshake": 10.0}


def test_a_request_that_is_turned_away_is_not_served_after_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TLS it may be here already when the answer is "come back later"."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 0)
    served, pair = [], self_signed("x", hosts=("127.0.0.1",))
    pair.write(certificate=tmp_path / "certificate.pem", key=tmp_path / "key.pem")

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        served.append(scope["path"])

    async def asked() -> bytes:
        (listening,) = connections.listen("127.0.0.1", 0)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=connections.LimitedProtocol,
                lifespan="off",
                ws="none",
                ssl_keyfile=tmp_path / "key.pem",
                ssl_certfile=tmp_path / "certificate.pem",
            )
        )
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        trusted = trust_only(tmp_path / "certificate.pem")
        reader, writer = await asyncio.open_connection(*listening.getsockname(), ssl=trusted)
        writer.write(b"POST /report HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi")
        answer = await reader.read()
        writer.close()
        await asyncio.sleep(0.2)
        server.should_exit = True
        await serving
        return answer

    assert b"503" in asyncio.run(asked()).splitlines()[0]
    assert served == []
