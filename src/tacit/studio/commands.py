"""Short commands of `tacit` whose answer a page waits for, each in a process of its own.

What they read leaves memory with them: a ledger of 100,000 entries takes half a gigabyte.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tacit.errors import TacitError

_MOST_SECONDS = 600.0


def answer_of(arguments: Sequence[str], *, codes: Sequence[int] = (0,)) -> dict[str, Any]:
    """The JSON object that `tacit ARGUMENTS --json` prints; its refusal as our own."""
    done = subprocess.run(
        [sys.executable, "-m", "tacit", *arguments, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
    if done.returncode not in codes:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TacitError(" ".join(said).removeprefix("tacit: ") or "the command ended silently.")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
