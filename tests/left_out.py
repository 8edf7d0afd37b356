"""Extras that an environment goes without on purpose: tests that need one are skipped and say so.

`TACIT_LEFT_OUT="networks silo"` names them. Where it is not set, a missing package is a failure.
"""

from __future__ import annotations

import os
import re

import pytest

from tacit.system.extras import missing

LEFT_OUT = frozenset(os.environ.get("TACIT_LEFT_OUT", "").split())
_NAMED = re.compile(r"pip install 'tacit-ts\[(\w+)\]'")


def skip_if_left_out(sentence: str) -> None:
    """Skip the test if this sentence asks for an extra that was left out."""
    named = _NAMED.search(sentence)
    if named and named[1] in LEFT_OUT:
        pytest.skip(f"needs the extra '{named[1]}', which is left out here")


def skip_if_import_left_out(error: ImportError) -> None:
    """Skip the test if this import failed for an extra that was left out."""
    found = missing(error) if isinstance(error, ModuleNotFoundError) else error
    if found is not None:
        skip_if_left_out(str(found))
