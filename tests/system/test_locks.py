from __future__ import annotations

import errno
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.system import locks as locks_module
from tacit.system.locks import locked, try_lock

HOLD = """
import sys
from pathlib import Path
from tacit.system.locks import try_lock
assert try_lock(Path(sys.argv[1])) is not None
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_by_one_and_closing_other_descriptors_does_not_drop_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    with locked(path, timeout_seconds=1.0):
        path.read_bytes()  # opens and closes a descriptor of the same file
        assert try_lock(path) is None
        with pytest.raises(TimeoutError), locked(path, timeout_seconds=0.05):
            pass
    handle = try_lock(path)
    assert handle is not None
    os.close(handle)


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert try_lock(path) is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with locked(path, timeout_seconds=5.0):
        pass


class FakeMsvcrt:
    """`msvcrt.locking` as documented: one byte at the descriptor's position, or PermissionError."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int]] = []
        self.held = False

    def locking(self, handle: int, mode: int, count: int) -> None:
        if self.held:
            raise PermissionError(errno.EACCES, "Permission denied")
        self.taken.append((os.lseek(handle, 0, os.SEEK_CUR), mode, count))


def test_on_windows_a_byte_behind_the_end_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The code for Windows on a stand-in for its module: what it asks for, and its refusal."""
    fake = FakeMsvcrt()
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setattr(sys, "platform", "win32")
    locks = runpy.run_path(locks_module.__file__)
    path = tmp_path / "lock"
    closed: list[int] = []
    really = os.close

    def closing(handle: int) -> None:
        closed.append(handle)
        really(handle)

    monkeypatch.setattr(os, "close", closing)
    handle = locks["try_lock"](path)
    assert fake.taken == [(2**30, FakeMsvcrt.LK_NBLCK, 1)]
    assert not closed
    really(handle)
    fake.held = True
    assert locks["try_lock"](path) is None
    assert len(closed) == 1, "a refused lock leaves no descriptor open"
    with pytest.raises(TimeoutError), locks["locked"](path, timeout_seconds=0.01):
        pass
    assert path.stat().st_size == 0, "nobody is kept from reading the file"
