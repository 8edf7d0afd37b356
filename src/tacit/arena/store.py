"""Results on disk: one JSON line per task, appended, never edited.

A line is written with one system call on a file opened for appending and is then flushed to the
disk, so a killed process leaves either the whole line or, at worst, a torn last one; a torn line
is skipped by readers and closed off by the next append, and its task runs again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.arena.task import Task, task_from_dict
from tacit.errors import TacitError
from tacit.system.posix import needs_posix

RESULTS = "results.jsonl"


class Store:
    """The results of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / RESULTS

    def append(self, record: dict[str, Any]) -> None:
        """Add one line and wait until it is on disk; safe with many processes at once."""
        needs_posix("the arena's record")
        import fcntl

        line = json.dumps(record, sort_keys=True, allow_nan=False) + "\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, (_closing(handle) + line).encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def records(self) -> Iterator[dict[str, Any]]:
        """Every whole line in order; anything but a record or a torn line is an error."""
        if not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, start=1):
            record = _parse(line)
            if record is not None:
                yield record
            elif line.strip() and not line.startswith("{"):
                raise TacitError(
                    f"{self.path.name} line {number} is not a record; records are never "
                    "edited, so restore the file."
                )

    def states(self) -> dict[str, str]:
        """By key how the task ended, the last time that it was run."""
        return {task_from_dict(r["task"]).key: r["status"] for r in self.records()}

    def remaining(
        self, tasks: list[Task], *, retry_failed: bool = False, again: bool = False
    ) -> list[Task]:
        """The tasks that have no line yet, in order; nothing is run a second time unasked."""
        states = self.states()
        asked = {"failed"} if retry_failed or again else set()
        asked |= {"done"} if again else set()
        return [task for task in tasks if states.get(task.key) in {None, *asked}]


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The lines of `results.jsonl` in the folder, in its folders and in theirs."""
    below = [*folder.glob(f"*/{RESULTS}"), *folder.glob(f"*/*/{RESULTS}")]
    folders = [folder, *sorted(path.parent for path in below)]
    return [record for part in folders for record in Store(part).records()]


def unsuperseded(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records without failures whose task was run again: the last one counts."""
    keys = [task_from_dict(record["task"]).key for record in records]
    done = {key for key, r in zip(keys, records, strict=True) if r["status"] == "done"}
    last = {key: number for number, key in enumerate(keys)}
    return [
        record
        for number, (key, record) in enumerate(zip(keys, records, strict=True))
        if record["status"] == "done" or (key not in done and last[key] == number)
    ]


def _closing(handle: int) -> str:
    """A line break, if the last writer died in the middle of its line."""
    size = os.fstat(handle).st_size
    return "\n" if size and os.pread(handle, 1, size - 1) != b"\n" else ""


def _parse(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except json.JSONDecodeError:
        return None
    return record if isinstance(record, dict) and "task" in record else None
