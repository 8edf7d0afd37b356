"""System programs that tests need (browser, database, compiler, shells), or that one is missing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

WHERE = "run .ci/system-packages as root, or install it by hand"


def needed(program: str) -> str:
    """The path of a system program; without it the test is skipped, in CI it fails."""
    found = shutil.which(program) or _postgres(program)
    if found is None:
        message = f"{program} is not installed; {WHERE}"
        if os.environ.get("TACIT_SYSTEM_PACKAGES"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def _postgres(program: str) -> str | None:
    """Debian keeps the server's programs out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return str(found[-1]) if found else None
