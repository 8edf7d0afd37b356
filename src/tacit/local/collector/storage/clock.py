"""Time for a store: it runs evenly while a process lives, whatever is done to the machine's clock.

Devices' clocks are not trusted at all; this one decides on which day a release counts, when a code
expires and what retention erases. A step of the machine's clock while the service runs changes
nothing but `step`, which pauses the erasing until a restart.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable

SLACK_SECONDS = 300.0  # clocks of several collectors agree this well
DAY_SECONDS = 86_400
LONGEST_GAP = 3 * DAY_SECONDS  # without use, after which a clock that says so must be confirmed


def steady_seconds() -> float:
    """Seconds since the machine started, time asleep included where the system counts it."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """Seconds since 1970, taken once from the machine and counted on from there."""

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_seconds,
    ) -> None:
        self._wall, self._steady = wall, steady
        self._wall_start, self._steady_start = wall(), steady()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._wall_start + self.running_seconds()

    def running_seconds(self) -> float:
        """How long this clock has run."""
        return self._steady() - self._steady_start

    def day(self) -> int:
        """Days since 1970, in UTC."""
        return int(self.now() // DAY_SECONDS)

    @property
    def step(self) -> float:
        """By how many seconds the machine's clock was set meanwhile; 0 within the slack."""
        step = self._wall() - self.now()
        return step if abs(step) > SLACK_SECONDS else 0.0


def date_of(day: int) -> dt.date:
    """The calendar date of a number of days since 1970."""
    return dt.date(1970, 1, 1) + dt.timedelta(days=day)


def time_of(seconds: float) -> str:
    """A moment in UTC for messages."""
    moment = dt.datetime.fromtimestamp(seconds, tz=dt.UTC)
    return moment.isoformat(timespec="seconds")
