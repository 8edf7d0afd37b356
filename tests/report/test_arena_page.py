"""The page from records of every suite: complete, small, without scripts or network."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from command import assert_refused, tacit
from tacit.arena.grid import Choice
from tacit.arena.store import Store, read_records
from tacit.arena.suites import suite_tasks
from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.report.arena_page import write_arena_page
from tacit.report.arena_tables import budget_name, short_guarantee
from tacit.report.look import in_page

SETS = ("GunPoint", "Coffee", "BeetleFly", "Herring", "DiatomSizeReduction")
SUITES = ("softshape-table2", "softshape-table3", "fedst", "timefl", "frontier", "quick")


def record(task: Any, number: int, **changes: Any) -> dict[str, Any]:
    sound = task.suite in ("frontier", "timefl")
    guarantee = (
        DpGuarantee(epsilon=task.epsilon, model="local", unit="series")
        if sound
        else Unprotected(reason="of the test", nominal_epsilon=task.epsilon)
    )
    details: dict[str, Any] = {"train_seconds": 1.5}
    if task.suite == "timefl":
        details |= {
            "accuracy_per_round": [0.5, 0.6, 0.7],
            "baselines": {"fedavg": 0.9, "central_dp": 0.8},
            "split": dict(task.options).get("split", "iid"),
            "mechanism": dict(task.options).get("mechanism", "privunit"),
        }
        if dict(task.options).get("mode") == "published":
            details["nominal_delta_per_round"] = [1e-9, 1e-7, 1e-5]
    if task.method == "fedst" and dict(task.options).get("engine") != "twin":
        details |= {"search_seconds": 1.0 + number % 5, "n_examined": 50, "bytes_sent": 2_000_000}
    return {
        "task": task.to_dict(),
        "status": "done",
        "commit": "abc1234567",
        "accuracy": 0.5 + 0.4 * (number * 37 % 100) / 100,
        "guarantee": guarantee.to_dict(),
        "leakage": {"reidentification": 0.9} if "softshape-p" in task.method else None,
        "details": details,
        "seconds": 2.0,
        "cpu_seconds": 1.0 + number % 7,
        **changes,
    }


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with records of every suite, for reading only."""
    folder = tmp_path_factory.mktemp("arena")
    for suite in SUITES:
        choice = Choice(data=None if suite in ("timefl", "fedst") else SETS, seeds=(0, 1))
        lines = [record(task, number) for number, task in enumerate(suite_tasks(suite, choice))]
        (folder / suite).mkdir()
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / suite / "results.jsonl").write_text(text)
    return folder


@pytest.fixture(scope="module")
def made(everything: Path) -> dict[str, Path]:
    return write_arena_page(everything)


@pytest.fixture(scope="module")
def page(made: dict[str, Path]) -> str:
    return made["report"].read_text()


@pytest.fixture
def quick(everything: Path, tmp_path: Path) -> Path:
    """A folder with the records of the smallest suite, to write into."""
    shutil.copytree(everything / "quick", tmp_path / "quick")
    return tmp_path


