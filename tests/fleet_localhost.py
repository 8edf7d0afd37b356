"""Helpers for tests that run a real fleet on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data import load_dataset
from tacit.fleet.deployment.config import (
    AnalyserConfig,
    NodeConfig,
    RunDescription,
    ServerConfig,
    read_config,
    read_run,
)
from tacit.fleet.deployment.localhost import start_part
from tacit.fleet.deployment.node import person_ledger
from tacit.fleet.deployment.run import analyser_status, shuffler_status, stop
from tacit.fleet.deployment.setup import FleetRequest, Hosts, set_up
from tacit.fleet.learning.learner import Learner
from tacit.ledger import Ledger
from tacit.system.certificates import trust_only

DATA = "ItalyPowerDemand"


def free_ports(count: int) -> int:
    """The first of `count` neighbouring free ports.

    Below those that federations and the system hand out, and every worker of a parallel test run
    draws from a part of its own: nobody else takes one before the fleet listens there.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 4
    while True:
        first = 10_000 + 2_000 * worker + secrets.randbelow(2_000 - count)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


class LocalFleet:
    """A fleet in a temporary folder, with its processes by name."""

    def __init__(self, folder: Path, *, listen: str = "127.0.0.1", **changes: Any) -> None:
        self.folder = folder
        settings = {
            "n_nodes": 3,
            "rounds": 4,
            "epsilon": 400.0,  # a toy: so few nodes learn only with little noise
            "delta": 1e-5,
            "n_min": 2,
            "n_kernels": 32,
            "round_seconds": 4.0,
        }
        request = FleetRequest(**(settings | changes))
        hosts = Hosts(port=free_ports(16 + request.n_nodes), listen=listen)
        set_up(folder, load_dataset(DATA), request, hosts, seed=0)
        for node in (folder / "nodes").glob("*/node.toml"):  # each fleet's persons are its own
            node.write_text(node.read_text() + 'ledgers = "../../persons"\n')
        shuffler = self.path("shuffler")  # tests wait for counts
        shuffler.write_text(shuffler.read_text() + 'count_shown_to = "127.0.0.1"\n')
        self.fleet: RunDescription = read_run(folder / "plan.toml")
        self.server_config = folder / "server" / "server.toml"
        self.server: ServerConfig = read_config(self.server_config, ServerConfig)
        self.analyser: AnalyserConfig = read_config(self.path("analyser"), AnalyserConfig)
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def path(self, name: str) -> Path:
        if name in ("shuffler", "analyser"):
            return self.folder / name / f"{name}.toml"
        return self.folder / "nodes" / name / "node.toml"

    def node(self, name: str) -> NodeConfig:
        return read_config(self.path(name), NodeConfig)

    def start(self, *names: str) -> None:
        for name in names:
            part = name if name in ("shuffler", "analyser") else "node"
            log = self.folder / "logs" / f"{name}.log"
            self.running[name] = start_part(part, self.path(name), log=log)

    def start_server(self, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tacit", "fleet", "server", str(self.server_config)]
        process = subprocess.Popen(
            [*command, "--json", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running["server"] = process  # type: ignore[assignment]
        return process

    def kill(self, name: str) -> None:
        """As a power cut would: no signal that could be handled."""
        process = self.running.pop(name)
        process.kill()
        process.wait()
        pid = self.folder / "nodes" / name / "state" / "supernode.pid"
        if pid.exists():
            kill_group(int(pid.read_text()))

    def kill_superlink(self) -> None:
        """Kill the SuperLink, and wait until the server has started another."""
        before = self._superlink()
        kill_group(before)
        wait_until(lambda: self._superlink() != before, seconds=240, what="another SuperLink")

    def kill_server(self) -> None:
        """As a power cut would: the server, and its SuperLink with it."""
        process = self.running.pop("server")
        process.kill()
        kill_group(self._superlink())
        process.communicate()

    def _superlink(self) -> int:
        return int((self.server.state / "superlink.pid").read_text())

    def stop_all(self) -> None:
        for process in self.running.values():
            stop(process)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def status(self) -> dict[str, Any]:
        return analyser_status(self.server, wait_seconds=90)

    def shuffler_status(self) -> dict[str, Any]:
        return shuffler_status(self.server)

    def spent_by(self, name: str) -> float:
        config = self.node(name)
        with contextlib.closing(person_ledger(config, self.fleet, Learner(self.fleet.plan))) as own:
            with Ledger.open(own.path, create=False) as ledger:
                assert ledger.verify()
            return own.spent()

    def analyser_debits(self) -> list[float]:
        with Ledger.open(self.analyser.state / "ledger.db", create=False) as ledger:
            assert ledger.verify()
            return [float(entry.epsilon) for entry in ledger.entries() if entry.subject]

    def accuracy(self) -> float:
        import httpx

        tls = trust_only(self.server.analyser_certificate)
        url = f"{self.server.analyser_url}/v1/model"
        model = httpx.get(url, verify=tls, trust_env=False).raise_for_status().content
        data = load_dataset(DATA)
        labels = Learner(self.fleet.plan).predict(model, data.X_test)
        return float(np.mean(labels == data.y_test.astype(str)))


@contextlib.contextmanager
def local_fleet(folder: Path, **changes: Any) -> Iterator[LocalFleet]:
    fleet = LocalFleet(folder, **changes)
    try:
        yield fleet
    finally:
        fleet.stop_all()


def kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain: {what}")
        time.sleep(0.1)


def last_json(text: str) -> dict[str, Any]:
    (line,) = [line for line in text.splitlines() if line.strip()]
    answer: dict[str, Any] = json.loads(line)
    return answer
