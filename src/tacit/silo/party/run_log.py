"""What happens in a run, as lines of JSON for machines that watch a party."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, Protocol, TextIO


class RunLog(Protocol):
    """Called with the name of an event and its plain values."""

    def __call__(self, event: str, **values: Any) -> None:
        """Note it; must return quickly and must not raise."""
        ...


def no_log(event: str, **values: Any) -> None:
    """The default: note nothing."""


def json_log(party: str, stream: TextIO) -> RunLog:
    """One JSON object per line: `time` (UTC), `level`, `party`, `event`, and its values."""

    def note(event: str, **values: Any) -> None:
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        level = "error" if event == "failed" else "info"
        line = {"time": now, "level": level, "party": party, "event": event, **values}
        stream.write(json.dumps(line, allow_nan=False) + "\n")
        stream.flush()

    return note
