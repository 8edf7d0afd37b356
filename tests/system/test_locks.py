from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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
