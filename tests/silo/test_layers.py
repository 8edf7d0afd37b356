"""The layers inside the silo family, imports inside functions and for type checks included.

Estimator and stored model stand above a party, which stands above FedST, which stands above the
secure session, which stands above the plan.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tacit.silo
from tacit.silo.party.programs import PROGRAMS

SILO = Path(tacit.silo.__file__).parent
FAMILY = "tacit.silo"
# Which other rooms the modules of a room may import; a file at the top is a room of its own.
ALLOWED = {
    "plan": set[str](),
    "secure": {"plan"},
    "fedst": {"secure", "plan"},
    "model": {"fedst"},
    "explain": {"fedst", "model"},
    "party": {"secure", "plan"},  # FedST by its registered name only, see PROGRAMS
    "stored_model": {"fedst", "model", "party"},
    "estimator": {"fedst", "model", "explain", "party", "secure", "plan"},
    "__init__": {"estimator"},
}
Graph = dict[str, set[str]]


def module_name(file: Path) -> str:
    parts = file.relative_to(SILO).with_suffix("").parts
    return ".".join((FAMILY, *parts))


def room_of(module: str) -> str:
    return module.removeprefix(f"{FAMILY}.").split(".")[0]


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed here"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def graph_of(sources: dict[str, str]) -> Graph:
    graph: Graph = {}
    for module, source in sources.items():
        names = set(imported(source))
        names |= {f"{name}.__init__" for name in names}  # importing a package runs this
        graph[module] = {name for name in names if name in sources and name != module}
    return graph


def cycle_in(graph: Graph) -> list[str] | None:
    """One cycle of imports, or None."""
    finished: set[str] = set()

    def search(module: str, path: list[str]) -> list[str] | None:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in finished:
            return None
        for other in sorted(graph[module]):
            found = search(other, [*path, module])
            if found:
                return found
        finished.add(module)
        return None

    return next((found for module in sorted(graph) if (found := search(module, []))), None)


SOURCES = {module_name(file): file.read_text(encoding="utf-8") for file in SILO.rglob("*.py")}
GRAPH = graph_of(SOURCES)


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_imports_stay_within_the_allowed_rooms(module: str) -> None:
    mine = room_of(module)
    rooms = {room_of(other) for other in GRAPH[module]} - {mine}
    assert rooms <= ALLOWED[mine], f"{module} imports {rooms - ALLOWED[mine]}"


def test_no_module_imports_itself_through_others() -> None:
    assert cycle_in(GRAPH) is None


def test_no_allowed_room_is_needless_and_the_rooms_form_no_cycle() -> None:
    used = {
        (room_of(module), room_of(other))
        for module, others in GRAPH.items()
        for other in others
        if room_of(other) != room_of(module)
    }
    assert used == {(room, other) for room, others in ALLOWED.items() for other in others}
    assert cycle_in(ALLOWED) is None


def test_registered_programs_lie_below_the_party() -> None:
    for path in PROGRAMS.values():
        assert room_of(path.partition(":")[0]) == "fedst"


def test_modules_named_in_strings_exist() -> None:
    """Commands start processes by module name, which no import would check."""
    named = {
        name
        for source in SOURCES.values()
        for name in re.findall(r'"(tacit\.silo[\w.]*)[":]', source)
    }
    assert {"tacit.silo.party", "tacit.silo.party.engine_worker"} <= named
    for name in named:
        assert importlib.util.find_spec(name) is not None, name
    assert importlib.util.find_spec("tacit.silo.party.__main__") is not None


def test_the_search_notices_a_cycle_through_an_import_inside_a_function() -> None:
    sources = {
        "a": "from b import x",
        "b": "def f():\n    import c",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a",
        "d": "import a",
    }
    assert cycle_in(graph_of(sources)) == ["a", "b", "c", "a"]
    assert cycle_in(graph_of(sources | {"c": "import json"})) is None
