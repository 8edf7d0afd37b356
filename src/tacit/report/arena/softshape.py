"""DP-SoftShape's Tables 2 and 4 and Figures 2, 6, 7 and 8 beside ours, in both presets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arena.paper import (
    DIATOM_AT_HALF,
    TABLE2_NOTE,
    TABLE4,
    TRAIN_SECONDS,
)
from tacit.arena.results.softshape import RivalRow, rival_rows
from tacit.arena.results.tables import leak
from tacit.arena.softshape.suites import HARD_SETS, SOFTSHAPE_SETS
from tacit.arena.statistics import Grid, grid, wilcoxon_holm
from tacit.errors import TacitError
from tacit.report.arena.tables import (
    Record,
    Section,
    boxes,
    budget_name,
    by_budget,
    lines_by_method,
    rank_figure,
    ranking,
    seconds_figure,
)
from tacit.report.charts import alt, line_chart, scatter_chart
from tacit.report.comparison_charts import dot_chart
from tacit.report.page import Table, Text

NOISY = (0.1, 0.5, 1.0, 5.0)
OURS = "softshape-published"
PAPER, TUNED = (f"DP-SoftShape, preset {preset}" for preset in ("paper", "tuned"))


def table2_blocks(records: Sequence[Record]) -> Section:
    """Table 2 with the paper's columns, its figures, and our per-budget tests."""
    named, rows = [plain_named(record) for record in records], rival_rows(records)
    blocks: list[Any] = [
        Text(TABLE2_NOTE, "DP-SoftShape, Table 2: accuracy under noise on every step"),
        *_closeness(rows),
    ]
    for epsilon in by_budget(named):
        part = whole(named, (epsilon,))
        table = grid(part)
        if epsilon == 0.5:
            blocks.append(boxes(table, "Fig. 2: accuracy per data set at nominal epsilon 0.5"))
        if epsilon in (0.1, 1.0) and len(table.methods) > 2:
            blocks.append(rank_figure(table, f"Fig. 7: average ranks at nominal epsilon {epsilon}"))
        blocks += [Text(f"{budget_name(epsilon, part)}, {len(table.data)} sets:"), ranking(table)]
    noisy = [record for record in named if record["task"]["epsilon"] in NOISY]
    blocks += _easy_and_hard(whole(noisy, NOISY))
    blocks += _cost_of_privacy(named)
    blocks += [block for preset in (PAPER, TUNED) for block in _table4(noisy, preset)]
    blocks += [_diatom(named), _train_seconds(named), seconds_figure(named)]
    return _sentences(rows), blocks


def plain_named(record: Record) -> Record:
    """The record with its method's options left out of the name, but for DP-SoftShape's preset."""
    task = record["task"]
    name = task["method"]
    if name == OURS:
        name = PAPER if task["options"].get("preset") == "paper" else TUNED
    return {**record, "task": {**task, "method": name, "options": {}}}


def whole(records: Sequence[Record], budgets: Sequence[float | None]) -> list[Record]:
    """The records at these budgets of the methods that have as many cells as any of them."""
    cells: dict[str, set[tuple[str, float | None]]] = {}
    part = [record for record in records if record["task"]["epsilon"] in budgets]
    for record in part:
        task = record["task"]
        cells.setdefault(task["method"], set()).add((task["data"], task["epsilon"]))
    most = max((len(found) for found in cells.values()), default=0)
    return [record for record in part if len(cells[record["task"]["method"]]) == most]


def _closeness(rows: Sequence[RivalRow]) -> list[alt.LayerChart]:
    """The paper's means beside ours, where ours are over all 19 sets."""
    shown: dict[str, dict[str, float]] = {}
    for row in rows:
        for when, (theirs, ours) in zip(("clean", "noisy"), row.comparable(), strict=True):
            if theirs is not None and ours is not None:
                shown[f"{row.name}, {when}"] = {"paper": theirs, "ours": ours}
    title = "Table 2: the paper's means and ours"
    return [dot_chart(title, shown, x="mean accuracy")] if shown else []


def _easy_and_hard(records: Sequence[Record]) -> list[Any]:
    blocks: list[Any] = []
    easy = set(SOFTSHAPE_SETS) - set(HARD_SETS)
    for name, sets in (("easy", easy), ("hard", set(HARD_SETS))):
        lines = lines_by_method([r for r in records if r["task"]["data"] in sets])
        if lines:
            title = f"Fig. 6: accuracy against nominal epsilon, {name} sets"
            blocks.append(
                line_chart(title, lines, x="nominal epsilon", y="mean accuracy", log_x=True)
            )
    return blocks


