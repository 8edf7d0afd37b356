"""README and docs: every python block runs, every `$ tacit` line succeeds, every path exists.

A block under `<!-- not run: reason -->` is left out; the reason has to be given.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import documented_keys, tacit
from guide_walk import BLOCK, WALKED
from stand_ins import write_recordings

ROOT = Path(__file__).parent.parent
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.md")),
    *sorted((ROOT / "results").rglob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(#[^)]*)?\)")
# A path of this repository; `COMMIT:path` names a file of an earlier commit and is left out.
FOLDERS = "benchmarks|deploy|docs|examples|results|src|tests"
PLACE = re.compile(rf"(?<![\w:/.])(?:{FOLDERS})/[\w*./-]*[\w*]")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[tuple[str, str]]:
    """Kind and text of every block that is run, in order."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(kind, body) for skipped, kind, body in found if not skipped]


def with_blocks() -> list[object]:
    """The pages that have blocks; those of the silo family need its extra."""
    return [
        pytest.param(page, marks=[pytest.mark.silo] if page.name.startswith("silo") else [])
        for page in PAGES
        if page.name not in WALKED and blocks(page)
    ]


@pytest.fixture(autouse=True)
def _in_a_fresh_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TACIT_DATA", raising=False)


@pytest.mark.seconds
@pytest.mark.parametrize("page", with_blocks(), ids=name_of)
def test_examples_run_in_order(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if page.name == "data.md":
        write_recordings()
    names: dict[str, object] = {}
    for number, (kind, body) in enumerate(blocks(page), start=1):
        if kind == "python":
            exec(compile(body, f"{page.name} block {number}", "exec"), names)
            continue
        for line in body.splitlines():
            if line.startswith("$ tacit "):
                outcome = tacit(capsys, *shlex.split(line)[2:])
                assert outcome.code == 0, f"{line}\n{outcome.err}"


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        place = (page.parent / target).resolve() if target else page
        assert place.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            assert anchor[1:] in anchors(place), f"{name_of(page)} links to {target}{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_that_pages_name_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = {place for place in PLACE.findall(text) if not list(ROOT.glob(place))}
    assert not missing, f"{name_of(page)} names {sorted(missing)}"


def test_pages_that_the_source_names_exist() -> None:
    for file in sorted((ROOT / "src").rglob("*.py")):
        for place in re.findall(r"docs/[\w./-]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / place).exists(), f"{name_of(file)} names {place}"


def test_the_check_of_paths_notices_a_missing_one() -> None:
    assert PLACE.findall("see `results/old.jsonl` and tests/nothing.") == [
        "results/old.jsonl",
        "tests/nothing",
    ]
    assert PLACE.findall("git show abc1234:benchmarks/gone.py, a/docs/x and mytests/x") == []


def test_every_record_and_decision_has_a_line_in_its_readme() -> None:
    for folder in (ROOT / "results" / "current", ROOT / "results" / "archive"):
        index = (folder / "README.md").read_text(encoding="utf-8")
        for file in sorted(folder.rglob("*.jsonl")):
            assert f"`{file.relative_to(folder)}`" in index, f"{folder.name} lacks {file.name}"
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs" / "decisions").glob("2*.md")):
        assert f"| {page.name[:10]} | " in index
        assert f"({page.name})" in index


def test_public_names_are_the_documented_ones() -> None:
    import tacit as package

    table = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", table, re.M))
    assert documented == set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


OFFERING = (
    "local", "ledger", "data", "accounting", "mechanisms", "audit", "fleet", "silo", "hybrid",
)  # fmt: skip


@pytest.mark.parametrize("room", OFFERING)
def test_names_that_a_room_offers_have_their_signature_on_the_page(room: str) -> None:
    """By the module that defines them, because that is where the docs tool finds them."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^::: ([\w.]+)$", page, re.M))
    module = importlib.import_module(f"tacit.{room}")
    for name in module.__all__:
        where = getattr(getattr(module, name), "__module__", None) or module.__name__
        places = {f"{where}.{name}", f"{module.__name__}.{name}"}
        assert places & documented, f"docs/reference/api.md lacks {module.__name__}.{name}"


def test_suites_are_the_documented_ones() -> None:
    from tacit.arena.suites import SUITES, suite_tasks

    guide = (ROOT / "docs" / "guide" / "arena.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([\w-]+)` \| (\d+) \|", guide, re.M)
    assert dict(documented) == {name: str(len(suite_tasks(name))) for name in SUITES}


COMMANDS = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")


def test_commands_are_the_documented_ones() -> None:
    import typer

    from tacit.cli.app import app

    def leaves(node: Any, path: str) -> Iterator[str]:
        children = getattr(node, "commands", None)
        if children is None:
            yield path
        for name, child in (children or {}).items():
            yield from leaves(child, f"{path} {name}")

    rows = re.findall(r"^\| (`tacit [^|]+) \|", COMMANDS, re.M)
    documented = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(documented) == sorted(leaves(typer.main.get_command(app), "tacit"))


@pytest.mark.seconds
@pytest.mark.parametrize(
    "command",
    [
        "tacit data list",
        "tacit data show ItalyPowerDemand",
        "tacit account shuffle --local-epsilon 1 --n 1000 --delta 1e-6",
        "tacit account calibrate --central-epsilon 1 --n 1000 --delta 1e-6",
        "tacit account compose --round 1.0:1000x9 --delta 1e-6",
        "tacit account group --epsilon 0.5 --size 4",
        "tacit account gaussian --noise-multiplier 12 --rounds 100 --delta 1e-5",
        "tacit account table1",
        "tacit audit krr --trials 20000",
        "tacit attack pidp --length 20 --runs 1",
        "tacit ledger init --db spend.db --per-subject-epsilon 4",
        "tacit silo init federation --parties a,b,c",
    ],
)
def test_documented_keys_are_printed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = command.split()
    printed = tacit(capsys, *words[1:], "--json").json  # looks for the documented keys itself
    assert documented_keys(words[1:]) <= set(printed)


def test_promised_keys_depend_on_the_call() -> None:
    train = ["train", "softshape", "--data", "x"]
    assert {"accuracy", "confusion", "ceiling"} <= documented_keys(train)
    assert not {"bundle", "leakage", "low"} & documented_keys(train)
    published = documented_keys([*train, "--mode", "published", "--out=b", "--page", "p.html"])
    assert {"bundle", "leakage", "page"} <= published
    assert "ceiling" not in published
    assert documented_keys(["audit", "krr"]) == documented_keys(["audit"]) > {"verdict"}
    assert "told" not in documented_keys(["fleet", "renew", "x"])
    assert documented_keys(["fleet", "renew", "x", "--sealing"]) == {"folder", "key"}
