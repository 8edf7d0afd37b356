"""The architecture, as far as imports show it: light at the door, one way inside."""

from __future__ import annotations

import ast
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "tacit"
HEAVY = {
    "aeon", "altair", "dp_accounting", "fastapi", "flwr", "jax", "numba", "pandas", "pydantic",
    "scipy", "sklearn", "spu", "torch", "uvicorn", "vl_convert",
}  # fmt: skip
FAMILIES = ("local", "silo", "fleet")
# Lower layers come first; a module may import its own layer and those before it.
LAYERS = {"audit": 2, "report": 2, "arena": 2, "cli": 3, "studio": 3}


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


def test_help_is_quick() -> None:
    """The promise is 0.5 s; processor time, because other work may run beside the tests."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "tacit", "--help"], capture_output=True, check=True, timeout=60
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.5


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


def imported_modules(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("tacit.")}


def layer(part: str) -> int:
    return 1 if part in FAMILIES else LAYERS.get(part, 0)


def part_of(module: str) -> str:
    return module.split(".")[1]


FILES = sorted(SRC.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SRC)))
def test_imports_point_one_way(file: Path) -> None:
    relative = file.relative_to(SRC)
    if relative.name in {"__init__.py", "__main__.py"} and len(relative.parts) == 1:
        return
    mine = relative.parts[0].removesuffix(".py")
    for name in imported_modules(file):
        other = part_of(name)
        if other == mine or not ((SRC / other).exists() or (SRC / f"{other}.py").exists()):
            continue
        assert layer(other) <= layer(mine), f"{relative} imports {name}"
        if mine in FAMILIES:
            assert other not in FAMILIES, f"{relative} imports another family: {name}"