def _cost_of_privacy(records: Sequence[Record]) -> list[Any]:
    budgets = by_budget(whole(records, (None, 0.5)))
    if None not in budgets or 0.5 not in budgets:
        return []
    clean, noisy = grid(budgets[None]), grid(budgets[0.5])
    clouds = {
        method: [
            (clean.accuracy[clean.data.index(name), i], noisy.accuracy[row, i], name)
            for row, name in enumerate(noisy.data)
            if name in clean.data
        ]
        for i, method in enumerate(noisy.methods)
        if method in clean.methods and clean.methods.index(method) == i
    }
    title = "Fig. 8: cost of privacy at nominal epsilon 0.5, one dot per data set"
    return [
        scatter_chart(
            title, clouds, x="accuracy without noise", y="accuracy with noise", diagonal=True
        )
    ]


def _table4(records: Sequence[Record], preset: str) -> list[Any]:
    """Our Wilcoxon tests, corrected by Holm, beside the paper's raw ones; without the other preset.

    Every test is over the data sets that all methods of its budget have.
    """
    other = TUNED if preset == PAPER else PAPER
    records = [record for record in records if record["task"]["method"] != other]
    rows: dict[str, list[Any]] = {}
    for place, epsilon in enumerate(NOISY):
        table = _grid_at(records, epsilon)
        if table is None or preset not in table.methods:
            return []
        for method, p in wilcoxon_holm(table, reference=preset).items():
            theirs = f"{TABLE4[method][place]:.2g}" if method in TABLE4 else "-"
            mine = table.accuracy[:, table.methods.index(preset)].mean()
            other = table.accuracy[:, table.methods.index(method)].mean()
            rows.setdefault(method, []).append(f"{theirs} / {p:.2g} ({mine - other:+.3f})")
    budgets = by_budget(records)
    heads = (budget_name(epsilon, budgets[epsilon]) for epsilon in NOISY)
    columns = (f"{preset}, against", *heads)
    note = (
        "The paper's p value / ours with Holm's correction (our mean difference). A small p with "
        "a negative difference says that the published method is the worse one."
    )
    return [
        Text(note, f"Table 4, {preset}"),
        Table(columns, [(name, *cells) for name, cells in rows.items()]),
    ]


def _grid_at(records: Sequence[Record], epsilon: float) -> Grid | None:
    try:
        return grid(whole(records, (epsilon,)))
    except TacitError:
        return None


def _diatom(records: Sequence[Record]) -> Table:
    """The rivals on the set whose accuracies the paper prints; ours are in the table above."""
    rows = []
    for method, theirs in DIATOM_AT_HALF.items():
        mine = [
            r["accuracy"]
            for r in records
            if (r["task"]["method"], r["task"]["data"], r["task"]["epsilon"])
            == (method, "DiatomSizeReduction", 0.5)
        ]
        if method != OURS:
            rows.append((f"{method}, at 0.5", theirs, f"{np.mean(mine):.3f}" if mine else "-"))
    return Table(("DiatomSizeReduction, the one set it prints", "paper", "ours"), rows)


def _train_seconds(records: Sequence[Record]) -> Table:
    rows = []
    ours = dict.fromkeys((PAPER, TUNED), TRAIN_SECONDS[OURS])
    rivals = {name: value for name, value in TRAIN_SECONDS.items() if name != OURS}
    for method, theirs in (ours | rivals).items():
        mine = [
            r["details"]["train_seconds"]
            for r in records
            if r["task"]["method"] == method and "train_seconds" in r["details"]
        ]
        rows.append((method, theirs, f"{np.mean(mine):.1f}" if mine else "-"))
    return Table(("mean seconds of training", "paper", "ours, one thread of a busy machine"), rows)


def _sentences(rows: Sequence[RivalRow]) -> list[str]:
    parts, said = [], []
    for row in rows:
        (clean_paper, clean), (paper, noisy) = row.comparable()
        if clean is not None and noisy is not None and row.method in ("rocket", "tsf", "1-nn"):
            parts.append(
                f"{row.name} {clean:.3f} clean and {noisy:.3f} under noise (paper {clean_paper} "
                f"and {paper})"
            )
        if noisy is not None and row.method == OURS:
            said.append(
                f"{row.name}, reaches {noisy:.3f} over the four nominal budgets (paper {paper}), "
                f"and {leak(row.noisy)} of its releases can be joined back to their series: that "
                "accuracy comes without a guarantee."
            )
    return [f"The paper's setting, ours on 19 sets: {'; '.join(parts)}."] * bool(parts) + said
