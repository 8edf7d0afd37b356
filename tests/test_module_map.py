"""The module map is up to date, and its order is that of the imports."""

from __future__ import annotations

from pathlib import Path

from import_graph import groups_in_order, import_graph, imports_of, module_files
from module_map import PAGE, page, summary


def test_the_map_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "docs/reference/modules.md is out of date; write it by: python tests/module_map.py"
    )


def test_every_module_has_a_sentence() -> None:
    assert not [name for name, path in module_files().items() if not summary(path)]


def test_every_module_stands_below_its_imports() -> None:
    graph = import_graph()
    groups = groups_in_order(graph)
    level = {name: number for number, group in enumerate(groups) for name in group}
    assert set(level) == set(graph)
    assert all(level[other] <= level[name] for name, others in graph.items() for other in others)


def test_a_cycle_stands_together() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str]()}
    assert groups_in_order(graph) == [["d"], ["b", "c"], ["a"]]


def test_lazy_imports_count_and_those_of_type_checkers_do_not(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text(
        "from typing import TYPE_CHECKING\n"
        "import tacit.noise\n"
        "if TYPE_CHECKING:\n    from tacit.ledger import Ledger\n"
        "def f():\n    from tacit.data import load_dataset, partition\n"
    )
    assert imports_of(file, module_files()) == {"tacit.noise", "tacit.data", "tacit.data.partition"}
