"""docs/papers.md: what it names exists, its commands parse, its verdicts are the records'."""

from __future__ import annotations

import importlib
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tacit.arena.results.claims import all_claims
from tacit.arena.results.page import fill_page
from tacit.arena.results.papers import ITEMS, Claim, Runs, papers_table
from tacit.arena.results.tables import Results
from tacit.arena.results.verdicts import in_short
from tacit.cli.app import app

ROOT = Path(__file__).parents[3]
CURRENT = ROOT / "results" / "current"


@pytest.mark.parametrize("where", sorted({item.where for item in ITEMS} - {"-"}))
def test_what_is_named_exists(where: str) -> None:
    module, _, name = where.partition(":")
    found = importlib.import_module(module)
    assert not name or hasattr(found, name)


@pytest.mark.parametrize("command", sorted({item.command for item in ITEMS} - {"-"}))
def test_every_command_parses(command: str) -> None:
    program, *words = shlex.split(command)
    if program == "python":
        assert (ROOT / words[0]).exists()
        return
    assert program == "tacit"
    found: Any = get_command(app)
    while hasattr(found, "commands"):
        name, *words = words
        found = found.commands[name]
    assert found.make_context(found.name, words).params


def test_every_claim_stands_in_the_table_with_its_verdict() -> None:
    results = Results(CURRENT)
    short = in_short(all_claims(results))
    named = {(item.paper, item.verdict.text) for item in ITEMS if isinstance(item.verdict, Claim)}
    assert named == {(paper, claim) for paper, claim, _ in short}
    shown = papers_table(results)
    assert all(f"| {verdict} |" in shown for _, _, verdict in short)


def test_what_counts_as_recorded_is_what_the_table_shows(tmp_path: Path) -> None:
    """Three suites run some cells of Tables 2 and 3 alike; the tables take them from any."""
    record: dict[str, Any] = {"status": "done", "commit": "abc", "accuracy": 0.5, "details": {}}
    task = {"method": "softshape-published", "data": "Coffee", "epsilon": 0.1, "options": {}}
    for suite, seed in (("softshape-published", 0), ("softshape-table3", 1)):
        (tmp_path / suite).mkdir()
        line = json.dumps({**record, "task": {**task, "suite": suite, "seed": seed}})
        (tmp_path / suite / "results.jsonl").write_text(line + "\n")
    items = {item.name: item.verdict for item in ITEMS}
    for name, told in (("Table 2", "2 of 285"), ("Table 3", "2 of 912")):
        runs = items[f"{name}, preset tuned"]
        assert isinstance(runs, Runs)
        assert runs.told(Results(tmp_path)) == f"recorded: {told} runs"


def test_the_committed_page_has_the_verdicts_of_the_committed_records(tmp_path: Path) -> None:
    page = tmp_path / "papers.md"
    shutil.copy(ROOT / "docs" / "papers.md", page)
    assert fill_page(page, CURRENT)["tables"] == 1
    assert page.read_text() == (ROOT / "docs" / "papers.md").read_text(), (
        "docs/papers.md is not up to date: tacit arena tables docs/papers.md"
    )
