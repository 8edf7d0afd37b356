"""A fleet's life with few nodes; benchmarks/fleet_life.py has the same story with 30 and 3."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet_story import fleet_story


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nodes_come_and_go_and_services_die_and_renew(tmp_path: Path) -> None:
    with fleet_story(tmp_path / "fleet", light=4, slow=240.0) as story:
        found = story.tell()
    assert found["accuracy"] > 0.8
    assert found["debits"] >= 5
