"""The layers inside the fleet: who may import whom, lazy imports included, and no cycle."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tacit.fleet

ROOT = Path(tacit.fleet.__file__).parent
PACKAGE = "tacit.fleet"
# From the bottom to the top; what a part may import beside itself.
ALLOWED: dict[str, set[str]] = {
    "plan": set(),
    "reports": {"plan"},
    "learning": {"reports", "plan"},
    "model": {"learning", "plan"},
    "published": {"reports"},
    "simulation": {"learning", "reports", "plan"},
    "deployment": {"model", "learning", "reports", "plan"},
    "estimator": {"simulation", "published", "model", "learning", "reports", "plan"},
    "experiment": {"estimator", "simulation", "published", "learning", "reports", "plan"},
}
MOST_MODULES = 17


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))


MODULES = {module_of(file): file for file in sorted(ROOT.rglob("*.py"))}


def imported(file: Path) -> set[str]:
    """The fleet's modules that this file names in an import, wherever it stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & set(MODULES)
            found |= inner or {node.module}
    return found & set(MODULES)


def part_of(module: str) -> str:
    return module.removeprefix(PACKAGE).strip(".").split(".")[0]


@pytest.mark.parametrize("module", [name for name in MODULES if name != PACKAGE])
def test_imports_go_down_the_layers(module: str) -> None:
    mine = part_of(module)
    for other in imported(MODULES[module]):
        assert other != PACKAGE, f"{module} imports the family's front door"
        if part_of(other) != mine:
            assert part_of(other) in ALLOWED[mine], f"{module} imports {other}"


def test_the_door_opens_on_the_estimator_alone() -> None:
    assert imported(MODULES[PACKAGE]) == {f"{PACKAGE}.estimator"}


def test_the_paper_as_published_uses_nothing_of_the_sound_mode_but_the_attack() -> None:
    published = {m: f for m, f in MODULES.items() if part_of(m) == "published"}
    used = {other for file in published.values() for other in imported(file)} - set(published)
    assert used == {f"{PACKAGE}.reports.linking"}


def test_there_is_no_cycle() -> None:
    TopologicalSorter(ALLOWED).prepare()
    TopologicalSorter({name: imported(file) for name, file in MODULES.items()}).prepare()


@pytest.mark.parametrize("folder", sorted({file.parent for file in MODULES.values()}))
def test_a_folder_can_be_taken_in_at_a_glance(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_MODULES
