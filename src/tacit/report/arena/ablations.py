"""DP-SoftShape's Table 3 beside ours: what its parts contribute, in both presets."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.arena.paper import TABLE3
from tacit.arena.softshape.suites import ABLATIONS, HARD_SETS, PRESETS
from tacit.report.arena.tables import (
    Record,
    Section,
    budget_name,
    mean_over_sets,
    spread_over_seeds,
)
from tacit.report.comparison_charts import dot_chart
from tacit.report.page import Table, Text

Cell = tuple[str, float, str]  # preset, budget, variant
_NOTE = (
    "The paper averages over 'complex tasks' that it does not name; ours are its hard group and "
    "all sets that have been run. 'uniform noise' is the ablation its abstract speaks of and no "
    "table has. Rows of different numbers of sets must not be compared."
)


def table3_blocks(records: Sequence[Record]) -> Section:
    """The ablations, with the row that the paper leaves out: noise that ignores attention."""
    cells = _cells(records)
    shown: dict[str, dict[str, float]] = {}
    for (preset, epsilon, name), part in cells.items():
        row = shown.setdefault(f"{name}, {epsilon:g}", {})
        row[f"ours, preset {preset}, {_n_sets(part)} sets"] = mean_over_sets(part)
        if name in TABLE3.get(epsilon, {}):
            row["paper"] = TABLE3[epsilon][name]
    columns = (
        "preset", "budget", "variant", "paper", "ours, hard sets", "ours, all sets", "sets",
        "our spread",
    )  # fmt: skip
    blocks = [
        Text(_NOTE, "DP-SoftShape, Table 3: ablations"),
        Table(columns, [_row(cell, part) for cell, part in cells.items()]),
        dot_chart("Table 3: ablations, the paper's numbers and ours", shown, x="mean accuracy"),
    ]
    return [], blocks


def _cells(records: Sequence[Record]) -> dict[Cell, list[Record]]:
    names = {
        tuple(sorted({**options, **switch}.items())): (preset, name)
        for preset, options in PRESETS.items()
        for name, switch in ABLATIONS
    }
    cells: dict[Cell, list[Record]] = {}
    for record in records:
        task = record["task"]
        preset, name = names.get(tuple(sorted(task["options"].items())), ("other", "other"))
        cells.setdefault((preset, task["epsilon"], name), []).append(record)
    return dict(sorted(cells.items()))


def _row(cell: Cell, part: Sequence[Record]) -> tuple[object, ...]:
    preset, epsilon, name = cell
    hard = [r for r in part if r["task"]["data"] in HARD_SETS]
    return (
        preset,
        budget_name(epsilon, part),
        name,
        TABLE3.get(epsilon, {}).get(name, "-"),
        f"{mean_over_sets(hard):.3f}" if hard else "-",
        f"{mean_over_sets(part):.3f}",
        _n_sets(part),
        spread_over_seeds(part),
    )


def _n_sets(records: Sequence[Record]) -> int:
    return len({record["task"]["data"] for record in records})
