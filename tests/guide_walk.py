"""Walk a guide as a reader does: every block, in order, in one shell in an empty folder.

Lines that begin with `$ ` are typed; a line that ends in `&` goes on in the background until the
guide stops it. Python blocks are programs. Ports are replaced by free ones, because several tests
run at the same time.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

from tacit.system.extras import EXTRAS

BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?^```(python|console)\n(.*?)^```", re.M | re.S)
# Guides with services, walked in a shell by test_guides; other pages run inside the tests.
WALKED = (
    "wearable.md", "hospitals.md", "plant.md", "researcher.md", "operator.md", "collector.md",
    "fleet-deployment.md",
)  # fmt: skip
INSTALL = re.compile(r"pip install '(?:tacit-ts|\.)\[([\w,]+)\]'")
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
# Python reads this at its start: modules of extras that the guide does not name are not there.
HIDING = """
import importlib.util, os, sys

hidden = set(os.environ["HIDDEN_MODULES"].split())
find_spec = importlib.util.find_spec


class Hider:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def find_what_shows(name, package=None):
    return None if name.split(".")[0] in hidden else find_spec(name, package)


sys.meta_path.insert(0, Hider())
importlib.util.find_spec = find_what_shows
"""
PORT = re.compile(r"(?<=--port )\d+")


def script_of(page: Path) -> str:
    """One shell program that stops at the first command that fails."""
    text = page.read_text(encoding="utf-8")
    lines = ["set -euo pipefail", "set -m"]
    for skipped, kind, body in BLOCK.findall(text):
        if skipped:
            continue
        if kind == "python":
            lines.append(f"python - <<'END_OF_BLOCK'\n{body}END_OF_BLOCK")
        else:
            lines += [line[2:] for line in body.splitlines() if line.startswith("$ ")]
    return "\n".join(lines) + "\n"


def extras_of(page: Path) -> set[str]:
    """The extras that the guide tells its reader to install."""
    named = INSTALL.findall(page.read_text(encoding="utf-8"))
    assert named, f"{page.name} has no line 'pip install ...[EXTRA]'"
    return {extra for one in named for extra in one.split(",")}


def hidden_without(extras: set[str]) -> set[str]:
    """Modules of extras that an installation with `extras` lacks."""
    offered = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    brought = {
        re.split(r"[^\w-]", line)[0].replace("-", "_") for one in extras for line in offered[one]
    }
    brought |= {"vl_convert"} if "vl_convert_python" in brought else set()
    brought |= {"starlette"} if "fastapi" in brought else set()
    return {module for modules in EXTRAS.values() for module in modules} - brought


def walk(page: Path, folder: Path, *, seconds: float) -> str:
    """Run the guide; returns what it printed, or fails with it."""
    script = script_of(page)
    for port in sorted(set(PORT.findall(script))):
        script = script.replace(port, str(_free_port()))
    (folder / "guide.sh").write_text(script)
    log = folder / "guide.log"
    home = folder / "home"
    home.mkdir()
    tools = Path(sys.executable).parent
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(HIDING)
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "PYTHONPATH": os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")]),
        "HIDDEN_MODULES": " ".join(hidden_without(extras_of(page))),
    }
    for name in ("TACIT_DATA", "TACIT_LEDGERS"):
        environment.pop(name, None)
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-x", "guide.sh"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
        try:
            code = shell.wait(timeout=seconds)
        finally:
            _end_session(shell.pid)
    text = log.read_text(errors="replace")
    assert code == 0, text[-4000:]
    return text


def _free_port() -> int:
    """The first of twenty free ports, below those that the system gives to connections."""
    while True:
        first = 20_000 + 20 * secrets.randbelow(600)
        if all(_is_free(first + i) for i in range(20)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _end_session(leader: int) -> None:
    """End what the guide left running: everything in the shell's session."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                os.kill(int(entry.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue
