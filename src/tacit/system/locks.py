"""Locks on files of their own, for processes and threads of one machine.

Such a lock belongs to the open file, not to the process: unlike SQLite's it does not vanish when
the process closes some other descriptor. The system takes it back when its holder dies.

Standard library only, because devices carry this module.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAUSE_SECONDS = 0.002


def try_lock(path: Path) -> int | None:
    """Take the lock and return its descriptor, to be closed; None if somebody else holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        taken = _take(handle)
    except BaseException:
        os.close(handle)
        raise
    if not taken:
        os.close(handle)
        return None
    return handle


if sys.platform == "win32":
    import msvcrt

    def _take(handle: int) -> bool:
        # One byte far behind the end, since a locked byte can be read by nobody else.
        os.lseek(handle, 2**30, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _take(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def locked(path: Path, *, timeout_seconds: float) -> Iterator[None]:
    """Hold the lock; `TimeoutError` if it cannot be had in time."""
    deadline = time.monotonic() + timeout_seconds
    while (handle := try_lock(path)) is None:
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{path} stayed locked for {timeout_seconds:g} s")
        time.sleep(_PAUSE_SECONDS)
    try:
        yield
    finally:
        os.close(handle)
