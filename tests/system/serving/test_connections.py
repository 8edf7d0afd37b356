"""The limits of a process that serves; what they do to senders is tested on the services."""

from __future__ import annotations

import json
import subprocess
import sys

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
