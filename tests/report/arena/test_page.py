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
from tacit.report.arena.page import write_arena_page
from tacit.report.arena.tables import budget_name, short_guarantee
from tacit.report.look import in_page

SETS = ("GunPoint", "Coffee", "BeetleFly", "Herring", "DiatomSizeReduction")
SUITES = (
    "softshape-table2", "softshape-table3", "fedst", "fedst-secure", "fedst-contract", "timefl",
    "fleet-published", "frontier", "quick",
)  # fmt: skip
OWN_SETS = ("softshape-table2", "timefl", "fleet-published", "fedst-secure", "fedst-contract")


def record(task: Any, number: int, **changes: Any) -> dict[str, Any]:
    sound = task.suite == "frontier" or task.method == "timefl"
    guarantee = (
        DpGuarantee(epsilon=task.epsilon, model="local", unit="series")
        if sound
        else Unprotected(reason="of the test", nominal_epsilon=task.epsilon)
    )
    details: dict[str, Any] = {"train_seconds": 1.5}
    if task.suite == "timefl" and task.method == "timefl":
        details |= {
            "accuracy_per_round": [0.5, 0.6, 0.7],
            "baselines": {"fedavg": 0.9, "central_dp": 0.8},
            "split": dict(task.options).get("split", "iid"),
            "mechanism": dict(task.options).get("mechanism", "privunit"),
        }
    if task.method == "timefl-published":
        ended = "delta" if (task.epsilon or 100.0) < 100.0 else "convergence"
        details |= {"accuracy_per_round": [0.5, 0.6, 0.7], "rounds": 3, "delta_limit": 0.1,
                    "ended_by": ended, "clip_norm": 5.0,
                    "nominal_delta_per_round": [1e-9, 1e-7, 1e-5]}  # fmt: skip
    if task.suite == "fedst-secure":
        details |= {"predictions": "abc", "shapelets": "0:1:2 3:4:5", "bytes_sent": 2_000_000}
        details["search_seconds_without_compiling"] = 1.0 + number % 5
    if task.suite == "fedst-contract":
        found = {"real_seconds": 1.2, "n_examined": 50, "accuracy": 0.9}
        shares = [
            {**found, "share": 0.1 * i, "contract": 1.0 + i, "kept": i == 1} for i in range(1, 10)
        ]
        details |= {"full": found, "again": found, "contracts": shares}
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
        seeds = (0,) if suite == "softshape-table2" else (0, 1)
        choice = Choice(data=None if suite in OWN_SETS else SETS, seeds=seeds)
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
def test_a_contents_list_comes_first_and_a_figure_opens_every_part(page: str) -> None:
    links = re.findall(r'<li><a href="#([^"]+)">', page)
    assert len(links) == len(SUITES)
    assert page.index(f'href="#{links[0]}"') < page.index("<table")
    for link in links:
        _, part = page.split(f'<h2 id="{link}">')
        assert 0 < part.index("<svg") < part.index("<table")


@pytest.mark.seconds
def test_the_page_holds_every_table_and_loads_nothing(page: str) -> None:
    assert len(page) < 1_500_000
    for words in (
        "How to read it", "Table 2", "Table 3", "Table 4", "Fig. 2", "Fig. 4", "Fig. 5",
        "delta, 100 clients", "Fig. 7", "Fig. 8", "Frontier",
        "Fig. 7: seconds of the federated search", "Fig. 10: real time against the contract",
        "Fig. 10: accuracy under a time contract", "6 of 54 searches on 6 sets ended within",
        "DP-TimeFL", "Guarantees", "0.722", "0.565", "Fig. 3: WISDM, 100 clients, tuned preset",
        'DP-TimeFL "8": delta ends it after round 3', "Fig. 5: MFD",
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
    cells = ("rocket", "0.898", f"{sum(mine) / len(mine):.3f}", "0.565")
    assert "".join(f'<td class="short">{cell}</td>' for cell in cells) in page


def test_an_epsilon_without_a_guarantee_is_called_nominal(page: str) -> None:
    start = page.index('<h2 id="dp-softshape-table-2')
    table3 = page.index('<h2 id="dp-softshape-table-3')
    published = page[start : page.index("<h2", table3 + 1)]
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
    assert "1 tasks were made by uncommitted code: they are left out where" in page
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
