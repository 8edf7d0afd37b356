"""The arena's page: the papers' tables next to ours, and what may be concluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arena.paper import TABLE2, TABLE2_NOTE
from tacit.arena.statistics import (
    Grid,
    average_ranks,
    bootstrap_means,
    critical_difference,
    grid,
    label_of,
    ranked,
    wilcoxon_holm,
    wins,
)
from tacit.arena.store import Store
from tacit.errors import TacitError
from tacit.guarantee import from_dict
from tacit.report.figure import new_figure
from tacit.report.page import Promise, Table, Text, write_page

if TYPE_CHECKING:
    import plotly.graph_objects as go

Record = Mapping[str, Any]
_NOISY = (0.1, 0.5, 1.0, 5.0)


def write_arena_page(folder: Path) -> Path:
    """Read the results of a folder and write its page beside them."""
    records = list(Store(folder).records())
    done = [record for record in records if record["status"] == "done"]
    if not done:
        raise TacitError(f"{folder} has no finished task; run 'tacit arena run' first.")
    clean = ranked(done)
    shown = clean or done
    blocks: list[Any] = [Text(_summary(records, clean), "What may be concluded")]
    blocks += _budget_sections(shown)
    blocks += _paper_section(shown)
    blocks += [_cost_of_privacy(shown), _seconds(shown)]
    blocks += _promises(shown)
    return write_page(folder / "report.html", title="Tacit arena", blocks=blocks)


def _summary(records: Sequence[Record], clean: Sequence[Record]) -> str:
    failed = sum(record["status"] == "failed" for record in records)
    dirty = sum(record["status"] == "done" for record in records) - len(clean)
    text = (
        f"{len(records)} tasks, {failed} failed. Accuracies are means over seeds on the test part; "
        "nothing was chosen by test accuracy. Rows of different trust models stand side by side "
        "for reading, not for ranking: a nominal epsilon in the input-noise setting, a total "
        "epsilon per series and secret sharing protect from different adversaries."
    )
    if dirty:
        text += f" {dirty} tasks were made by uncommitted code: they are " + (
            "left out." if clean else "shown because there are no others, and prove nothing."
        )
    return text


def _budget_name(epsilon: float | None) -> str:
    return "without noise" if epsilon is None else f"epsilon = {epsilon:g}"


def _by_budget(records: Sequence[Record]) -> dict[float | None, list[Record]]:
    budgets: dict[float | None, list[Record]] = {}
    for record in records:
        budgets.setdefault(record["task"]["epsilon"], []).append(record)
    return dict(sorted(budgets.items(), key=lambda item: (item[0] is None, item[0] or 0.0)))


def _budget_sections(records: Sequence[Record]) -> list[Any]:
    blocks: list[Any] = []
    for epsilon, part in _by_budget(records).items():
        try:
            table = grid(part)
        except TacitError as error:
            blocks.append(Text(str(error), _budget_name(epsilon)))
            continue
        blocks += [Text("", _budget_name(epsilon)), _ranking(table), _boxes(table, epsilon)]
        if len(table.methods) > 2 and len(table.data) > 2:
            blocks.append(_critical_difference(table, epsilon))
    blocks.append(_against_epsilon(records))
    return blocks


def _ranking(table: Grid) -> Table:
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
            f"{table.spread[:, i].mean():.3f}",
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


def _boxes(table: Grid, epsilon: float | None) -> go.Figure:
    figure = new_figure(f"Accuracy per data set, {_budget_name(epsilon)}", x="method", y="accuracy")
    for column, method in enumerate(table.methods):
        figure.add_box(
            y=table.accuracy[:, column], name=method, boxpoints="all", text=list(table.data)
        )
    figure.update_layout(showlegend=False)
    return figure


def _critical_difference(table: Grid, epsilon: float | None) -> go.Figure:
    ranks, difference = average_ranks(table), critical_difference(table)
    figure = new_figure(
        f"Average ranks, {_budget_name(epsilon)}; bars reach one critical difference "
        f"({difference:.2f})",
        x="average rank, lower is better",
        y="",
    )
    order = np.argsort(ranks)[::-1]
    figure.add_scatter(
        x=ranks[order],
        y=[table.methods[i] for i in order],
        mode="markers",
        error_x={"type": "constant", "value": difference / 2},
    )
    return figure


def _against_epsilon(records: Sequence[Record]) -> go.Figure:
    figure = new_figure("Accuracy against epsilon", x="epsilon", y="mean accuracy")
    means: dict[str, dict[float, list[float]]] = {}
    for record in records:
        task = record["task"]
        if task["epsilon"] is not None:
            cells = means.setdefault(label_of(task), {})
            cells.setdefault(task["epsilon"], []).append(record["accuracy"])
    for method, cells in sorted(means.items()):
        epsilons = sorted(cells)
        figure.add_scatter(x=epsilons, y=[np.mean(cells[e]) for e in epsilons], name=method)
    figure.update_xaxes(type="log")
    return figure


def _paper_section(records: Sequence[Record]) -> list[Any]:
    rows = []
    for method, theirs in TABLE2.items():
        mine = [r for r in records if label_of(r["task"]) == method]
        clean = [r["accuracy"] for r in mine if r["task"]["epsilon"] is None]
        noisy = [r["accuracy"] for r in mine if r["task"]["epsilon"] in _NOISY]
        if clean or noisy:
            rows.append(
                (method, theirs.clean, _mean(clean), theirs.noisy, _mean(noisy), _sentence(mine[0]))
            )
    if not rows:
        return []
    columns = ("method", "paper, clean", "ours", "paper, noisy", "ours", "our true guarantee")
    return [Text(TABLE2_NOTE, "DP-SoftShape, Table 2"), Table(columns, rows)]


def _mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.3f}" if values else "-"


def _sentence(record: Record) -> str:
    return str(record["guarantee"]["sentence"])


def _cost_of_privacy(records: Sequence[Record]) -> go.Figure:
    figure = new_figure(
        "Cost of privacy, one point per data set", x="accuracy without noise", y="with noise"
    )
    clean: dict[tuple[str, str], float] = {
        (label_of(r["task"]), r["task"]["data"]): r["accuracy"]
        for r in records
        if r["task"]["epsilon"] is None
    }
    points: dict[str, list[tuple[float, float, str]]] = {}
    for record in records:
        task = record["task"]
        key = (label_of(task), task["data"])
        if task["epsilon"] is not None and key in clean:
            point = (clean[key], record["accuracy"], f"{task['data']}, {task['epsilon']:g}")
            points.setdefault(key[0], []).append(point)
    for method, cloud in sorted(points.items()):
        x, y, text = zip(*cloud, strict=True)
        figure.add_scatter(x=x, y=y, text=text, mode="markers", name=method)
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line_dash="dash", name="no cost")
    return figure


def _seconds(records: Sequence[Record]) -> go.Figure:
    figure = new_figure("CPU seconds per task", x="method", y="seconds")
    times: dict[str, list[float]] = {}
    for record in records:
        times.setdefault(label_of(record["task"]), []).append(record["cpu_seconds"])
    for method, values in sorted(times.items()):
        figure.add_box(y=values, name=method)
    figure.update_yaxes(type="log")
    figure.update_layout(showlegend=False)
    return figure


def _promises(records: Sequence[Record]) -> list[Any]:
    seen: dict[str, Promise] = {}
    for record in records:
        task = record["task"]
        title = f"{label_of(task)}, {_budget_name(task['epsilon'])}"
        seen.setdefault(title, Promise(title, from_dict(record["guarantee"])))
    return [Text("", "Guarantees"), *seen.values()]
