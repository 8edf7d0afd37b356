"""Which module of the package imports which, read from the source: lazy imports included.

Only imports for type checkers do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

SRC = Path(__file__).parent.parent / "src"
LAYERS = {
    "local": 1,
    "silo": 1,
    "fleet": 1,
    "audit": 2,
    "report": 2,
    "arena": 2,
    "hybrid": 2,
    "disclosure": 3,
    "studio": 3,
    "cli": 4,
    "__main__": 5,
}


@cache
def module_files() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((SRC / "tacit").rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, modules: Mapping[str, Path]) -> set[str]:
    """The package's modules that a file imports, inside functions as well."""
    found: set[str] = set()
    for node in _running_code(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            # A name of a package is either a module in it or something that it defines.
            found |= inner & modules.keys() or {node.module}
            if inner - modules.keys():
                found.add(node.module)
    return found & modules.keys()


def _running_code(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _running_code(other)
        else:
            yield from _running_code(child)


def layer(name: str) -> tuple[int, str]:
    """Shared ground before families, commands last; by name within a layer."""
    part = name.split(".")[1] if "." in name else ""
    return LAYERS.get(part, 0), name


def groups_in_order(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components, imported ones first (Tarjan 1972); singletons if no cycles."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name], key=layer):
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            place = stack.index(name)
            groups.append(sorted(stack[place:]))
            del stack[place:]

    for name in sorted(graph, key=layer):
        if name not in number:
            visit(name)
    return groups


@cache
def import_graph() -> dict[str, set[str]]:
    """Which module imports which; a package that imports nothing stands above its modules."""
    modules = module_files()
    graph = {name: imports_of(path, modules) - {name} for name, path in modules.items()}
    for name, others in graph.items():
        parent = name.rpartition(".")[0]
        if parent in graph and not graph[parent]:
            others.add(parent)
    return graph
