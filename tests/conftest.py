"""What holds for every test of the suite: fixed random searches, and the order of the files."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, so that a random search cannot break a change that is not to
# blame. `HYPOTHESIS_PROFILE=explore pytest ...` searches anew each time; what it finds becomes a
# test of its own.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: those handed out last are then short, and the workers end together."""
    milliseconds: Counter[Path] = Counter()
    for item in items:
        milliseconds[item.path] += _usual_milliseconds(item)
    items.sort(key=lambda item: -milliseconds[item.path])


def _usual_milliseconds(item: pytest.Item) -> int:
    """Roughly what a test takes, by the marker that it has."""
    for marker, milliseconds in (("slow", 15_000), ("seconds", 2_000)):
        if item.get_closest_marker(marker):
            return milliseconds
    return 50
