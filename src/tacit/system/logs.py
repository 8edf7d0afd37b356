"""Logs of services on standard error: lines for people, or one JSON object per line.

A sentence that comes again and again is written once a minute, with how often it was held back.
Standard library only, because light nodes carry this module.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TextIO

_SHOWN = ("tacit", "uvicorn.error")
_QUIET_SECONDS = 60.0
_REMEMBERED = 256
_PROGRAMS = logging.getLogger(__name__)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class JsonLines(logging.Formatter):
    """One JSON object per line: when, how bad, what; never who."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        entry: dict[str, str | int] = {
            "time": moment,
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        held_back = getattr(record, "held_back", 0)
        if held_back:
            entry["held_back"] = held_back
        if record.exc_info is not None:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class OncePerMinute(logging.Filter):
    """Lets a sentence through once a minute; the next time it says how often it was held back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        text, now = record.getMessage(), self._clock()
        since, held_back = self._seen.pop(text, (now - 2 * _QUIET_SECONDS, 0))
        if now - since < _QUIET_SECONDS:
            self._seen[text] = (since, held_back + 1)
            return False
        self._seen[text] = (now, 0)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        record.held_back = held_back
        return True


class _StandardError(logging.StreamHandler[TextIO]):
    """Standard error as it is when a line is written, which tests and wrappers replace."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def log_to_standard_error(log_format: str) -> None:
    """Send the package's log and its servers' errors there; `log_format` is text or json."""
    handler = _StandardError(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(message)s")
    handler.setFormatter(JsonLines() if log_format == "json" else plain)
    handler.addFilter(OncePerMinute())
    for name in _SHOWN:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)


def is_json() -> bool:
    """Whether the process logs JSON lines."""
    return any(isinstance(one.formatter, JsonLines) for one in logging.getLogger("tacit").handlers)


def output_of_programs() -> TextIO | int:
    """Where programs that this process starts may write: standard error, as lines of its log."""
    if not is_json():
        return sys.stderr
    reading, writing = os.pipe()
    threading.Thread(target=_relay, args=(reading,), daemon=True).start()
    return writing


def _relay(reading: int) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            text = _COLOUR.sub("", line.decode(errors="replace")).rstrip()
            if text:
                _PROGRAMS.info("%s", text)
