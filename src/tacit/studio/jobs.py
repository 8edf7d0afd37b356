"""Long work: one command of `tacit` per job, in a process of its own that outlives the page.

A job is a folder: `job.json` (the command), `progress.jsonl`, `result.json` and `log.txt` as the
command writes them, and `exit` when it has ended. The process holds a lock on `alive`, so a studio
that was started again knows which jobs still run, without trusting process numbers.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tacit.errors import TacitError
from tacit.studio.run_job import CANCELLED, is_running, note_end
from tacit.studio.workspace import Workspace
from tacit.system.files import write_atomic
from tacit.system.locks import locked

State = Literal["running", "done", "failed", "cancelled", "interrupted"]
MOST_RUNNING = 2  # each takes a core
FOLDER = "{job}"  # in an argument: the job's own folder
CHECKPOINT = "checkpoint"
_START_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command that was started here, as its folder tells it."""

    id: str
    title: str
    arguments: tuple[str, ...]
    about: dict[str, str]
    started: float
    state: State
    folder: Path

    @property
    def command(self) -> str:
        """What to type for the same result."""
        return shlex.join(("tacit", *(word for word in self.arguments if word != "--json")))

    @property
    def can_continue(self) -> bool:
        """Whether it left a checkpoint from which its command goes on."""
        return (self.folder / CHECKPOINT).is_file()

    def progress(self) -> dict[str, Any]:
        """The last line that the command reported."""
        lines = _text(self.folder / "progress.jsonl").strip().splitlines()
        try:
            last: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        except json.JSONDecodeError:  # it is being written
            last = {}
        return {"done": 0, "total": 0, "message": "starting", **last}

    def result(self) -> dict[str, Any] | None:
        """What the command printed, once it has ended well."""
        if self.state != "done":
            return None
        found: dict[str, Any] = json.loads(_text(self.folder / "result.json"))
        return found

    def trouble(self) -> str:
        """The sentence with which a command refused."""
        lines = [line for line in _text(self.folder / "log.txt").splitlines() if line.strip()]
        return lines[-1].removeprefix("tacit: ") if lines else "it ended without an error message."


def start_job(workspace: Workspace, title: str, arguments: Sequence[str], **about: str) -> Job:
    """Start `tacit ARGUMENTS --json` and return once it runs, which can take seconds."""
    with _starting(workspace):
        return _started(workspace, title, arguments, about)


def _started(
    workspace: Workspace, title: str, arguments: Sequence[str], about: dict[str, str]
) -> Job:
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    folder = workspace.place("jobs", name)
    folder.mkdir()
    described = {
        "title": title,
        "arguments": [*(word.replace(FOLDER, str(folder)) for word in arguments), "--json"],
        "about": about,
        "started": time.time(),
    }
    write_atomic(folder / "job.json", json.dumps(described).encode())
    _launch(folder)
    return load_job(workspace, name)


def resume_job(workspace: Workspace, name: str) -> Job:
    """Run an interrupted, cancelled or failed job's command again, from its checkpoint if any."""
    with _starting(workspace):
        job = load_job(workspace, name)
        if job.state in ("running", "done"):
            raise TacitError(f"this job is {job.state}; there is nothing to resume.")
        for left in ("exit", "progress.jsonl", "result.json"):
            (job.folder / left).unlink(missing_ok=True)
        if job.can_continue and "--resume" not in job.arguments:
            described = json.loads(_text(job.folder / "job.json"))
            described["arguments"].insert(-1, "--resume")
            write_atomic(job.folder / "job.json", json.dumps(described).encode())
        _launch(job.folder)
        return load_job(workspace, name)


def cancel_job(workspace: Workspace, name: str) -> Job:
    """End a running job and all that it started; one that has just ended keeps its result."""
    job = load_job(workspace, name)
    if job.state == "running" and note_end(job.folder, CANCELLED):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(_text(job.folder / "pid")), signal.SIGTERM)
    return load_job(workspace, name)


def load_job(workspace: Workspace, name: str) -> Job:
    """One job, as it stands now."""
    folder = workspace.existing("jobs", name)
    try:
        described = json.loads(_text(folder / "job.json"))
        return Job(
            id=name,
            title=str(described["title"]),
            arguments=tuple(described["arguments"]),
            about=dict(described["about"]),
            started=float(described["started"]),
            state=_state(folder),
            folder=folder,
        )
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TacitError(f"{folder} is not a job of the studio; remove the folder.") from error


def list_jobs(workspace: Workspace) -> list[Job]:
    """All jobs, the newest first; what else lies in the room is passed over."""
    found = []
    for name in sorted(workspace.names("jobs"), reverse=True):
        if (workspace.root / "jobs" / name / "job.json").exists():
            with contextlib.suppress(TacitError):
                found.append(load_job(workspace, name))
    return found


def _state(folder: Path) -> State:
    ended = _text(folder / "exit")
    if ended == CANCELLED:
        return "cancelled"
    if ended:
        return "done" if ended == "0" else "failed"
    return "running" if is_running(folder) else "interrupted"


def _launch(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit.studio.run_job", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # Somebody has to take note of its end, or it would stay behind as a zombie.
    threading.Thread(target=process.wait, daemon=True).start()
    deadline = time.monotonic() + _START_SECONDS
    while not is_running(folder) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


@contextlib.contextmanager
def _starting(workspace: Workspace) -> Iterator[None]:
    """Room for one job more, and nobody else who takes it, until the job runs."""
    try:
        with locked(workspace.root / "jobs" / ".starting", timeout_seconds=_START_SECONDS):
            _check_room(workspace)
            yield
    except TimeoutError as error:
        raise TacitError("another job is being started; try again in a moment.") from error


def _check_room(workspace: Workspace) -> None:
    running = [job.title for job in list_jobs(workspace) if job.state == "running"]
    if len(running) >= MOST_RUNNING:
        raise TacitError(
            f"{len(running)} jobs are running ({', '.join(running)}); wait for one or cancel it."
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
