"""Plans in processes of their own: a classifier and its libraries leave memory with them.

One at a time, so that a page that is loaded again, or several, do not take every core.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from tacit.errors import TacitError
from tacit.studio.plans.planning import Plan, kept_plan, write_plan
from tacit.studio.workspace import Workspace, open_workspace
from tacit.system.locks import locked

_MOST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class _Work:
    process: subprocess.Popen[bytes]
    said: IO[bytes]


class Planner:
    """Which plans are being computed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._at_work: dict[str, _Work] = {}
        self._lock = threading.Lock()

    def plan(self, name: str) -> Plan | None:
        """The plan of a data set; None while it is computed, which the first question starts."""
        with self._lock:
            found = kept_plan(self._workspace, name)
            if found is None and name not in self._at_work:
                self._at_work[name] = self._started(name)
            if self._runs(name):
                return found
            work = self._at_work.pop(name, None)
        if work is None:
            return found
        with work.said:  # its process may have written the plan after it was looked for
            found = found or kept_plan(self._workspace, name)
            if found is None:
                raise TacitError(_sentence(work))
            return found

    def state(self, name: str) -> Literal["running", "done"]:
        """Whether a process still works on it."""
        with self._lock:
            return "running" if self._runs(name) else "done"

    def close(self) -> None:
        """End what is at work; a plan is quickly begun anew."""
        with self._lock:
            for work in self._at_work.values():
                work.process.kill()
                work.process.wait()
                work.said.close()
            self._at_work.clear()

    def _runs(self, name: str) -> bool:
        work = self._at_work.get(name)
        return work is not None and work.process.poll() is None

    def _started(self, name: str) -> _Work:
        said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        process = subprocess.Popen(
            [sys.executable, "-m", "tacit.studio.plans.planner", str(self._workspace.root), name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        return _Work(process, said)


def _sentence(work: _Work) -> str:
    work.said.seek(0)
    lines = work.said.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "the plan ended without an error message; load the page again."


def main(root: Path, name: str) -> int:
    """Compute one plan when no other is being computed."""
    workspace = open_workspace(root)
    try:
        with locked(workspace.root / ".planning", timeout_seconds=_MOST_SECONDS):
            if kept_plan(workspace, name) is None:
                write_plan(workspace, name)
    except TacitError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
