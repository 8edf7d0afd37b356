"""What every test of the collector leaves behind: no open store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collector_parts import close_stores


@pytest.fixture(autouse=True)
def _closed_stores() -> Iterator[None]:
    yield
    close_stores()
