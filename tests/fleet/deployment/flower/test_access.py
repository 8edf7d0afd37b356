"""Nobody but the fleet's own server commands the SuperLink, and no task runs other code.

The attacks are Flower's own commands with a bundle that leaves a mark where it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from fleet_localhost import LocalFleet, kill_group, local_fleet, wait_until
from tacit.errors import TacitError
from tacit.fleet.deployment.flower import access, superlink
from tacit.fleet.deployment.flower.access import SECRET_VARIABLE, AccessControl
from tacit.fleet.deployment.flower.allowed_commands import (
    code_that_runs,
    write_node_commands,
    write_server_commands,
)
from tacit.fleet.deployment.members.identities import (
    admit_to_server,
    prepare_identity,
    revoke_at_server,
)
from tacit.fleet.deployment.run import flower_environment

SECRET = "0123456789abcdef"


# Access control by itself.


async def behind_access_control(scope: dict[str, Any], receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def answer(path: str, *headers: tuple[str, str]) -> int:
    async def ask() -> int:
        transport = httpx.ASGITransport(app=AccessControl(behind_access_control, secret=SECRET))  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="https://x") as client:
            return (await client.post(path, headers=list(headers))).status_code

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "path",
    [
        "/v1/control/start-run",
        "/v1/control/register-node",
        "/v1/runtime/acquire-task",
        "/v1/runtime/responses",
        "/v1/fleet",
        "/v1/fleetless/x",
        "/V1/fleet/x",
        "//v1/fleet/x",
        "/docs",
        "/openapi.json",
        "/",
    ],
)
def test_all_but_the_nodes_interface_needs_the_secret(path: str) -> None:
    shown = ("x-tacit-fleet-secret", SECRET)
    assert answer(path) == 403
    assert answer(path, ("x-tacit-fleet-secret", "")) == 403
    assert answer(path, ("x-tacit-fleet-secret", SECRET[:-1])) == 403
    assert answer(path, shown, ("x-tacit-fleet-secret", "other")) == 403
    assert answer(path, shown) == 200


def test_nodes_need_no_secret() -> None:
    assert answer("/v1/fleet/pull-messages") == 200


def test_a_socket_is_closed_and_the_start_of_the_service_passes() -> None:
    async def talk(kind: str, path: str) -> list[str]:
        said: list[str] = []

        async def app(*_: Any) -> None:
            said.append("passed")

        async def send(message: Any) -> None:
            said.append(message["type"])

        scope = {"type": kind, "path": path, "headers": []}
        await AccessControl(app, secret=SECRET)(scope, None, send)  # type: ignore[arg-type]
        return said

    assert asyncio.run(talk("websocket", "/v1/fleet/x")) == ["websocket.close"]
    assert asyncio.run(talk("lifespan", "")) == ["passed"]


def test_without_a_secret_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    for start in (access.superlink, access.superexec, access.flwr):
        with pytest.raises(TacitError, match="tacit fleet server"):
            start()


class _Control:
    """Flower's list of nodes, with its rule that no key comes twice."""

    def __init__(self, *nodes: tuple[bytes, str]) -> None:
        self.nodes = [
            SimpleNamespace(node_id=number, public_key=key, status=status)
            for number, (key, status) in enumerate(nodes, start=1)
        ]

    def ListNodes(self, *, request: Any) -> Any:
        return SimpleNamespace(nodes_info=self.nodes)

    def RegisterNode(self, *, request: Any) -> None:
        if any(node.public_key == request.public_key for node in self.nodes):
            raise RuntimeError("Public key already in use")
        found = SimpleNamespace(
            node_id=len(self.nodes) + 1, public_key=request.public_key, status="registered"
        )
        self.nodes.append(found)

    def UnregisterNode(self, *, request: Any) -> None:
        self.nodes[request.node_id - 1].status = "unregistered"

    def known(self) -> set[bytes]:
        return {node.public_key for node in self.nodes if node.status != "unregistered"}


