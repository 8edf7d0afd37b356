"""What works on Linux and macOS only: groups of processes, limits of a process, file locks.

Modules import everywhere; what cannot work elsewhere says so in one sentence when it is used.
"""

from __future__ import annotations

import os

from tacit.errors import TacitError

POSIX = os.name == "posix"


def needs_posix(what: str) -> None:
    """Refuse, in one sentence, what this operating system cannot run."""
    if not POSIX:
        raise TacitError(
            f"{what} needs Linux or macOS, because it manages groups of processes; run it there, "
            "in a container, or in the Windows Subsystem for Linux."
        )
