"""The arena's section on DP-TimeFL: as published, and with a guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arena.paper import TIMEFL_ABOVE_CENTRAL, TIMEFL_BELOW_FEDAVG
from tacit.report.arena.tables import (
    Record,
    Section,
    short_guarantee,
)
from tacit.report.arena.timefl_published import published_blocks
from tacit.report.charts import line_chart
from tacit.report.comparison_charts import dot_chart
from tacit.report.page import Table, Text

_BASELINES = {"fedavg": "FedAvg", "central_dp": "central DP"}


def timefl_blocks(records: Sequence[Record]) -> Section:
    """Figures 2 to 4 of DP-TimeFL with a guarantee, then the published mode's where it was run."""
    published = [record for record in records if record["task"]["method"] == "timefl-published"]
    records = [record for record in records if record["task"]["method"] == "timefl"]
    rows, dots = [], {}
    for record in records:
        task, details = record["task"], record["details"]
        base = details.get("baselines", {})
        rows.append(
            (
                task["data"],
                _fleet_name(record),
                f"{record['accuracy']:.3f}",
                *(f"{base[key]:.3f}" if key in base else "-" for key in ("fedavg", "central_dp")),
                _linked(record),
                short_guarantee(record),
            )
        )
        case = f"{task['data']}, {_fleet_name(record)}"
        if base and task["seed"] == 0:
            named = {_BASELINES.get(key, key): value for key, value in base.items()}
            dots[case] = {"this fleet": record["accuracy"], **named}
    columns = (
        "set", "fleet", "accuracy", "FedAvg", "central DP", "reports linked", "true guarantee",
    )  # fmt: skip
    blocks: list[Any] = [
        Text(
            "Fleets with a real (epsilon, delta) per client, beside FedAvg and a trusted server. "
            "HHAR is a subset.",
            "DP-TimeFL with a guarantee, Figures 2 to 4",
        ),
        Table(columns, sorted(rows)),
    ]
    if dots:
        title = "Fig. 2 with a guarantee: fleets at epsilon 8 beside FedAvg and central DP"
        blocks.append(dot_chart(title, dots, x="accuracy"))
    blocks += _round_figures(records)
    said = _timefl_sentences(records)
    if published:
        sentences, (first, *more) = published_blocks(published)
        said, blocks = [*said, *sentences], [*blocks, Text(first.text), *more]
    return said, blocks


def _fleet_name(record: Record) -> str:
    options = record["task"]["options"]
    n = options.get("n_clients", 100)
    return f"{options.get('mechanism', 'privunit')}, {options.get('split', 'iid')}, N={n}"


def _linked(record: Record) -> str:
    leakage = record.get("leakage") or {}
    return f"{leakage['reidentification']:.0%}" if "reidentification" in leakage else "-"


def _round_figures(records: Sequence[Record]) -> list[Any]:
    """Accuracy after every round, one figure per data set and number of clients."""
    figures: dict[tuple[str, int], dict[str, list[tuple[float, float]]]] = {}
    for record in records:
        task, curve = record["task"], record["details"].get("accuracy_per_round")
        if curve and task["seed"] == 0:
            lines = figures.setdefault((task["data"], task["options"].get("n_clients", 100)), {})
            name = _fleet_name(record).rsplit(", N=", 1)[0]
            lines[name] = [(float(n), value) for n, value in enumerate(curve, start=1)]
    return [
        line_chart(f"Fig. 3 and 4: {name}, {n} clients", lines, x="round", y="test accuracy")
        for (name, n), lines in sorted(figures.items())
    ]


def _timefl_sentences(records: Sequence[Record]) -> list[str]:
    said = []
    for n in (100, 1000):
        sound = [
            r
            for r in records
            if r["details"].get("baselines")
            and r["task"]["options"].get("n_clients", 100) == n
            and r["details"].get("split", "iid") == "iid"
            and r["guarantee"]["kind"] == "dp"
        ]
        for mechanism in ("privunit", "distributed"):
            mine = [r for r in sound if r["details"].get("mechanism") == mechanism]
            if mine:
                below = np.mean([r["details"]["baselines"]["fedavg"] - r["accuracy"] for r in mine])
                above = np.mean(
                    [r["accuracy"] - r["details"]["baselines"]["central_dp"] for r in mine]
                )
                sets = ", ".join(sorted({r["task"]["data"] for r in mine}))
                said.append(
                    f"A fleet of {n} with a real (8, 1e-5) per client, {mechanism}, iid, {sets}: "
                    f"{below:.3f} below FedAvg (paper, nominal, its five sets: "
                    f"{TIMEFL_BELOW_FEDAVG[n]}), {above:+.3f} against central DP (paper: "
                    f"{TIMEFL_ABOVE_CENTRAL[n]:+})."
                )
    return said