def test_flower_knows_the_nodes_of_the_folder_and_no_others() -> None:
    control = _Control((b"a", "online"), (b"b", "offline"), (b"c", "unregistered"))
    wanted = {Path("1.pub"): b"a", Path("2.pub"): b"d"}
    assert access.change_nodes(control, wanted) == {"registered": 1, "unregistered": 1}
    assert control.known() == {b"a", b"d"}
    assert access.change_nodes(control, wanted) == {"registered": 0, "unregistered": 0}
    with pytest.raises(TacitError, match=r"did not register 3\.pub .* needs a new identity"):
        access.change_nodes(control, {**wanted, Path("3.pub"): b"c"})


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_superlink_follows_the_folder_of_identities(tmp_path: Path) -> None:
    fleet = LocalFleet(tmp_path / "fleet", n_nodes=2, n_kernels=8)
    server = fleet.server
    home = (server.state / "flower").resolve()
    environment = superlink.server_environment(home)
    superlink._write_connection(home, server)

    def statuses() -> list[str]:
        listed = superlink._flwr(environment, "supernode", "list", "fleet")
        return sorted(node["status"] for node in listed["nodes"])

    with superlink._superlink(server, environment):
        superlink._register_nodes(server, environment)
        assert statuses() == ["registered"] * 2
        revoke_at_server(fleet.folder / "server", "node-2")
        renewed = prepare_identity(fleet.folder / "nodes" / "node-1")
        admit_to_server(fleet.folder / "server", "node-1", renewed, renewed=True)
        superlink._register_nodes(server, environment)
        assert statuses() == ["registered", "unregistered", "unregistered"]


# What a task may start.


def run_command(path: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, SECRET_VARIABLE: SECRET}
    return subprocess.run(
        [path, "--help"], capture_output=True, text=True, timeout=120, check=False, env=environment
    )


@pytest.mark.slow
def test_every_command_of_flowers_but_one_is_refused(tmp_path: Path) -> None:
    installed = importlib.metadata.distribution("flwr").entry_points
    tasks = {found.name for found in installed if found.name.startswith("flwr-")}
    assert {"flwr-agentapp", "flwr-clientapp", "flwr-serverapp"} < tasks
    write_node_commands(tmp_path / "node")
    write_server_commands(tmp_path / "server")
    for side, allowed in (("node", "flwr-clientapp"), ("server", "flwr-serverapp")):
        assert tasks <= {path.name for path in (tmp_path / side).iterdir()}
        for name in sorted(tasks - {allowed}):
            done = run_command(tmp_path / side / name)
            assert done.returncode == 1
            assert f"refused a task for {name}" in done.stderr
    with ThreadPoolExecutor(3) as pool:  # each starts Flower, which takes seconds
        own = ("node/flwr-clientapp", "server/flwr-serverapp", "server/flower-superexec")
        client, server, superexec = pool.map(lambda name: run_command(tmp_path / name).stdout, own)
    assert "--token" in client
    assert "--token" in server
    assert "--runtime-api-address" in superexec


def test_a_search_that_would_miss_them_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for commands in (write_node_commands, write_server_commands):
        found = flower_environment(tmp_path / "state", commands=commands)["PATH"]
        where = shutil.which("flwr-agentapp", path=found)
        assert where == str(tmp_path / "state" / "bin" / "flwr-agentapp")
        with pytest.raises(TacitError, match="cannot be run"):
            flower_environment(tmp_path / "a:b", commands=commands)
    # A drive that is mounted without execution: the search goes on to the next folder.
    may = os.access
    monkeypatch.setattr(
        os, "access", lambda p, m: not str(p).startswith(str(tmp_path)) and may(p, m)
    )
    with pytest.raises(TacitError, match="on a drive that allows programs"):
        flower_environment(tmp_path / "state", commands=write_node_commands)


