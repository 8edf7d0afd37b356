"""The guides for new users, word for word: each ends with what it promised."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from guide_walk import extras_of, hidden_without, walk

GUIDES = Path(__file__).parents[1] / "docs" / "guide"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]
SECONDS = 900.0  # limit on a busy machine; alone the longest takes about two minutes


def test_a_walk_hides_what_its_guide_does_not_name() -> None:
    hidden = hidden_without(extras_of(GUIDES / "wearable.md"))
    assert {"torch", "flwr", "jax"} <= hidden
    assert not {"jinja2", "fastapi", "starlette", "uvicorn", "altair", "vl_convert"} & hidden
    assert {"altair", "vl_convert"} <= hidden_without({"fleet"})


def test_a_wearable_reaches_a_population(tmp_path: Path) -> None:
    said = walk(GUIDES / "wearable.md", tmp_path, seconds=SECONDS)
    assert "6: u0, u1, u2, u3, u4, u5" in said
    assert "prevalence" in said
    assert "Privacy disclosure" in (tmp_path / "disclosure.html").read_text()


@pytest.mark.silo
def test_hospitals_get_an_explained_model(tmp_path: Path) -> None:
    walk(GUIDES / "hospitals.md", tmp_path, seconds=SECONDS)
    labels = json.loads((tmp_path / "labels.json").read_text())["labels"]
    assert labels.count("wake") == pytest.approx(12, abs=4)
    assert "<svg" in (tmp_path / "why.html").read_text()
    assert "ABY3" in (tmp_path / "disclosure.md").read_text()


def test_a_researcher_accounts_audits_and_attacks(tmp_path: Path) -> None:
    said = walk(GUIDES / "researcher.md", tmp_path, seconds=SECONDS)
    assert "blanket" in said
    assert "consistent" in said
    assert "epsilon = 3 in total" in said


@pytest.mark.silo
def test_a_plant_trains_by_silo_and_by_fleet(tmp_path: Path) -> None:
    walk(GUIDES / "plant.md", tmp_path, seconds=SECONDS)
    assert json.loads((tmp_path / "run.json").read_text())["finished"]
    assert len(json.loads((tmp_path / "labels.json").read_text())["labels"]) > 0


def test_an_operator_lets_a_device_join_and_plans_the_next_run(tmp_path: Path) -> None:
    said = walk(GUIDES / "operator.md", tmp_path, seconds=SECONDS)
    assert "node-9" in said
    assert len(json.loads((tmp_path / "labels.json").read_text())["labels"]) > 0
    assert "Privacy disclosure" in (tmp_path / "disclosure.html").read_text()
    assert (tmp_path / "next.toml").exists()
    assert "finished after 3 of 3" in said
    assert "finished after 4 of 4" in said
    # 4 where a round had three reports; four are amplified by the shuffler, a little.
    assert re.search(r"epsilon = (4|3\.95\d*)\b", (tmp_path / "second.html").read_text())
    assert re.search(r"epsilon = 8\b", (tmp_path / "first.html").read_text())


def test_a_collector_counts_two_devices_once(tmp_path: Path) -> None:
    said = walk(GUIDES / "collector.md", tmp_path, seconds=SECONDS)
    assert re.search(r"stored +\W+150", said)
    assert "{'stored': 150, 'repeated': 0}" in said  # the second device, in Python
    assert (tmp_path / "device-key.json").exists()
    assert (tmp_path / "second-device.json").exists()
    assert len((tmp_path / "releases.csv").read_text().splitlines()) == 151


def test_a_fleet_is_deployed_with_light_nodes_and_renewed(tmp_path: Path) -> None:
    said = walk(GUIDES / "fleet-deployment.md", tmp_path, seconds=SECONDS)
    assert len(json.loads((tmp_path / "labels.json").read_text())["labels"]) > 0
    assert (tmp_path / "node-9" / "node.toml").exists()
    assert re.search(r"in use\W+yes", said)  # the certificates were renewed under way
    assert "shuffler, analyser, server, node-1, node-2" in said
