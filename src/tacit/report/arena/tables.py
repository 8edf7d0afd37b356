"""What the arena's sections share: tables of ranks, and figures of one comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arena.statistics import (
    Grid,
    average_ranks,
    bootstrap_means,
    cliques,
    critical_difference,
    grid,
    label_of,
    wilcoxon_holm,
    wins,
)
from tacit.errors import TacitError
from tacit.guarantee import rounded_up
from tacit.report.charts import alt, line_chart
from tacit.report.comparison_charts import box_chart, rank_chart
from tacit.report.page import Table, Text

Record = Mapping[str, Any]
Section = tuple[list[str], list[Any]]  # sentences for the summary, and the section's blocks


def renamed(record: Record, method: str) -> Record:
    """The record under a reader's name for its method and options."""
    return {**record, "task": {**record["task"], "method": method, "options": {}}}


def budget_name(epsilon: float | None, records: Sequence[Record]) -> str:
    """The epsilon of these records as a heading, called nominal where there is no guarantee."""
    if epsilon is None:
        return "without noise"
    nominal, some = _nominal(records)
    return f"{nominal}epsilon = {rounded_up(epsilon)}{some}"


def _nominal(records: Sequence[Record]) -> tuple[str, str]:
    """What to say before and after an epsilon: whether all or some records lack a guarantee."""
    kinds = {"unprotected" if _float_noise(r) else r["guarantee"]["kind"] for r in records}
    if "unprotected" not in kinds:
        return "", ""
    return ("nominal ", "") if len(kinds) == 1 else ("", " (for some methods only nominal)")


def _float_noise(record: Record) -> bool:
    """A rival of an earlier version: it stated an epsilon for noise that float64 drew."""
    said = record["guarantee"].get("assumptions", ())
    return any("idealised real arithmetic" in one for one in said)


def short_guarantee(record: Record) -> str:
    """The guarantee in a few words for a table; the whole sentence is at the end of the page."""
    found = record["guarantee"]
    if _float_noise(record):
        return f"none (nominal epsilon {rounded_up(found['epsilon'])}, float64 noise)"
    if found["kind"] == "dp":
        delta = f", delta {rounded_up(found['delta'])}" if found["delta"] else ""
        return f"epsilon {rounded_up(found['epsilon'])}{delta}: {found['trust_model']}"
    return "none" if found["kind"] == "unprotected" else str(found["trust_model"])


def by_budget(records: Sequence[Record]) -> dict[float | None, list[Record]]:
    """Records grouped by budget, ascending, without noise last."""
    budgets: dict[float | None, list[Record]] = {}
    for record in records:
        budgets.setdefault(record["task"]["epsilon"], []).append(record)
    return dict(sorted(budgets.items(), key=lambda item: (item[0] is None, item[0] or 0.0)))


def mean_over_sets(records: Sequence[Record]) -> float:
    """Mean over data sets of the mean over seeds."""
    sets: dict[str, list[float]] = {}
    for record in records:
        sets.setdefault(record["task"]["data"], []).append(record["accuracy"])
    return float(np.mean([np.mean(values) for values in sets.values()]))


def spread_over_seeds(records: Sequence[Record]) -> str:
    """Standard deviation over seeds of the mean over data sets, with the number of seeds."""
    seeds: dict[int, list[float]] = {}
    for record in records:
        seeds.setdefault(record["task"]["seed"], []).append(record["accuracy"])
    size = max(len(values) for values in seeds.values())
    means = [np.mean(values) for values in seeds.values() if len(values) == size]
    return "one seed" if len(means) < 2 else f"{np.std(means, ddof=1):.4f} ({len(means)} seeds)"


