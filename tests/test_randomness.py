"""Nobody touches a global or seedable generator, or pickle, in the package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "tacit"
ALLOWED_NUMPY_RANDOM = {"Generator", "default_rng", "SeedSequence", "RandomState"}
FORBIDDEN_IMPORTS = {"random", "pickle", "cloudpickle", "dill", "marshal", "shelve"}


def violations(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN_IMPORTS]
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] in FORBIDDEN_IMPORTS:
                found.append(node.module)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            owner = node.value
            is_numpy = isinstance(owner.value, ast.Name) and owner.value.id in {"np", "numpy"}
            if is_numpy and owner.attr == "random" and node.attr not in ALLOWED_NUMPY_RANDOM:
                found.append(f"np.random.{node.attr}")
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            safe = isinstance(node.value, ast.Constant) and node.value.value is False
            found += [] if safe else ["allow_pickle"]
    return found


@pytest.mark.parametrize("file", sorted(SRC.rglob("*.py")), ids=lambda f: str(f.relative_to(SRC)))
def test_only_explicit_generators_and_no_pickle(file: Path) -> None:
    assert violations(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "from random import shuffle",
        "import pickle",
        "np.random.seed(1)",
        "x = np.random.normal(3)",
        "np.load(p, allow_pickle=True)",
    ],
)
def test_the_check_notices(source: str) -> None:
    assert violations(source)
