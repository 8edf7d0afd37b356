"""The command that writes docs/results.md: idempotent, and its verdicts follow the records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from command import assert_refused, tacit
from tacit.arena.results.page import fill_page
from tacit.arena.results.tables import Results

ROOT = Path(__file__).parents[2]
CURRENT = ROOT / "results" / "current"
COMMAND = ("arena", "tables")


def rocket(data: str, epsilon: float | None, accuracy: float, **changes: Any) -> dict[str, Any]:
    task: dict[str, Any] = {
        "suite": "softshape-table2", "method": "rocket", "data": data, "epsilon": epsilon,
        "seed": 0, "options": {},
    }  # fmt: skip
    return {"task": task, "status": "done", "commit": "abc", "accuracy": accuracy, **changes}


def write_records(folder: Path, lines: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True)
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_page_is_filled_from_the_lines_and_stays_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, results = tmp_path / "results.md", tmp_path / "results"
    shutil.copy(ROOT / "docs" / "results.md", page)
    lines = [
        rocket(data, epsilon, accuracy)
        for data in ("a", "b")
        for epsilon, accuracy in ((None, 0.9), (0.1, 0.5), (0.5, 0.5), (1.0, 0.6), (5.0, 0.66))
    ]
    lines.append(rocket("c", None, 0.0, commit="abc-dirty"))
    write_records(results / "softshape-table2", lines)
    made = tacit(capsys, *COMMAND, page, "--results", results, "--json").json
    assert (made["tables"], made["uncommitted"]) == (9, [])
    first = page.read_text()
    assert "| rocket | 0.898 | 0.900 | 0.565 | 0.565 | other sets | 2 | 1 | - |" in first
    claim = "| DP-SoftShape | against .565 for rocket in the same setting | reproduced | 0.565 on"
    assert claim in first
    assert "three orders of magnitude of speedup | not tested here" in first
    fill_page(page, results)
    assert page.read_text() == first


def test_the_committed_page_has_the_figures_of_the_committed_records(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    shutil.copy(ROOT / "docs" / "results.md", page)
    fill_page(page, CURRENT)
    assert page.read_text() == (ROOT / "docs" / "results.md").read_text(), (
        "docs/results.md is not up to date: tacit arena tables docs/results.md"
    )


def test_uncommitted_records_are_shown_only_where_there_are_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "softshape-table2"
    write_records(folder, [rocket("a", None, 0.5, commit="abc-dirty")])
    results = Results(tmp_path)
    assert len(results.suite("softshape-table2")) == 1
    assert results.uncommitted == {"softshape-table2"}
    with (folder / "results.jsonl").open("a") as file:
        file.write(json.dumps(rocket("b", None, 0.6)) + "\n")
    results = Results(tmp_path)
    assert [r["task"]["data"] for r in results.suite("softshape-table2")] == ["b"]
    assert results.uncommitted == set()


def test_a_task_that_was_run_again_counts_once(tmp_path: Path) -> None:
    lines = [rocket("a", None, 0.5), rocket("a", None, 0.7)]
    write_records(tmp_path / "softshape-table2", lines)
    assert [r["accuracy"] for r in Results(tmp_path).suite("softshape-table2")] == [0.7]


def test_a_page_without_places_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Nothing to fill\n")
    assert_refused(tacit(capsys, *COMMAND, page, "--results", tmp_path), "0 places")
    assert page.read_text() == "# Nothing to fill\n"
    assert_refused(tacit(capsys, *COMMAND, tmp_path / "none.md"), "cannot read the page")


@pytest.mark.seconds
def test_the_fleet_suites_are_drawn_from_both_forms_of_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = (CURRENT / "quick" / "results.jsonl").read_text().splitlines()[0]
    write_records(tmp_path / "quick", [json.loads(line)])
    page = tmp_path / "fleet.html"
    words = ("arena", "report", tmp_path, "--fleet-page", page, "--json")
    assert_refused(tacit(capsys, *words), "no record of fleet-published")
    for name in ("fleet_published", "fleet_sound"):
        lines = (CURRENT / f"{name}.jsonl").read_text().splitlines()
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines[:10]) + "\n")
    assert tacit(capsys, *words).json["fleet_page"] == str(page)
    text = page.read_text()
    assert "UCIHAR, as published" in text
    assert "with a guarantee" in text
    assert "Who can be linked" in text
