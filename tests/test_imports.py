"""The architecture, as far as imports show it: light at the door, one way inside."""

from __future__ import annotations

import importlib.util
import json
import re
import resource
import subprocess
import sys
from functools import cache

import pytest

from import_graph import groups_in_order, import_graph, module_files

HEAVY = {
    "aeon", "altair", "dp_accounting", "fastapi", "flwr", "jax", "numba", "pandas", "pydantic",
    "scipy", "sklearn", "spu", "torch", "uvicorn", "vl_convert",
}  # fmt: skip


def modules_after(statement: str) -> set[str]:
    code = f"import sys, json\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    ["import tacit", "import tacit.cli.app; tacit.cli.app.run(['--help'])"],
    ids=["import", "help"],
)
def test_the_door_is_light(statement: str) -> None:
    loaded = modules_after(statement)
    assert not {name.split(".")[0] for name in loaded} & HEAVY
    if statement == "import tacit":
        assert "numpy" not in loaded
        assert len(loaded) < 200


@pytest.mark.seconds
def test_help_is_quick() -> None:
    """The promise is 0.5 s; processor time, because other work may run beside the tests."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "tacit", "--help"], capture_output=True, check=True, timeout=60
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # One quick start shows it; other work on the cores makes processor time longer, never shorter.
    assert any(seconds() < 0.5 for _ in range(30))


def test_the_device_runtime_needs_numpy_alone() -> None:
    # cython_runtime is what compiled NumPy leaves behind, not a package.
    allowed = {
        "numpy",
        "tacit",
        "cython_runtime",
        *sys.stdlib_module_names,
        *sys.builtin_module_names,
    }
    before = modules_after("pass")
    loaded = modules_after("import tacit.local.device") - before
    foreign = {name.split(".")[0] for name in loaded} - allowed
    assert not {name for name in foreign if not name.startswith("_")}, foreign


FAMILIES = ("local", "silo", "fleet")
# Which other rooms the modules of a room may import. A room is a folder, or a file at the top of
# the package or of a family. What is listed is used: a test says when an entry is needless.
SHARED = {
    "errors": set[str](),
    "arrays": set[str](),
    "_version": set[str](),
    "system": {"errors"},
    "guarantee": {"errors"},
    "noise": {"arrays", "errors"},
    "mechanisms": {"arrays", "errors", "noise"},
    "accounting": {"arrays", "errors", "guarantee", "mechanisms"},
    "ledger": {"_version", "errors", "guarantee", "system"},
    "features": {"arrays", "errors", "system"},
    "data": {"arrays", "errors", "system"},
}
GROUND = frozenset(SHARED)
INSIDE: dict[str, dict[str, set[str]]] = {
    "local": {
        "release": set(),
        "release_parameter": set(),
        "bundle": set(),
        "encoding": set(),
        "releases": {"encoding", "release"},
        "model": {"bundle", "encoding", "release", "releases"},
        "prevalence": {"model", "release", "releases"},
        "day_budget": set(),
        "stream": {"day_budget", "model", "release"},
        "device": {"day_budget", "model", "release", "stream"},
        "exports": {"encoding", "model", "release", "releases"},
        "softshape": {"encoding"},
        "collector": {"model", "prevalence", "release"},
        "estimator": {
            "bundle", "device", "encoding", "exports", "model", "release", "release_parameter",
            "releases", "softshape",
        },
    },
    "silo": {
        "plan": set(),
        "secure": {"plan"},
        "fedst": {"plan", "secure"},
        "model": {"fedst"},
        "explain": {"fedst", "model"},
        "party": {"secure", "plan"},  # FedST by its registered name only, see PROGRAMS
        "stored_model": {"explain", "fedst", "model", "party"},
        "estimator": {"fedst", "model", "explain", "party", "secure", "plan", "stored_model"},
    },
    "fleet": {
        "plan": set(),
        "table_two": set(),  # outside of "published", which needs PyTorch
        "reports": {"plan"},
        "learning": {"reports", "plan"},
        "model": {"learning", "plan"},
        "published": {"reports"},
        "simulation": {"learning", "reports", "plan"},
        "deployment": {"model", "learning", "reports", "plan"},
        "estimator": {"simulation", "published", "model", "learning", "reports"},
        "experiment": {
            "estimator", "simulation", "published", "learning", "reports", "table_two",
        },
    },
}  # fmt: skip
ABOVE = {
    "hybrid": {"local", "fleet"},  # the one room that two families meet in
    "audit": {"local", "fleet"},
    "arena": {"hybrid", "local", "silo", "fleet"},
    "report": {"arena", "local", "silo", "fleet"},
    "disclosure": {"audit", "report", "local", "silo", "fleet"},
    "studio": {"report", "arena", "local", "silo", "fleet"},
    "cli": {"report", "arena", "audit", "disclosure", "hybrid", "local", "silo", "fleet", "studio"},
    "__main__": {"cli"},
}
MOST_MODULES = 17


def part_of(module: str) -> str:
    """`silo` for `tacit.silo.party.links.mesh`."""
    return module.split(".")[1] if "." in module else ""


def room_of(module: str) -> str:
    """`party` for `tacit.silo.party.links.mesh`; nothing for a family's own door."""
    parts = module.split(".")
    return parts[2] if len(parts) > 2 else ""


