"""DP-SoftShape's tables and figures beside ours: Tables 2 to 4, Figures 2, 6, 7 and 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arena.paper import DIATOM_AT_HALF, TABLE2, TABLE2_NOTE, TABLE3, TABLE4, TRAIN_SECONDS
from tacit.arena.statistics import Grid, grid, wilcoxon_holm
from tacit.arena.suites import ABLATIONS, HARD_SETS, SOFTSHAPE_SETS
from tacit.errors import TacitError
from tacit.report.arena_tables import (
    Record,
    Section,
    boxes,
    budget_name,
    by_budget,
    lines_by_method,
    mean_over_sets,
    rank_figure,
    ranking,
    seconds_figure,
    short_guarantee,
    spread_over_seeds,
)
from tacit.report.charts import alt, line_chart, scatter_chart
from tacit.report.comparison_charts import dot_chart
from tacit.report.page import Table, Text

NOISY = (0.1, 0.5, 1.0, 5.0)
OURS = "softshape-published"


def table2_blocks(records: Sequence[Record]) -> Section:
    """Table 2 with the paper's columns, its figures, and our per-budget tests."""
    named = [plain_named(record) for record in records]
    methods = _complete(named)
    blocks: list[Any] = [
        Text(TABLE2_NOTE, "DP-SoftShape, Table 2: accuracy under noise on every step"),
        _side_by_side(named),
        _closeness(named),
    ]
    whole = [record for record in named if record["task"]["method"] in methods]
    for epsilon, part in by_budget(whole).items():
        table = grid(part)
        if epsilon == 0.5:
            blocks.append(boxes(table, "Fig. 2: accuracy per data set at nominal epsilon 0.5"))
        if epsilon in (0.1, 1.0) and len(methods) > 2:
            blocks.append(rank_figure(table, f"Fig. 7: average ranks at nominal epsilon {epsilon}"))
        blocks += [Text(f"{budget_name(epsilon, part)}, {len(table.data)} sets:"), ranking(table)]
    blocks += _easy_and_hard(whole)
    blocks += _cost_of_privacy(whole)
    blocks += _table4(whole)
    blocks += [_diatom(named), _train_seconds(named), seconds_figure(named)]
    return _sentences(named), blocks


def plain_named(record: Record) -> Record:
    """The record with its method's options left out of the name: here each method has one set."""
    return {**record, "task": {**record["task"], "options": {}}}


def _complete(records: Sequence[Record]) -> list[str]:
    """Methods that have every data set of the most complete one at every budget."""
    cells: dict[str, set[tuple[str, float | None]]] = {}
    for record in records:
        task = record["task"]
        cells.setdefault(task["method"], set()).add((task["data"], task["epsilon"]))
    most = max(len(found) for found in cells.values())
    return sorted(method for method, found in cells.items() if len(found) == most)


def clean_and_noisy(
    records: Sequence[Record], method: str
) -> tuple[list[Record], list[Record], int]:
    """The records of a method without noise and at the four budgets, and how many sets it has."""
    mine = [r for r in records if r["task"]["method"] == method]
    clean = [r for r in mine if r["task"]["epsilon"] is None]
    noisy = [r for r in mine if r["task"]["epsilon"] in NOISY]
    return clean, noisy, len({r["task"]["data"] for r in mine})


def _side_by_side(records: Sequence[Record]) -> Table:
    rows = []
    for method in sorted({r["task"]["method"] for r in records}, key=_paper_order):
        clean, noisy, n_sets = clean_and_noisy(records, method)
        theirs = TABLE2.get(method)
        rows.append(
            (
                method,
                theirs.clean if theirs else "-",
                _mean(clean),
                theirs.noisy if theirs and len(_budgets(noisy)) == 4 else "-",
                _mean(noisy) if len(_budgets(noisy)) == 4 else "-",
                spread_over_seeds(noisy or clean),
                n_sets,
                short_guarantee((noisy or clean)[0]),
            )
        )
    columns = (
        "method", "paper, clean", "ours, clean", "paper, mean of 4 budgets", "ours", "our spread",
        "our sets", "our true guarantee",
    )  # fmt: skip
    return Table(columns, rows)


def _budgets(records: Sequence[Record]) -> set[float]:
    return {record["task"]["epsilon"] for record in records}


def _paper_order(method: str) -> tuple[int, str]:
    names = list(TABLE2)
    return (names.index(method) if method in names else len(names), method)


def _mean(records: Sequence[Record]) -> str:
    return f"{mean_over_sets(records):.3f}" if records else "-"


def _closeness(records: Sequence[Record]) -> alt.LayerChart:
    rows: dict[str, dict[str, float]] = {}
    for method, theirs in TABLE2.items():
        clean, noisy, _ = clean_and_noisy(records, method)
        if clean:
            pair = {"paper": theirs.clean, "ours": mean_over_sets(clean)}
            rows[f"{method}, clean"] = pair
        if len(_budgets(noisy)) == 4:
            rows[f"{method}, noisy"] = {"paper": theirs.noisy, "ours": mean_over_sets(noisy)}
    return dot_chart("Table 2: the paper's means and ours", rows, x="mean accuracy")


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
    budgets = by_budget(records)
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