# The attacks.

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "evil"
version = "1.0.0"
description = "x"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "evil"
[tool.flwr.app.components]
"""
SERVER_APP = """\
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from pathlib import Path
Path({mark!r}).mkdir()
app = ServerApp()
client = ClientApp()
@app.main()
def main(grid, context): pass
"""
# On the server it asks every node to run the same bundle.
AGENT_APP = """\
import json, os, time
from pathlib import Path
from flwr.agentapp import AgentApp
app = AgentApp()
def call(agent, name, **arguments):
    call = {{"type": "function_call", "call_id": name, "name": name}}
    return json.loads(agent.grid.call({{**call, "arguments": json.dumps(arguments)}})["output"])
@app.main()
def main(agent, context):
    where = Path(os.environ["FLWR_HOME"]).parent.parent.name
    Path({mark!r} + "-" + where).mkdir()
    if where == "server":
        while not (nodes := call(agent, "get_nodes", sample_size=None)["nodes"]):
            time.sleep(0.5)
        call(agent, "push_messages", messages=[
            {{"dst_node_id": node["id"], "payload": "hi", "reply_to_message_id": None}}
            for node in nodes
        ])
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not Path({mark!r} + "-enough").exists():
            time.sleep(0.5)
"""
RUN_AGENT = """\
import sys, flwr.cli.run.run
run = sys.modules["flwr.cli.run.run"]
request = run.StartRunRequest
run.StartRunRequest = lambda **fields: request(user_prompt="hello", **fields)
from flwr.cli.app import app
app(["run", sys.argv[1], "it", "--format", "json"])
"""


class Attacker:
    """Knows the server's address and certificate, and holds no key."""

    def __init__(self, fleet: LocalFleet, *, components: str, code: str) -> None:
        self.home = fleet.folder / "attacker"
        self.mark = fleet.folder / "attacked"
        app = self.home / "app" / "evil"
        app.mkdir(parents=True)
        (app.parent / "pyproject.toml").write_text(PROJECT + components)
        (app / "__init__.py").write_text("")
        (app / "code.py").write_text(code.format(mark=str(self.mark)))
        (self.home / "config.toml").write_text(
            '[superlink]\ndefault = "it"\n[superlink.it]\n'
            f'address = "127.0.0.1:{fleet.server.port}"\n'
            f'root-certificates = "{fleet.server.certificate.resolve()}"\n'
        )
        self.environment = flower_environment(self.home)

    def run(self, *command: str, secret: str | None = None) -> dict[str, Any]:
        shown = {} if secret is None else {SECRET_VARIABLE: secret}
        done = subprocess.run(
            [*command],
            env={**self.environment, **shown},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def flwr(self, *arguments: str) -> dict[str, Any]:
        return self.run("flwr", *arguments, "--format", "json")


@pytest.mark.slow
def test_a_stranger_cannot_command_the_server(tmp_path: Path) -> None:
    with local_fleet(tmp_path / "fleet", listen="0.0.0.0", n_kernels=8) as fleet:
        attacker = Attacker(
            fleet,
            components='serverapp = "evil.code:app"\nclientapp = "evil.code:client"\n',
            code=SERVER_APP,
        )
        home = (fleet.server.state / "flower").resolve()
        environment = superlink.server_environment(home)
        superlink._write_connection(home, fleet.server)
        with superlink._superlink(fleet.server, environment):
            commands = (
                ("run", str(attacker.home / "app"), "it"),
                ("list", "it"),
                ("supernode", "list", "it"),
            )
            with ThreadPoolExecutor(3) as pool:
                answers = list(pool.map(lambda command: attacker.flwr(*command), commands))
            for said in answers:
                assert not said["success"]
                assert "403 Forbidden" in said["error-message"]
            assert steal_a_task(fleet) == 403

            # The server itself gets through; and even it cannot run anything else.
            superlink._register_nodes(fleet.server, environment)
            code = code_that_runs(access.flwr)
            started = attacker.run(
                *(sys.executable, "-c", code, "run", str(attacker.home / "app"), "it"),
                *("--format", "json"),
                secret=environment[SECRET_VARIABLE],
            )
            assert started["success"], started
            run_id = str(started["run-id"])

            def ended() -> object:
                return superlink._ended(environment, run_id)

            wait_until(lambda: ended() is not None, seconds=120, what="the run is refused")
            assert "differs from the installed one" in str(ended())
        assert not attacker.mark.exists()


KEEP_ONE = """\
import sys, time
from pathlib import Path
from tacit.fleet.deployment.flower import superlink
from tacit.fleet.deployment.config import ServerConfig, read_config
config = read_config(Path(sys.argv[1]), ServerConfig)
with superlink._superlink(config, superlink.server_environment(config.state / "flower")):
    time.sleep(300)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_superlink_ends_with_its_server(tmp_path: Path) -> None:
    """Nobody else knows its secret, and the next server needs the port."""
    fleet = LocalFleet(tmp_path / "fleet", n_kernels=8)
    parent = subprocess.Popen([sys.executable, "-c", KEEP_ONE, str(fleet.server_config)])
    try:
        log = fleet.server.state / "superlink.log"
        wait_until(
            lambda: log.exists() and "list-runs" in log.read_text(),
            seconds=240,
            what="the SuperLink has passed its test",
        )
    finally:
        parent.kill()
        parent.wait()
    superlink._wait_until_free(fleet.server)
    assert not superlink._is_listening(fleet.server)


def steal_a_task(fleet: LocalFleet) -> int:
    """Ask the Runtime API for the next task, as SuperExec does."""
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.constant import TaskType
    from flwr.supercore.runtime import RuntimeHttpClient

    client = RuntimeHttpClient.from_server_address(
        f"127.0.0.1:{fleet.server.port}", False, fleet.server.certificate.read_bytes(), []
    )
    try:
        client.AcquireTask(AcquireTaskRequest(supported_task_types=list(TaskType)))
    except httpx.HTTPStatusError as error:
        return error.response.status_code
    finally:
        client.close()
    return 200


@contextlib.contextmanager
def evil_server(fleet: LocalFleet) -> Iterator[None]:
    """Flower's SuperLink as Flower means it, with this fleet's keys: whoever is root there."""
    server, home = fleet.server, (fleet.server.state / "flower").resolve()
    arguments = [
        *("flower-superlink", "--host", "127.0.0.1", "--port", str(server.port)),
        *("--ssl-ca-certfile", str(server.certificate), "--ssl-certfile", str(server.certificate)),
        *("--ssl-keyfile", str(server.private_key), "--enable-supernode-auth"),
        "--disable-runtime-dependency-installation",
    ]
    environment = flower_environment(home)
    superlink._write_connection(home, server)
    server.state.mkdir(exist_ok=True, parents=True)
    with (server.state / "superlink.log").open("wb") as log:
        process = subprocess.Popen(
            arguments, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        superlink._wait_until_listening(process, server)
        superlink._register_nodes(server, {**environment, SECRET_VARIABLE: SECRET})
        yield
    finally:
        process.terminate()  # first alone, so that it ends what it started in other sessions
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        kill_group(process.pid)
        process.wait()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_server_cannot_send_code_to_a_node(tmp_path: Path) -> None:
    with local_fleet(tmp_path / "fleet", n_nodes=2, n_kernels=8) as fleet, evil_server(fleet):
        with pytest.raises(TacitError, match="answered a stranger"):
            superlink._check_access_control(fleet.server)
        attacker = Attacker(fleet, components='agentapp = "evil.code:app"\n', code=AGENT_APP)
        fleet.start("node-1")
        log = fleet.folder / "logs" / "node-1.log"
        wait_until(lambda: "SuperNode ID" in log.read_text(), seconds=240, what="the node is there")
        said = attacker.run(sys.executable, "-c", RUN_AGENT, str(attacker.home / "app"))
        assert said["success"], said
        wait_until(
            lambda: "refused a task for flwr-agentapp" in log.read_text(),
            seconds=240,
            what="the node is asked and refuses",
        )
        time.sleep(3)
        (fleet.folder / "attacked-enough").mkdir()
        assert (fleet.folder / "attacked-server").exists(), "the attack itself works"
        assert not (fleet.folder / "attacked-node-1").exists()
