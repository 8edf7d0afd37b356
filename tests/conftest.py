"""Nothing that a test runs may reach the account's own ledgers of persons."""

from __future__ import annotations

import os
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    folder = tempfile.TemporaryDirectory(prefix="tacit-persons-")
    os.environ["TACIT_LEDGERS"] = folder.name
    os.environ.pop("TACIT_ANCHORS", None)
    config.add_cleanup(folder.cleanup)
