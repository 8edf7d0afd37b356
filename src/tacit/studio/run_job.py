"""The process of one job: hold its lock, run its command, leave its result and exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from tacit.system.files import write_atomic, write_once
from tacit.system.locks import locked, try_lock

CANCELLED = "cancelled"
_asking = threading.Lock()  # who asks holds the job's lock for a moment, as if it were running


def is_running(folder: Path) -> bool:
    """Whether a process works on this job."""
    with _asking:
        handle = try_lock(folder / "alive")
        if handle is None:
            return True
        os.close(handle)
        return False


def note_end(folder: Path, word: str) -> bool:
    """Write down how a job ended, if nobody has yet; the first word stays."""
    try:
        write_once(folder / "exit", word.encode())
    except FileExistsError:
        return False
    return True


def run_job(folder: Path) -> int:
    """Run the command of a job's folder; its exit code is written last."""
    arguments = json.loads((folder / "job.json").read_text(encoding="utf-8"))["arguments"]
    write_atomic(folder / "pid", str(os.getpid()).encode())
    with locked(folder / "alive", timeout_seconds=10.0):
        code = _run(folder, arguments)
        note_end(folder, str(code))
    return code


def _run(folder: Path, arguments: list[str]) -> int:
    """The command itself, as anybody would type it."""
    environment = {**os.environ, "TACIT_PROGRESS": str(folder / "progress.jsonl")}
    with (folder / "result.json").open("wb") as out, (folder / "log.txt").open("wb") as log:
        done = subprocess.run(
            [sys.executable, "-m", "tacit", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            env=environment,
            check=False,
        )
    return done.returncode


if __name__ == "__main__":
    sys.exit(run_job(Path(sys.argv[1])))
