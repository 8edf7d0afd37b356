"""What the recorded suite says of place releases holds the floors, and the guide quotes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
CURRENT = ROOT / "results" / "current"
FLOORS = {1.0: 0.98, 2.0: 0.96, 3.0: 0.94, 5.0: 0.95, 8.0: 0.98}  # of the label's accuracy
RIGHT = {3.0: 0.70, 5.0: 0.90}

Cell = tuple[str, int]
Records = dict[float, dict[Cell, dict[str, Any]]]


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def place() -> Records:
    found: Records = {epsilon: {} for epsilon in FLOORS}
    for line in records(CURRENT / "softshape-sound" / "results.jsonl"):
        task = line["task"]
        if task["method"] == "softshape-place" and line["status"] == "done":
            found[task["epsilon"]][task["data"], task["seed"]] = line
    return found


@pytest.fixture(scope="module")
def label() -> Records:
    found: Records = {epsilon: {} for epsilon in FLOORS}
    for line in records(CURRENT / "local_sound.jsonl"):
        if line["release"] == "label":
            found[line["epsilon"]][line["dataset"], line["seed"]] = line
    return found


def mean(cells: dict[Cell, dict[str, Any]], value: Callable[[dict[str, Any]], float]) -> float:
    return sum(map(value, cells.values())) / len(cells)


def expected(line: dict[str, Any]) -> float:
    return float(line.get("details", line)["expected_accuracy"])


@pytest.mark.parametrize("epsilon", FLOORS)
def test_places_cost_no_more_accuracy_than_allowed(
    place: Records, label: Records, epsilon: float
) -> None:
    mine, theirs = place[epsilon], label[epsilon]
    assert set(mine) == set(theirs)
    assert (len({name for name, _ in mine}), len(mine)) == (19, 3 * 19)
    for value in (expected, lambda line: float(line["accuracy"])):
        assert mean(mine, value) >= FLOORS[epsilon] * mean(theirs, value)


@pytest.mark.parametrize("epsilon", RIGHT)
def test_places_are_right_often_enough_and_more_often_than_a_table(
    place: Records, epsilon: float
) -> None:
    right = mean(place[epsilon], lambda line: float(line["details"]["place_right"]))
    table = mean(place[epsilon], lambda line: float(line["details"]["table_right"]))
    assert right >= RIGHT[epsilon]
    assert right > table + 0.1


def test_the_guide_quotes_the_records(place: Records) -> None:
    """How often a place is right; tests/arena/test_guide_numbers.py compares the accuracies."""
    guide = (ROOT / "docs" / "guide" / "local.md").read_text(encoding="utf-8")
    for name, cells, digits, value in (
        ("place", place, 3, lambda line: float(line["details"]["place_right"])),
        ("table", place, 3, lambda line: float(line["details"]["table_right"])),
    ):
        told = [f"{mean(cells[epsilon], value):.{digits}f}".lstrip("0") for epsilon in FLOORS]
        start = {"table": "| label and a public table |"}.get(name, "| place |")
        rows = [line.replace("*", "") for line in guide.splitlines() if line.startswith(start)]
        assert f"{start} {' | '.join(told)} |" in rows
