"""The command line: `tacit COMMAND`, thin over the package."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tacit.system.extras import MissingExtra, missing


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with one sentence on standard error and exit code 2."""
    try:
        from tacit.cli.app import run
    except ModuleNotFoundError as error:  # a device has NumPy alone
        lacking = missing(error)
        if lacking is None:
            raise
        sys.exit(_refuse(lacking))

    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def _refuse(lacking: MissingExtra) -> int:
    sys.stderr.write(f"tacit: {lacking}\n")
    return 2
