"""The command line: `tacit COMMAND`, thin over the package."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with one sentence on standard error and exit code 2."""
    from tacit.cli.app import run

    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))