def comparison_blocks(records: Sequence[Record]) -> list[Any]:
    """For a suite without a section of its own: per budget a ranking and its figures."""
    blocks: list[Any] = []
    for epsilon, part in by_budget(records).items():
        name = budget_name(epsilon, part)
        try:
            table = grid(part)
        except TacitError as error:
            blocks.append(Text(f"{name}: {error}"))
            continue
        blocks += [Text(f"{len(table.data)} data sets, {name}."), ranking(table)]
        blocks.append(boxes(table, f"Accuracy per data set, {name}"))
        if len(table.methods) > 2 and len(table.data) > 2:
            blocks.append(rank_figure(table, f"Average ranks, {name}"))
    lines = lines_by_method(records)
    if lines:
        nominal, some = _nominal([r for r in records if r["task"]["epsilon"] is not None])
        x = f"{nominal}epsilon{some}"
        blocks.append(
            line_chart(f"Accuracy against {x}", lines, x=x, y="mean accuracy", log_x=True)
        )
    if any(record.get("cpu_seconds") is not None for record in records):
        blocks.append(seconds_figure(records))
    return blocks


def ranking(table: Grid) -> Table:
    """Mean, interval, spread, rank, wins and p value of every method."""
    ranks, best = average_ranks(table), wins(table)
    interval = bootstrap_means(table, rng=np.random.default_rng(0))
    order = np.argsort(ranks)
    reference = table.methods[int(order[0])]
    p_values = wilcoxon_holm(table, reference=reference) if len(table.data) > 1 else {}
    rows = [
        (
            table.methods[i],
            f"{table.accuracy[:, i].mean():.3f}",
            f"{interval[i, 0]:.3f} to {interval[i, 1]:.3f}",
            f"{table.spread[:, i].mean():.3f}" if table.spread[:, i].any() else "-",
            f"{ranks[i]:.2f}",
            int(best[i]),
            f"{p_values[table.methods[i]]:.3g}" if table.methods[i] in p_values else "-",
        )
        for i in order
    ]
    columns = (
        "method", "mean accuracy", "95 % over data sets", "spread over seeds", "average rank",
        "wins", f"p against {reference} (Wilcoxon, Holm)",
    )  # fmt: skip
    return Table(columns, rows)


def boxes(table: Grid, title: str) -> alt.LayerChart:
    """One box per method, best median first."""
    columns = {
        method: list(zip(table.accuracy[:, i].tolist(), table.data, strict=True))
        for i, method in enumerate(table.methods)
    }
    order = sorted(columns, key=lambda name: -float(np.median([v for v, _ in columns[name]])))
    return box_chart(
        title, {name: columns[name] for name in order}, x="accuracy, one dot per data set"
    )


def rank_figure(table: Grid, title: str) -> alt.LayerChart:
    """Average ranks with Nemenyi's critical difference."""
    ranks, difference = average_ranks(table), critical_difference(table)
    groups = [[table.methods[i] for i in group] for group in cliques(list(ranks), difference)]
    return rank_chart(
        title,
        dict(zip(table.methods, ranks.tolist(), strict=True)),
        difference=difference,
        groups=groups,
    )


def lines_by_method(records: Sequence[Record]) -> dict[str, list[tuple[float, float]]]:
    """Mean accuracy against epsilon per method; methods with one budget only are left out."""
    cells: dict[str, dict[float, list[Record]]] = {}
    for record in records:
        task = record["task"]
        if task["epsilon"] is not None:
            budgets = cells.setdefault(label_of(task), {})
            budgets.setdefault(task["epsilon"], []).append(record)
    return {
        method: [(epsilon, mean_over_sets(part)) for epsilon, part in sorted(budgets.items())]
        for method, budgets in sorted(cells.items())
        if len(budgets) > 1
    }


def seconds_figure(records: Sequence[Record]) -> alt.LayerChart:
    """CPU seconds per task, training and test together."""
    times: dict[str, list[tuple[float, str]]] = {}
    for record in records:
        task = record["task"]
        if record.get("cpu_seconds") is None:  # lines of a script from before its suite
            continue
        value = (max(0.001, record["cpu_seconds"]), task["data"])
        times.setdefault(label_of(task), []).append(value)
    order = sorted(times, key=lambda name: float(np.median([v for v, _ in times[name]])))
    return box_chart(
        "CPU seconds per task, training and test",
        {name: times[name] for name in order},
        x="seconds",
        log=True,
        dots=False,
    )