@cache
def edges() -> list[tuple[str, str]]:
    """All imports between modules, without the doors of the package, which import lazily."""
    return [
        (module, other)
        for module, others in import_graph().items()
        for other in sorted(others)
        if part_of(module) and part_of(other) and not module.startswith(f"{other}.")
    ]


@pytest.mark.parametrize("module", [name for name in module_files() if part_of(name)])
def test_imports_point_one_way(module: str) -> None:
    for importer, other in edges():
        if importer == module:
            check_direction(module, other)


def check_direction(module: str, other: str) -> None:
    mine, theirs = part_of(module), part_of(other)
    if mine in FAMILIES and theirs == mine:
        rooms = INSIDE[mine]
        if not room_of(module):  # the family's door
            assert room_of(other) == "estimator" or mine == "local"
        elif room_of(other) != room_of(module):
            assert room_of(other) in rooms[room_of(module)], f"{module} imports {other}"
    elif mine in FAMILIES:
        assert theirs in GROUND, f"{module} imports {other}"
    elif mine in ABOVE:
        assert theirs == mine or theirs in ABOVE[mine] or theirs in GROUND
    elif theirs != mine:
        assert theirs in SHARED[mine], f"{module} imports {other}"


@pytest.mark.parametrize(
    ("module", "other"),
    [
        ("tacit.silo.plan", "tacit.silo.secure.session"),
        ("tacit.silo.plan", "tacit.fleet.plan"),
        ("tacit.noise", "tacit.ledger"),
        ("tacit.report.page", "tacit.cli.common"),
    ],
)
def test_the_check_notices_a_wrong_way(module: str, other: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        check_direction(module, other)


def test_the_tables_list_every_room_and_nothing_needless() -> None:
    used = {(part_of(module), part_of(other)) for module, other in edges()}
    listed = {(part, other) for part, others in SHARED.items() for other in others}
    assert {(a, b) for a, b in used if a in SHARED and a != b} == listed
    above = {(part, other) for part, others in ABOVE.items() for other in others}
    assert {(a, b) for a, b in used if a in ABOVE and a != b and b not in GROUND} == above
    for family in FAMILIES:
        inside = {
            (room_of(module), room_of(other))
            for module, other in edges()
            if part_of(module) == part_of(other) == family and room_of(module) and room_of(other)
        }
        listed = {(room, other) for room, others in INSIDE[family].items() for other in others}
        assert {(a, b) for a, b in inside if a != b} == listed, family


def test_no_modules_import_each_other() -> None:
    assert [group for group in groups_in_order(import_graph()) if len(group) > 1] == []


def test_the_paper_as_published_uses_nothing_of_the_sound_fleet_but_the_attack() -> None:
    used = {other for module, other in edges() if module.startswith("tacit.fleet.published.")}
    fleet = {other for other in used if part_of(other) == "fleet" and room_of(other) != "published"}
    assert fleet == {"tacit.fleet.reports.linking"}


def test_a_folder_can_be_surveyed() -> None:
    for folder in {file.parent for file in module_files().values()}:
        files = [file for file in folder.glob("*.py") if file.name != "__init__.py"]
        assert len(files) <= MOST_MODULES, f"{folder.name} has {len(files)} modules"


def test_modules_named_in_strings_exist() -> None:
    """Commands start processes by module name, which no import would check."""
    named = {
        name
        for file in module_files().values()
        for name in re.findall(r'"(tacit\.[\w.]+)[":]', file.read_text(encoding="utf-8"))
    }
    assert {"tacit.silo.party", "tacit.silo.party.engine_worker"} <= named
    for name in named:
        assert importlib.util.find_spec(name) is not None, name
    assert importlib.util.find_spec("tacit.silo.party.__main__") is not None
