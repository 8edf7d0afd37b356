"""The table of who learns what is complete, and every proof, test and attack it names exists."""

from __future__ import annotations

import ast
import re
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guarantees" / "who-learns-what.md"
COLUMNS = 5
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
REASON = re.compile(
    r"`tests/[\w/]+\.py::\w+`|\]\([\w-]+\.md(#[\w-]+)?\)|`tacit (attack|audit) \S+`"
)
ROLES = {
    "Local": ("device", "trainer", "server"),
    "Silo": ("P0", "computing owner", "sharing owner"),
    "Fleet": ("client", "shuffler", "analyser", "server"),
    "Hybrid": ("fleet role", "server"),
}
# Of these there is one in a run, so that no pair has it twice.
ONE_OF_A_KIND = {"P0", "shuffler", "analyser", "server", "trainer", "fleet role"}
# Where noise is drawn in floating point: methods to compare with, a bound on ideal noise, and the
# simulator's shortcut for large fleets, which says so in its guarantee; no report leaves that way.
COMPARED = {
    "arena/rivals.py",
    "arena/fleet/rivals.py",
    "arena/fleet/flower.py",
    "fleet/simulation/baselines.py",
    "fleet/reports/privunit_sum.py",
    "accounting/gaussian.py",
}


def section(name: str) -> str:
    found = re.search(rf"^## {name}\b.*?(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    assert found is not None, f"the page has no section {name}"
    return found.group()


def rows(text: str) -> list[list[str]]:
    cells = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return [row for row in cells[1:] if not set(row[0]) <= {"-", "|"}]


def wanted(family: str) -> set[str]:
    """Every role, and every pair of roles that can be two."""
    roles = ROLES[family]
    pairs = [
        f"{a} + {b}"
        for a, b in combinations_with_replacement(roles, 2)
        if a != b or a not in ONE_OF_A_KIND
    ]
    return {*roles, *pairs}


@pytest.mark.parametrize("family", ROLES)
def test_every_role_and_every_pair_has_its_row_once(family: str) -> None:
    found = [row[0] for row in rows(section(family))]
    pairs = {" + ".join(sorted(name.split(" + "))) for name in found}
    assert pairs == {" + ".join(sorted(name.split(" + "))) for name in wanted(family)}
    assert len(found) == len(set(found))


@pytest.mark.parametrize("family", ROLES)
def test_every_row_says_all_and_why(family: str) -> None:
    for row in rows(section(family)):
        assert len(row) == COLUMNS, row[0]
        assert all(row), row[0]
        assert REASON.search(row[-1]), f"{family}, {row[0]}: no proof, test or attack is named"


def test_every_test_that_a_guarantee_names_exists() -> None:
    named = {
        (page.name, file, function)
        for page in sorted((ROOT / "docs" / "guarantees").glob("*.md"))
        for file, function in NAMED.findall(page.read_text(encoding="utf-8"))
    }
    assert len(named) > 30
    for page, file, function in sorted(named):
        assert function in functions(ROOT / file), f"{page} names {file}::{function}"


def functions(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_check_notices_a_row_without_a_reason() -> None:
    assert not REASON.search("everybody knows")
    assert REASON.search("[proof](guarantees.md#fleet-family)")
    assert "no_such_test" not in functions(Path(__file__))


def test_attacks_that_worked_once_fail_in_a_named_test() -> None:
    text = section("Attacks that worked once")
    for row in rows(text):
        assert NAMED.search(row[-1]), row[0]


def test_refusals_name_the_bound_on_values() -> None:
    from tacit.data.validate import HUGE

    assert f"{HUGE:.0e}".replace("+", "") in section("Refusals that depend on data")


def test_no_sound_guarantee_assumes_real_arithmetic() -> None:
    """Words in the source: what a guarantee assumes is written out where it is made."""
    package = ROOT / "src" / "tacit"
    found = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if "idealised real arithmetic" in " ".join(file.read_text().lower().split())
    }
    assert found <= COMPARED
    released = (ROOT / "docs" / "guide" / "local.md").read_text()
    assert "real arithmetic" not in released