@pytest.mark.seconds
def test_the_page_holds_every_table_and_loads_nothing(page: str) -> None:
    assert len(page) < 1_500_000
    for words in (
        "What may be concluded", "Table 2", "Table 3", "Table 4", "Fig. 2", "Fig. 4", "Fig. 5",
        "delta, 100 clients", "Fig. 7", "Fig. 8", "Frontier",
        "Fig. 7: seconds of the federated search", "Fig. 10: accuracy under a time contract",
        "DP-TimeFL", "Guarantees", "0.722", "0.565",
    ):  # fmt: skip
        assert words in page, words
    assert not re.search(r"<script|<link|<img|@import|url\(|src=", page)
    assert set(re.findall(r"https?://[^\"' ]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert 'name="viewport"' in page


@pytest.mark.seconds
def test_every_figure_is_a_picture_file_too(made: dict[str, Path], page: str) -> None:
    pictures = sorted(made["pictures"].glob("*.svg"))
    assert len(pictures) > 15
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert in_page(picture.read_text()) in page


@pytest.mark.seconds
def test_a_second_report_replaces_the_pictures_of_the_first(quick: Path) -> None:
    made = write_arena_page(quick)
    pictures = sorted(made["pictures"].iterdir())
    (made["pictures"] / "99-of-an-earlier-report.svg").touch()
    write_arena_page(quick)
    assert sorted(made["pictures"].iterdir()) == pictures


@pytest.mark.seconds
def test_their_number_stands_beside_ours(everything: Path, page: str) -> None:
    mine = [
        r["accuracy"]
        for r in read_records(everything / "softshape-table2")
        if r["task"]["method"] == "rocket" and r["task"]["epsilon"] is None
    ]
    expected = f"<td>rocket</td><td>0.898</td><td>{sum(mine) / len(mine):.3f}</td><td>0.565</td>"
    assert expected in page


def test_an_epsilon_without_a_guarantee_is_called_nominal(page: str) -> None:
    start = page.index("<h2>DP-SoftShape, Table 2")
    published = page[start : page.index("<h2>", page.index("<h2>DP-SoftShape, Table 3") + 1)]
    budgets = re.findall(r"(.{8})epsilon = [\d.]+", published)
    assert budgets
    assert set(budgets) == {"nominal "}
    assert "<h3>softshape-published, nominal epsilon = " in page
    assert "<h3>softshape-label, epsilon = " in page


def test_a_heading_over_mixed_records_says_so() -> None:
    sound = {"guarantee": {"kind": "dp"}}
    nominal = {"guarantee": {"kind": "unprotected"}}
    assert budget_name(None, [nominal]) == "without noise"
    assert budget_name(0.5, [sound, sound]) == "epsilon = 0.5"
    assert budget_name(0.5, [nominal]) == "nominal epsilon = 0.5"
    assert budget_name(0.5, [sound, nominal]) == "epsilon = 0.5 (for some methods only nominal)"


def test_a_table_shows_no_less_than_was_spent() -> None:
    found = DpGuarantee(epsilon=100.0004, delta=1.0000004e-5, model="local", unit="series")
    shown = short_guarantee({"guarantee": found.to_dict()})
    assert shown.startswith("epsilon 100.01, delta 1.0001e-05: ")


@pytest.mark.seconds
def test_uncommitted_results_are_left_out(quick: Path) -> None:
    task = suite_tasks("quick", Choice(data=SETS, methods=("1-nn",), seeds=(9,)))[0]
    Store(quick).append(record(task, 0, commit="abc-dirty", accuracy=0.123456))
    page = write_arena_page(quick)["report"].read_text()
    assert "1 tasks were made by uncommitted code: they are left out." in page
    with pytest.raises(TacitError, match="no finished task"):
        write_arena_page(quick / "nothing")


@pytest.mark.seconds
def test_png_needs_no_browser(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(quick))
    pictures = write_arena_page(quick, png=True)["pictures"]
    names = [path.stem for path in sorted(pictures.glob("*.svg"))]
    assert [path.stem for path in sorted(pictures.glob("*.png"))] == names
    assert (pictures / f"{names[0]}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.seconds
def test_the_command_says_where_page_and_pictures_are(
    quick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = tacit(capsys, "arena", "report", quick, "--json").json
    assert Path(found["report"]).exists()
    assert any(Path(found["pictures"]).iterdir())


@pytest.mark.seconds
def test_budgets_are_chosen_by_number_or_by_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("arena", "run", "quick", "--data", "ItalyPowerDemand", "--method", "majority")
    outcome = tacit(capsys, *words, "--epsilon", "none", "--epsilon", "2", "--out", tmp_path / "r")
    assert outcome.code == 0, outcome.err
    assert {r["task"]["epsilon"] for r in read_records(tmp_path / "r")} == {None, 2.0}
    for bad in ("0", "-1", "nan", "inf", "much"):
        refused = tacit(capsys, *words, "--epsilon", bad, "--out", tmp_path / "s")
        assert_refused(refused, "epsilon")