def _table4(records: Sequence[Record]) -> list[Any]:
    """Our Wilcoxon tests, corrected by Holm, beside the paper's raw ones."""
    rows: dict[str, list[Any]] = {}
    for place, epsilon in enumerate(NOISY):
        table = _grid_at(records, epsilon)
        if table is None or OURS not in table.methods:
            return []
        for method, p in wilcoxon_holm(table, reference=OURS).items():
            theirs = f"{TABLE4[method][place]:.2g}" if method in TABLE4 else "-"
            mine = table.accuracy[:, table.methods.index(OURS)].mean()
            other = table.accuracy[:, table.methods.index(method)].mean()
            rows.setdefault(method, []).append(f"{theirs} / {p:.2g} ({mine - other:+.3f})")
    budgets = by_budget(records)
    heads = (budget_name(epsilon, budgets[epsilon]) for epsilon in NOISY)
    columns = ("DP-SoftShape as published against", *heads)
    note = (
        "The paper's p value / ours with Holm's correction (our mean difference). A small p with "
        "a negative difference says that the published method is the worse one."
    )
    return [Text(note, "Table 4"), Table(columns, [(name, *cells) for name, cells in rows.items()])]


def _grid_at(records: Sequence[Record], epsilon: float) -> Grid | None:
    try:
        return grid([r for r in records if r["task"]["epsilon"] == epsilon])
    except TacitError:
        return None


def _diatom(records: Sequence[Record]) -> Table:
    rows = []
    for method, theirs in DIATOM_AT_HALF.items():
        mine = [
            r["accuracy"]
            for r in records
            if (r["task"]["method"], r["task"]["data"], r["task"]["epsilon"])
            == (method, "DiatomSizeReduction", 0.5)
        ]
        rows.append((method, theirs, f"{np.mean(mine):.3f}" if mine else "-"))
    return Table(("DiatomSizeReduction at 0.5, the one set it prints", "paper", "ours"), rows)


def _train_seconds(records: Sequence[Record]) -> Table:
    rows = []
    for method, theirs in TRAIN_SECONDS.items():
        mine = [r["details"]["train_seconds"] for r in records if r["task"]["method"] == method]
        rows.append((method, theirs, f"{np.mean(mine):.1f}" if mine else "-"))
    return Table(("mean seconds of training", "paper", "ours, one thread of a busy machine"), rows)


def _sentences(records: Sequence[Record]) -> list[str]:
    parts = []
    for method in ("rocket", "tsf", "1-nn"):
        clean, noisy, n_sets = clean_and_noisy(records, method)
        if clean and len(_budgets(noisy)) == 4:
            theirs = TABLE2[method]
            parts.append(
                f"{method} {mean_over_sets(clean):.3f} clean and {mean_over_sets(noisy):.3f} under "
                f"noise (paper {theirs.clean} and {theirs.noisy}; {n_sets} sets)"
            )
    said = [f"The paper's setting is reproduced: {'; '.join(parts)}."] if parts else []
    clean, noisy, n_sets = clean_and_noisy(records, OURS)
    if len(_budgets(noisy)) == 4:
        leaks = [r["leakage"]["reidentification"] for r in noisy if r.get("leakage")]
        said.append(
            f"DP-SoftShape as published reaches {mean_over_sets(noisy):.3f} over the four nominal "
            f"budgets (paper 0.722; {n_sets} sets), and {np.mean(leaks):.0%} of its releases can "
            "be joined back to their series: that accuracy comes without privacy."
        )
    return said


def table3_blocks(records: Sequence[Record]) -> Section:
    """The ablations, with the row that the paper leaves out: noise that ignores attention."""
    names = {tuple(sorted(options.items())): name for name, options in ABLATIONS}
    cells: dict[tuple[float, str], list[Record]] = {}
    for record in records:
        task = record["task"]
        name = names.get(tuple(sorted(task["options"].items())), "other")
        cells.setdefault((task["epsilon"], name), []).append(record)
    rows, shown = [], {}
    for (epsilon, name), part in sorted(cells.items()):
        hard = [r for r in part if r["task"]["data"] in HARD_SETS]
        theirs = TABLE3.get(epsilon, {}).get(name, "-")
        mine = f"{mean_over_sets(hard):.3f}" if hard else "-"
        rows.append(
            (
                budget_name(epsilon, part),
                name,
                theirs,
                mine,
                _mean(part),
                _n_sets(part),
                spread_over_seeds(part),
            )
        )
        shown[f"{name}, {epsilon:g}"] = {f"ours, {_n_sets(part)} sets": mean_over_sets(part)}
        if isinstance(theirs, float):
            shown[f"{name}, {epsilon:g}"]["paper"] = theirs
    columns = (
        "budget", "variant", "paper", "ours, hard sets", "ours, all sets", "sets", "our spread",
    )  # fmt: skip
    note = (
        "The paper averages over 'complex tasks' that it does not name; ours are its hard group "
        "and all sets that have been run. 'uniform noise' is the ablation its abstract speaks of "
        "and no table has."
    )
    blocks = [
        Text(note, "DP-SoftShape, Table 3: ablations"),
        Table(columns, rows),
        dot_chart("Table 3: ablations, the paper's numbers and ours", shown, x="mean accuracy"),
    ]
    return _ablation_sentence(cells), blocks


def _n_sets(records: Sequence[Record]) -> int:
    return len({record["task"]["data"] for record in records})


def _ablation_sentence(cells: dict[tuple[float, str], list[Record]]) -> list[str]:
    full = cells.get((0.1, "full"))
    if not full:
        return []
    base = mean_over_sets(full)
    gaps = []
    for name, theirs in TABLE3[0.1].items():
        if name != "full" and (0.1, name) in cells:
            paper = TABLE3[0.1]["full"] - theirs
            gaps.append(
                f"{name} {base - mean_over_sets(cells[0.1, name]):+.3f} (paper {paper:+.2f})"
            )
    if (0.1, "uniform noise") in cells:
        gaps.append(f"uniform noise {base - mean_over_sets(cells[0.1, 'uniform noise']):+.3f}")
    where = f"{_n_sets(full)} sets"
    return [f"What the full model gains at nominal epsilon 0.1 over ({where}): {'; '.join(gaps)}."]
