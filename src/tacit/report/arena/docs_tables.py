"""The tables of docs/results.md on the arena's page: the same functions, the same records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.arena.results.page import MAKERS
from tacit.arena.results.records import Results
from tacit.report.page import Table, Text

OF_SUITE: Mapping[str, Sequence[str]] = {
    "softshape-table2": ("rivals", "softshape", "diatom"),
    "softshape-table3": ("ablations",),
    "softshape-sound": ("sound-labels",),
    "fedst": ("silo", "silo-features"),
    "fedst-secure": ("silo-secure",),
    "fedst-contract": ("silo-contracts",),
    "fedst-scopes": ("silo-tighter",),
    "fleet-published": ("fleet-nominal",),
    "fleet-sound": ("fleet-sound",),
    "fleet-rivals": ("fleet-rivals",),
}
ON_TOP = ("answer", "claims", "ours", "failed")


def docs_tables(suite: str, results: Results) -> list[Table]:
    """The tables of docs/results.md that show this suite."""
    return [table_of(MAKERS[name](results)) for name in OF_SUITE.get(suite, ())]


def verdicts(results: Results) -> list[Any]:
    """The papers' claims with a verdict on each, what is ours, and what failed for which reason."""
    *tables, failed = (table_of(MAKERS[name](results)) for name in ON_TOP)
    words = "As in docs/results.md, which states the rules."
    return [Text(words, "Verdicts"), *tables, Text("", "Failed tasks"), failed]


def table_of(markdown: str) -> Table:
    """A Markdown table as one of the page."""
    columns, _, *rows = [
        [cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")]
        for line in markdown.splitlines()
    ]
    return Table(columns, rows)
