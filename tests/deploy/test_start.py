"""The start lines of deploy/ as processes: healthy, figures, JSON logs, an end by SIGTERM.

Lines and environment are those of the Containerfile; those of the units are the same words, see
test_files. Folders and ports are this test's.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
import pytest

from deploy_files import DEPLOY, stages
from fleet_localhost import LocalFleet, free_ports, wait_until
from local_problems import trained

STAGES = stages()
ENDED = (0, 143, -signal.SIGTERM)  # by itself, as it was asked, or without a handler
PROGRAMS = {"tacit": [sys.executable, "-m", "tacit"], "python": [sys.executable]}
PERSON = re.compile(r"node-\d|device|person|wind|group", re.I)


class Started:
    """A role's start line, in a folder of its own, at a port of its own."""

    def __init__(self, role: str, folder: Path, ports: dict[int, int], caches: Path) -> None:
        stage = STAGES[role]
        self.health = moved(stage.health, ports) if role != "party" else ""
        program, *words = [moved(word, ports) for word in stage.start]
        set_there = {"HOME": folder, "NUMBA_CACHE_DIR": caches, "XDG_CACHE_HOME": caches}
        assert set_there.keys() <= stage.environment.keys()
        here = {"TACIT_LEDGERS": caches / "persons", **set_there}
        self.log = (caches / f"{role}.log").open("w+")
        self.process = subprocess.Popen(
            [*PROGRAMS[program], *words],
            cwd=folder,
            env={**os.environ, **{name: str(place) for name, place in here.items()}},
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    def is_healthy(self) -> bool:
        """As the container's engine finds out."""
        assert self.process.poll() is None, self.logged()
        check = [sys.executable, str(DEPLOY / "healthy.py"), self.health]
        return subprocess.run(check, capture_output=True, timeout=60, check=False).returncode == 0

    def logged(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def stop(self) -> int:
        """Its exit code; every line that it wrote is JSON."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        printed, _ = self.process.communicate(timeout=120)
        assert all(isinstance(json.loads(line), dict) for line in printed.splitlines()), printed
        return self.process.returncode

    def figures(self, **headers: str) -> dict[str, float]:
        url = re.sub(r"/\w+$", "/metrics", self.health)
        answer = httpx.get(url, verify=False, trust_env=False, timeout=60, headers=headers)
        text = answer.raise_for_status().text
        assert not PERSON.search(
            text.replace("tacit_collector_devices", "").replace("Devices that are enrolled", "")
        ), text
        lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in lines}


def moved(word: str, ports: dict[int, int]) -> str:
    """The same with this test's ports."""
    for there, here in ports.items():
        word = re.sub(rf"\b{there}\b", str(here), word)
    return word.replace("0.0.0.0:", "127.0.0.1:")


@contextmanager
def running(role: str, folder: Path, ports: dict[int, int], caches: Path) -> Iterator[Started]:
    """Healthy at the start; at the end it must have logged JSON and stopped when asked to."""
    started = Started(role, folder, ports, caches)
    try:
        wait_until(started.is_healthy, seconds=150, what=f"{role} is healthy")
        yield started
        assert started.stop() in ENDED
        for line in started.logged().splitlines():
            assert json.loads(line).keys() >= {"time", "level", "event"}, line
    finally:
        started.process.kill()
        started.process.communicate()
        started.log.close()


@pytest.mark.seconds
@pytest.mark.timeout(600)
def test_the_collector_starts_and_stops(tmp_path: Path) -> None:
    folder = tmp_path / "collector"
    trained("label", 2.0, "krr").save(folder / "bundle")
    (port,) = STAGES["collector"].ports
    with running("collector", folder, {port: free_ports(1)}, tmp_path) as collector:
        token = (folder / "reader.token").read_text().strip()
        figures = collector.figures(authorization=f"Bearer {token}")
        assert figures["tacit_collector_writable"] == 1.0
    assert {"bundle", "releases.db", "reader.token"} <= {path.name for path in folder.iterdir()}


@pytest.mark.seconds
@pytest.mark.timeout(600)
def test_shuffler_analyser_and_a_light_node_start_and_stop(tmp_path: Path) -> None:
    fleet = LocalFleet(tmp_path / "fleet", rounds=2, n_kernels=8)
    own = fleet.server.port + 5  # one of the fleet's own
    ports = {9441: shuffler_port(fleet), 9443: fleet.analyser.public_port, 9445: own}
    assert 9441 in STAGES["shuffler"].ports
    nodes = fleet.folder / "nodes"
    with (
        running("analyser", fleet.folder / "analyser", ports, tmp_path) as analyser,
        running("shuffler", fleet.folder / "shuffler", ports, tmp_path) as shuffler,
        running("light-node", nodes / "node-1", ports, tmp_path) as node,
    ):
        assert analyser.figures()["tacit_analyser_rounds"] == 2.0
        assert shuffler.figures()["tacit_shuffler_forwarded_rounds"] == 0.0
        answers = lambda: node.figures().get("tacit_node_shuffler_answers") == 1.0
        wait_until(answers, seconds=120, what="the node reaches the shuffler")


@pytest.mark.seconds
@pytest.mark.timeout(600)
def test_server_and_node_start_and_stop(tmp_path: Path) -> None:
    """Over Flower, with no service behind them: both say by their figures that they run."""
    fleet = LocalFleet(tmp_path / "fleet", rounds=2, n_kernels=8)
    first = free_ports(2)
    ports = {9444: first, 9445: first + 1}
    with (
        running("server", fleet.folder / "server", ports, tmp_path),
        running("node", fleet.folder / "nodes" / "node-1", ports, tmp_path),
    ):
        pass


@pytest.mark.silo
@pytest.mark.seconds
@pytest.mark.timeout(600)
def test_a_party_starts_waits_and_stops(tmp_path: Path) -> None:
    """It has no health to ask for: it says in its log for whom it waits."""
    pytest.importorskip("spu")
    words = ["silo", "init", str(tmp_path / "silo"), "--parties", "north,south,west", "--json"]
    subprocess.run([*PROGRAMS["tacit"], *words], check=True, capture_output=True)
    folder = tmp_path / "silo" / "north"
    config = folder / "party.toml"
    first = free_ports(3)
    config.write_text(moved(config.read_text(), {9100 + n: first + n for n in range(3)}))
    np.savez(folder / "data.npz", X=np.zeros((4, 20)), y=np.array(list("abab")))
    party = Started("party", folder, {}, tmp_path)
    try:
        wait_until(lambda: "south" in party.logged(), seconds=150, what="the party waits")
        assert party.process.poll() is None, party.logged()
        assert party.stop() in (*ENDED, 130)
        for line in party.logged().splitlines():
            assert json.loads(line).keys() >= {"time", "party", "event"}, line
    finally:
        party.process.kill()
        party.process.communicate()
        party.log.close()


def shuffler_port(fleet: LocalFleet) -> int:
    return httpx.URL(fleet.server.shuffler_url).port or 0
