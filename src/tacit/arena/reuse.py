"""Cells that another suite recorded: copied instead of trained again, and marked as copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tacit.arena.statistics import ranked
from tacit.arena.store import Store, read_records
from tacit.arena.task import Task, task_from_dict
from tacit.errors import TacitError

# Their records hold what those of other suites with the same cells do not.
_WITH_MORE = ("fedst-secure",)


def copy_records(tasks: Sequence[Task], store: Store, *, source: Path) -> int:
    """Append what the folder has of these tasks under any suite; how many that are.

    Only finished tasks of committed code, the last record of each. A copy keeps everything of its
    original, the commit too, and names the suite that it comes from.
    """
    if not source.is_dir():
        raise TacitError(f"{source} is not a folder; --reuse takes one with results of the arena.")
    found = {
        _cell(task_from_dict(record["task"])): record for record in ranked(read_records(source))
    }
    copied = 0
    for task in tasks:
        if task.suite not in _WITH_MORE and (record := found.get(_cell(task))):
            origin = record.get("copied_from", record["task"]["suite"])
            store.append({**record, "task": task.to_dict(), "copied_from": origin})
            copied += 1
    return copied


def _cell(task: Task) -> str:
    """The task's name without its suite."""
    return replace(task, suite="any").key
