"""Write docs/reference/modules.md: every module in the order of imports, lower ones first.

    python tests/module_map.py

A module stands below everything that it imports, inside functions as well; only imports for type
checkers do not count. Modules that import each other stand together, by name.
"""

from __future__ import annotations

import ast
from pathlib import Path

from import_graph import groups_in_order, import_graph, module_files

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "modules.md"
HEAD = """# Module map

Every module of the package, each below the ones that it imports: read from the top, and nothing
comes up that was not there before. Written by `python tests/module_map.py`; a test fails when it is
out of date. What the folders are for is in [architecture](../architecture.md).

| module | what it is |
|---|---|
"""


def summary(path: Path) -> str:
    """The first sentence of a module's docstring, on one line."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split())
    end = text.find(". ")
    return (text if end < 0 else text[: end + 1]).replace("|", "\\|")


def page() -> str:
    """The whole page."""
    modules = module_files()
    names = [name for group in groups_in_order(import_graph()) for name in group]
    return HEAD + "".join(f"| `{name}` | {summary(modules[name])} |\n" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
