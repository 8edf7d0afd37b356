"""How long work reports where it is: a callable that any caller may pass in."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Protocol


class Progress(Protocol):
    """Called with steps done, steps in all, and what is being done or was found."""

    def __call__(self, done: int, total: int, message: str) -> None:
        """Show it; must return quickly and must not raise."""
        ...


def silent(done: int, total: int, message: str) -> None:
    """The default: say nothing."""


class ProgressFile:
    """Progress as JSON lines in a file, for whoever watches from another process."""

    def __init__(self, path: Path, *, pause_seconds: float = 0.2) -> None:
        self._path = path
        self._pause = pause_seconds
        self._next = 0.0

    def __call__(self, done: int, total: int, message: str) -> None:
        """Append a line; of many in short time only some, but always the last step."""
        now = time.monotonic()
        if now < self._next and done < total:
            return
        self._next = now + self._pause
        line = json.dumps({"done": done, "total": total, "message": message})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
