"""The table of who learns what is complete, and every proof, test and attack it names exists."""

from __future__ import annotations

import ast
import re
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guarantees" / "who-learns-what.md"
COLUMNS = ["who", "passive: learns", "active: learns", "active: can spoil"]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LINKED = re.compile(r"\]\(([\w-]+\.md)#([\w-]+)\)")
COMMAND = re.compile(r"`tacit (attack|audit) ([\w-]+)`")
CITED = re.compile(r"\(([A-Z]\d+(?:, [A-Z]\d+)*)\)$")  # how a cell ends
REASON = re.compile(r"^- ([A-Z]\d+): (.+)$", re.M)
ROLES = {
    "Local": ("device", "trainer", "server"),
    "Silo, ABY3": ("P0", "computing owner", "sharing owner"),
    "Silo, CHEETAH": ("initiator", "other owner"),
    "Fleet": ("client", "shuffler", "analyser", "server"),
    "Hybrid": ("fleet role", "server"),
}
# Of these there is one in a run, so that no pair has it twice.
ONE_OF_A_KIND = {
    *("P0", "initiator", "other owner"),
    *("shuffler", "analyser", "server", "trainer", "fleet role"),
}
# Who speaks of noise in real numbers without stating a guarantee for what is computed.
COMPARED = {
    "accounting/gaussian.py",  # a curve
    "report/arena/tables.py",  # finds records of earlier versions, and calls them nominal
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


def uncited(row: list[str]) -> list[str]:
    """The cells of a row that end without a reason."""
    return [cell for cell in row[1:] if not CITED.search(cell)]


def cited(row: list[str]) -> set[str]:
    found = (CITED.search(cell) for cell in row[1:])
    return {label for cell in found if cell for label in cell.group(1).split(", ")}


def missing(reason: str) -> list[str]:
    """What a reason names and nobody can find; a reason that names nothing is missing itself."""
    tests, links, commands = (kind.findall(reason) for kind in (NAMED, LINKED, COMMAND))
    if not (tests or links or commands):
        return [reason]
    return [
        *(f"{file}::{name}" for file, name in tests if name not in functions(ROOT / file)),
        *(f"{page}#{part}" for page, part in links if part not in anchors(PAGE.parent / page)),
        *(f"tacit {kind} {name}" for kind, name in commands if name not in commands_of(kind)),
    ]


def anchors(page: Path) -> set[str]:
    if not page.exists():
        return set()
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def commands_of(kind: str) -> set[str]:
    from tacit.audit.registry import mechanism_names
    from tacit.cli.attack import app

    if kind == "audit":
        return set(mechanism_names())
    return {str(command.name) for command in app.registered_commands}


@pytest.mark.parametrize("family", ROLES)
def test_every_cell_says_something_and_why(family: str) -> None:
    text = section(family)
    reasons = dict(REASON.findall(text))
    assert len(reasons) == len(REASON.findall(text)), "a label stands for two reasons"
    assert f"| {' | '.join(COLUMNS)} |" in text
    used = set()
    for row in rows(text):
        assert len(row) == len(COLUMNS), row[0]
        assert not uncited(row), f"{family}, {row[0]}: no reason is given"
        assert cited(row) <= set(reasons), f"{family}, {row[0]}"
        used |= cited(row)
    assert used == set(reasons), "a reason that no cell gives"


@pytest.mark.parametrize("family", ROLES)
def test_what_every_reason_names_exists(family: str) -> None:
    for label, reason in REASON.findall(section(family)):
        assert not missing(reason), label


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
    if not file.exists():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_the_checks_notice_a_cell_without_a_reason_and_a_reason_without_evidence() -> None:
    assert uncited(["P0", "all (S1, S2)", "all", "the result (of all)"]) == [
        "all",
        "the result (of all)",
    ]
    here = f"tests/{Path(__file__).name}"
    assert missing("everybody knows")
    assert missing(f"`{here}::no_such_test`")
    assert missing("`tests/no_such_file.py::test_x`")
    assert missing("[proof](guarantees.md#no-such-part)")
    assert missing("`tacit attack nothing`")
    assert not missing(f"`{here}::test_every_cell_says_something_and_why`")
    assert not missing("[proof](guarantees.md#fleet-family)")
    assert not missing("`tacit attack pidp`")


def test_attacks_that_worked_once_name_the_commit_and_a_test_in_which_they_fail() -> None:
    for row in rows(section("Attacks that worked once")):
        assert re.search(r"`[0-9a-f]{7}`|before the repair", row[1]), row[0]
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
