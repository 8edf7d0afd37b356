"""The arena's frontier: accuracy of the methods that really guarantee a total epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.arena.statistics import label_of
from tacit.guarantee import rounded_up
from tacit.report.arena.tables import (
    Record,
    Section,
    budget_name,
    by_budget,
    lines_by_method,
    mean_over_sets,
    renamed,
    seconds_figure,
    short_guarantee,
)
from tacit.report.charts import line_chart
from tacit.report.page import Table, Text

_FRONTIER_NAMES = {
    "minirocket (total=True)": "MiniRocket, sound input noise",
    "quant (total=True)": "QUANT, sound input noise",
    "timefl (mechanism=privunit, n_clients=16)": "fleet of 16 clients (other trust model)",
}


def frontier_blocks(records: Sequence[Record]) -> Section:
    """Accuracy against a total epsilon that every method really guarantees."""
    named = _on_common_sets([renamed(record, _frontier_name(record)) for record in records])
    rows = []
    for epsilon, part in by_budget(named).items():
        methods = sorted({r["task"]["method"] for r in part})
        for method in methods:
            mine = [r for r in part if r["task"]["method"] == method]
            sets = len({r["task"]["data"] for r in mine})
            guarantee = short_guarantee(mine[0])
            rows.append(
                (budget_name(epsilon, mine), method, f"{mean_over_sets(mine):.3f}", sets, guarantee)
            )
    lines = lines_by_method(named)
    blocks: list[Any] = [
        Text(
            "No release with a total epsilon per series can exceed the ceiling in expectation, "
            "whatever the classifier; a single test run can lie above it by chance. The fleet's "
            "epsilon protects the clients that train, not the series that is classified; it is "
            "shown here but not ranked.",
            "Frontier: equal total epsilon",
        ),
        Table(("budget", "method", "mean accuracy", "sets", "guarantee"), rows),
    ]
    if lines:
        title = "Accuracy against total epsilon, with what no method can exceed"
        blocks.append(line_chart(title, lines, x="total epsilon", y="mean accuracy", log_x=True))
    return _frontier_sentence(named), [*blocks, seconds_figure(named)]


def _on_common_sets(records: Sequence[Record]) -> list[Record]:
    """Only the data sets that every method has: means over different sets are not compared."""
    sets: dict[str, set[str]] = {}
    for record in records:
        sets.setdefault(record["task"]["method"], set()).add(record["task"]["data"])
    common = set.intersection(*sets.values())
    return [record for record in records if record["task"]["data"] in common] or list(records)


def _frontier_name(record: Record) -> str:
    label = label_of(record["task"])
    return _FRONTIER_NAMES.get(label, label)


def _frontier_sentence(records: Sequence[Record]) -> list[str]:
    said = []
    for epsilon, part in by_budget(records).items():
        if epsilon is None:
            continue
        label = [r for r in part if r["task"]["method"] == "softshape-label"]
        sets = {r["task"]["data"] for r in label}
        bound = [r for r in part if r["task"]["method"] == "ceiling" and r["task"]["data"] in sets]
        if label and bound:
            reached, most = mean_over_sets(label), mean_over_sets(bound)
            said.append(f"{reached:.3f} of at most {most:.3f} at {rounded_up(epsilon)}")
    return (
        [f"Label release, mean accuracy at a real total epsilon: {'; '.join(said)}."]
        if said
        else []
    )
