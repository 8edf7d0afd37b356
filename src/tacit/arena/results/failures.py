"""The tasks that failed, each with its reason: what no table of accuracies can show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from tacit.arena.results.records import Results
from tacit.arena.results.tables import table
from tacit.arena.silo.names import method_name


def failed(results: Results) -> str:
    """By suite and reason: which data sets, which methods, how many tasks."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for record in results.every:
        if record["status"] == "failed":
            reason = " ".join(record["reason"].split()).replace("|", "/")  # one cell of a table
            groups[record["task"]["suite"], reason].append(record["task"])
    rows = [
        (suite, reason, _listed(t["data"] for t in tasks), _listed(map(_method, tasks)), len(tasks))
        for (suite, reason), tasks in sorted(groups.items())
    ]
    columns = ("suite", "reason", "data sets", "methods", "tasks")
    return table(columns, rows or [("none", "-", "-", "-", 0)])


def _listed(names: Any) -> str:
    return ", ".join(dict.fromkeys(names))


def _method(task: Mapping[str, Any]) -> str:
    return method_name(task["options"]) if task["method"] == "fedst" else str(task["method"])


FAILURE_TABLES = {"failed": failed}
