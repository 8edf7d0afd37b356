"""Which module of the package imports which, read from the source: lazy imports included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parent.parent / "src" / "tacit"


def name_of(file: Path) -> str:
    """`tacit.silo.plan` for the file src/tacit/silo/plan.py."""
    parts = file.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    return {name_of(file): file for file in sorted(SRC.rglob("*.py"))}


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _running(node)


@cache
def imports_of(module: str) -> frozenset[str]:
    """Modules of the package that `module` imports, now or when one of its functions runs."""
    found: set[str] = set()
    for node in _running(ast.parse(modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules() else node.module)
    return frozenset(found & set(modules()) - {module})


def cycles() -> list[list[str]]:
    """Groups of modules that import each other, directly or around a corner."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(module: str) -> None:
        if module in seen:
            return
        seen.add(module)
        for other in sorted(imports_of(module)):
            visit(other)
        order.append(module)

    for module in modules():
        visit(module)
    importers: dict[str, set[str]] = {module: set() for module in modules()}
    for module in modules():
        for other in imports_of(module):
            importers[other].add(module)
    groups: list[list[str]] = []
    placed: set[str] = set()
    for start in reversed(order):
        group, waiting = [], [start]
        while waiting:
            module = waiting.pop()
            if module not in placed:
                placed.add(module)
                group.append(module)
                waiting += importers[module]
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def in_order() -> list[str]:
    """All modules, each after those that it imports; alphabetical where that leaves a choice."""
    done: list[str] = []
    waiting = set(modules())
    while waiting:
        free = sorted(m for m in waiting if not imports_of(m) & waiting)
        if not free:
            raise AssertionError(f"modules import each other: {sorted(waiting)}")
        done += free
        waiting -= set(free)
    return done
