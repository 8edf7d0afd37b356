"""One folder of compiled programs for all tests of the family, in every worker of a run."""

from __future__ import annotations

import pytest

from silo_parties import shared_cache


@pytest.fixture(autouse=True)
def _one_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache(tmp_path_factory)))
