"""What holds for every test: no ledgers but its own, fixed searches, order, extras left out."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest
from hypothesis import settings

from left_out import skip_if_import_left_out

# The same examples in every run, so that a random search cannot break a change that is not to
# blame. `HYPOTHESIS_PROFILE=explore pytest ...` searches anew each time; what it finds becomes a
# test of its own.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", derandomize=False, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_configure(config: pytest.Config) -> None:
    """Nothing that a test runs may reach the account's own ledgers of persons."""
    folder = tempfile.TemporaryDirectory(prefix="tacit-persons-")
    os.environ["TACIT_LEDGERS"] = folder.name
    os.environ.pop("TACIT_ANCHORS", None)
    config.add_cleanup(folder.cleanup)


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


class Module(pytest.Module):
    """A file of tests; one that imports an extra which is left out is skipped as a whole."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return list(super().collect())
        except self.CollectError as error:
            if isinstance(error.__cause__, ImportError):
                skip_if_import_left_out(error.__cause__)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    """Collect every file as above."""
    return Module.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Skip a test whose fixtures need an extra that is left out."""
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Skip a test that needs an extra that is left out."""
    return (yield from _skipping())


def _skipping() -> Generator[None, object, object]:
    try:
        return (yield)
    except ImportError as error:
        skip_if_import_left_out(error)
        raise
