"""The records of one folder: what docs and the arena's page show, and nothing else.

Records made by uncommitted code are left out where a suite has others; where it has none, they
are shown and the pages say so.
"""

from __future__ import annotations

import functools
import hashlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.arena.results.earlier import EARLIER_SUITES, earlier_records, read_lines
from tacit.arena.statistics import ranked
from tacit.arena.store import read_records, unsuperseded
from tacit.arena.task import task_from_dict

Record = Mapping[str, Any]


class Results:
    """The records of one folder, read when asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uncommitted: set[str] = set()

    @functools.cached_property
    def every(self) -> list[dict[str, Any]]:
        """All records, those of scripts first; a failure only where its task was not run again."""
        earlier = [r for name in EARLIER_SUITES for r in earlier_records(self.folder, name)]
        return unsuperseded([*earlier, *read_records(self.folder)])

    @functools.cached_property
    def _done(self) -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.every:
            if record["status"] == "done":
                found[record["task"]["suite"]].append(record)
        return found

    @property
    def suites(self) -> list[str]:
        """The suites with a finished task, in alphabetical order."""
        return sorted(self._done)

    def suite(self, name: str) -> list[Record]:
        """The finished tasks of a suite, one record each: the last one by committed code."""
        done = self._done.get(name, [])
        clean = ranked(done)
        if done and not clean:
            self.uncommitted.add(name)
        return list({task_from_dict(dict(r["task"])).key: r for r in clean or done}.values())

    def lines(self, name: str) -> list[Record]:
        """Lines of a script's file: the committed ones, or all of them, noted."""
        found: list[Record] = [*read_lines(self.folder / f"{name}.jsonl")]
        clean = [line for line in found if _committed(line)]
        if found and not clean:
            self.uncommitted.add(name)
        return clean or found

    def digest(self) -> str:
        """A name for these records: it changes whenever a line does."""
        known = hashlib.sha256()
        for path in sorted(self.folder.rglob("*.jsonl")):
            known.update(f"{path.relative_to(self.folder)}\n".encode() + path.read_bytes())
        return known.hexdigest()[:16]


def _committed(line: Record) -> bool:
    return bool(line.get("commit")) and not str(line["commit"]).endswith(("-dirty", "unknown"))
