"""The command that writes docs/results.md: idempotent, and its verdicts follow the records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from command import assert_refused, tacit
from tacit.arena.results.frontier import frontier_records
from tacit.arena.results.page import MAKERS, fill_page
from tacit.arena.results.softshape import OURS, rival_rows, table2_records
from tacit.arena.results.tables import Results, over_seeds
from tacit.arena.softshape.suites import SOFTSHAPE_SETS
from tacit.report.arena.docs_tables import OF_SUITE, ON_TOP, table_of
from tacit.report.arena.tables import mean_over_sets
from tacit.report.page import table_html

ROOT = Path(__file__).parents[3]
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
        for data in SOFTSHAPE_SETS
        for epsilon, accuracy in ((None, 0.9), (0.1, 0.5), (0.5, 0.5), (1.0, 0.6), (5.0, 0.66))
    ]
    lines.append(rocket("c", None, 0.0, commit="abc-dirty"))
    write_records(results / "softshape-table2", lines)
    made = tacit(capsys, *COMMAND, page, "--results", results, "--json").json
    assert (made["tables"], made["uncommitted"]) == (20, [])
    first = page.read_text()
    assert "| rocket | 0.898 | 0.900 | 0.565 | 0.565 | yes | 19, 19 | 1 | - |" in first
    claim = "| DP-SoftShape | against .565 for rocket in the same setting | reproduced | 0.565 on"
    assert claim in first
    assert "three orders of magnitude of speedup | not tested here" in first
    fill_page(page, results)
    assert page.read_text() == first


def test_a_mean_over_fewer_sets_does_not_stand_beside_the_paper_s(tmp_path: Path) -> None:
    lines = [rocket(data, None, 0.99) for data in SOFTSHAPE_SETS[:3]]
    write_records(tmp_path / "softshape-table2", lines)
    shown = MAKERS["rivals"](Results(tmp_path))
    assert "| rocket | 0.898 | - | 0.565 | - | incomplete | 3, 0 | 1 | - |" in shown


def test_every_table_of_the_docs_stands_on_the_committed_page() -> None:
    """One source: the page's tables are made by the same functions, and it is up to date."""
    results = Results(CURRENT)
    page = (CURRENT / "report.html").read_text(encoding="utf-8")
    digest = f"Made from the records with the digest {results.digest()}."
    assert digest in page, "the page is out of date: tacit arena report results/current"
    shown = [*ON_TOP, *(name for names in OF_SUITE.values() for name in names)]
    assert set(MAKERS) - set(shown) <= {"speed", "speed-growth", "speed-steps"}
    for name in shown:
        assert table_html(table_of(MAKERS[name](results))) in page, name


def test_the_page_says_what_the_docs_say_of_cells_that_several_suites_have() -> None:
    """The numbers on which page and docs once disagreed come from the same records."""
    results = Results(CURRENT)
    rows = {row.name: row for row in rival_rows(table2_records(results))}
    tuned = [r for r in table2_records(results) if r["task"]["options"] == {}]
    clean = [r for r in tuned if r["task"]["method"] == OURS and r["task"]["epsilon"] is None]
    ours = rows["DP-SoftShape, preset tuned"].ours[0]
    assert over_seeds(clean).startswith(f"{ours:.3f} ")
    assert over_seeds(clean) in MAKERS["softshape"](results)
    labels = [
        r
        for r in frontier_records(results)
        if (r["task"]["method"], r["task"]["epsilon"]) == ("softshape-label", 1.0)
    ]
    assert f"| label | 1 | {mean_over_sets(labels):.3f} |" in MAKERS["sound-labels"](results)


def test_the_digest_changes_with_any_line(tmp_path: Path) -> None:
    write_records(tmp_path / "softshape-table2", [rocket("a", None, 0.5)])
    first = Results(tmp_path).digest()
    (tmp_path / "silo_speed.jsonl").write_text("{}\n")
    assert len({first, Results(tmp_path).digest()}) == 2


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


def test_every_failed_task_is_listed_with_its_reason(tmp_path: Path) -> None:
    lines = [rocket(data, 0.5, 0.5) for data in "abcd"]
    for line, reason in zip(lines, ("too long.", "too long.", "killed.", "killed."), strict=True):
        line |= {"status": "failed", "reason": reason}
    again = rocket("d", 0.5, 0.5)  # run again, and done this time
    write_records(tmp_path / "softshape-table2", [*lines, again])
    shown = MAKERS["failed"](Results(tmp_path)).splitlines()[2:]
    assert shown == [
        "| softshape-table2 | killed. | c | rocket | 1 |",
        "| softshape-table2 | too long. | a, b | rocket | 2 |",
    ]
    assert "| none | - | - | - | 0 |" in MAKERS["failed"](Results(tmp_path / "empty"))


def test_no_failed_task_of_the_records_goes_without_a_reason() -> None:
    results = Results(CURRENT)
    failed = [record for record in results.every if record["status"] == "failed"]
    rows = MAKERS["failed"](results).splitlines()[2:]
    assert sum(int(row.rsplit("|", 2)[1]) for row in rows) == len(failed)
    assert all(any(record["reason"] in row for row in rows) for record in failed)


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
    lines = (CURRENT / "fleet_sound.jsonl").read_text().splitlines()
    (tmp_path / "fleet_sound.jsonl").write_text("\n".join(lines[:10]) + "\n")
    lines = (CURRENT / "fleet-published" / "results.jsonl").read_text().splitlines()
    write_records(tmp_path / "fleet-published", [json.loads(line) for line in lines[:10]])
    assert tacit(capsys, *words).json["fleet_page"] == str(page)
    text = page.read_text()
    assert "WISDM, as published" in text
    assert "with a guarantee" in text
    assert "Who can be linked" in text
