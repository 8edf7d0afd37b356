"""A whole fleet on one machine, each part its own process: to try it out, and to test it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.fleet.deployment.flower.superlink import run_server
from tacit.fleet.deployment.run import stop
from tacit.system.progress import Progress, silent


def start_part(part: str, config: Path, *, log: Path) -> subprocess.Popen[bytes]:
    """Start `tacit fleet PART CONFIG` as its own process, logging to a file."""
    command = [sys.executable, "-m", "tacit", "fleet", part, str(config)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def services_and_nodes(folder: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Shuffler, analyser and every node of a fleet, stopped at the end."""
    configs = {
        "shuffler": folder / "shuffler" / "shuffler.toml",
        "analyser": folder / "analyser" / "analyser.toml",
    }
    for path in sorted((folder / "nodes").glob("*/node.toml")):
        configs[path.parent.name] = path
    if len(configs) == 2 or not configs["shuffler"].exists():
        raise TacitError(f"{folder} holds no fleet; write one with 'tacit fleet init'.")
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, config in configs.items():
            part = name if name in ("shuffler", "analyser") else "node"
            running[name] = start_part(part, config, log=folder / "logs" / f"{name}.log")
        yield running
    finally:
        for process in running.values():
            stop(process)


def run_whole_fleet(
    folder: Path, *, resume: bool = False, progress: Progress = silent
) -> dict[str, Any]:
    """Run everything until the analyser has finished; returns its last status."""
    with services_and_nodes(folder):
        return run_server(folder / "server" / "server.toml", resume=resume, progress=progress)
