"""Figures 2 to 6 of DP-TimeFL as published: accuracy over rounds, and where delta ends a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arena.fleet.suites import IMPORTED_SETS
from tacit.arena.paper import TIMEFL_ABOVE_CENTRAL, TIMEFL_BELOW_FEDAVG
from tacit.arena.results.tables import (
    FLEET_NAMES,
    below_fedavg,
    ending,
    gap_in_words,
    over_seeds,
)
from tacit.report.arena.tables import Record, Section, short_guarantee
from tacit.report.charts import Line, line_chart
from tacit.report.page import Table, Text

Fleet = tuple[int, str, str]  # clients, preset, data
_METHODS = tuple(FLEET_NAMES)


def published_blocks(records: Sequence[Record]) -> Section:
    """One figure per set, clients and preset; the accountant's delta; and all cells in a table."""
    fleets = _fleets(records)
    absent = [name for name in IMPORTED_SETS if not any(f[2] == name for f in fleets)]
    text = (
        "The epsilons are nominal and promise nothing. A run ends when its accountant says that "
        "the next round would pass delta's limit (a large dot marks the end), else when it has "
        "converged. Curves are means over seeds as far as all of them reach. HHAR is a subset."
    )
    if absent:
        how = "; ".join(f"{name}: {IMPORTED_SETS[name]}" for name in absent)
        text += f" Fig. 5 needs raw archives that are not at hand here: {how}."
    blocks: list[Any] = [Text(text, "DP-TimeFL as published, Figures 2 to 6")]
    blocks += [_rounds(fleet, some) for fleet, some in fleets.items()]
    blocks += _deltas(records)
    columns = (
        "set", "clients", "preset", "method", "accuracy", "rounds, ended by", "clip norm",
        "reports linked", "true guarantee",
    )  # fmt: skip
    blocks.append(Table(columns, [_row(f, cell) for f, s in fleets.items() for cell in _cells(s)]))
    return _sentences(fleets), blocks


def _fleets(records: Sequence[Record]) -> dict[Fleet, list[Record]]:
    found: dict[Fleet, list[Record]] = {}
    for record in records:
        options = record["task"]["options"]
        key = (options["n_clients"], options["preset"], record["task"]["data"])
        found.setdefault(key, []).append(record)
    return dict(sorted(found.items(), key=lambda item: (item[0][1] != "tuned", item[0])))


def _cells(records: Sequence[Record]) -> list[list[Record]]:
    """The seeds of one method and budget together, in the order of the paper's legend."""
    found: dict[tuple[int, float], list[Record]] = {}
    for record in records:
        task = record["task"]
        key = (_METHODS.index(task["options"]["variant"]), task["epsilon"] or 0.0)
        found.setdefault(key, []).append(record)
    return [cell for _, cell in sorted(found.items())]


def _name(record: Record) -> str:
    task = record["task"]
    method = FLEET_NAMES[task["options"]["variant"]]
    return method if task["epsilon"] is None else f'{method} "{task["epsilon"]:g}"'


def _rounds(fleet: Fleet, records: Sequence[Record]) -> Any:
    clients, preset, data = fleet
    lines = []
    for cell in _cells(records):
        curves = [record["details"]["accuracy_per_round"] for record in cell]
        means = [float(np.mean(values)) for values in zip(*curves, strict=False)]
        points = [(float(n), value) for n, value in enumerate(means, start=1)]
        name = _name(cell[0])
        by_delta = points and all(r["details"]["ended_by"] == "delta" for r in cell)
        if by_delta:
            name += f": delta ends it after round {len(points)}"
        lines.append(Line(name, points, dots=False, dashed="CDP" in name))
        if by_delta:
            lines.append(Line(name, points[-1:], joined=False, dots=True))
    figure = "Fig. 5" if data in IMPORTED_SETS else "Fig. 3" if clients == 100 else "Fig. 4"
    title = f"{figure}: {data}, {clients} clients, {preset} preset"
    return line_chart(title, lines, x="round", y="test accuracy")


def _deltas(records: Sequence[Record]) -> list[Any]:
    """The accountant's delta by round: it looks at no data, so the longest run shows it best."""
    longest: dict[tuple[int, float], Mapping[str, Any]] = {}
    for record in records:
        task, details = record["task"], record["details"]
        if task["options"]["variant"] == "dptimefl":
            key = (task["options"]["n_clients"], task["epsilon"])
            if details["rounds"] > longest.get(key, {"rounds": 0})["rounds"]:
                longest[key] = details
    charts = []
    for clients in sorted({clients for clients, _ in longest}):
        mine = {e: details for (n, e), details in sorted(longest.items()) if n == clients}
        lines = {
            f'"{e:g}"': list(enumerate(details["nominal_delta_per_round"], start=1))
            for e, details in mine.items()
        }
        limit = next(iter(mine.values()))["delta_limit"]
        charts.append(
            line_chart(
                f"Fig. 6: the published accountant's delta, {clients} clients",
                lines, x="round", y="nominal delta", log_y=True,
                level=(f"limit {limit:g}", limit),
            )
        )  # fmt: skip
    return charts


def _row(fleet: Fleet, cell: Sequence[Record]) -> tuple[Any, ...]:
    clients, preset, data = fleet
    rates = [(record.get("leakage") or {}).get("reidentification") for record in cell]
    known = [rate for rate in rates if rate is not None]
    norms = sorted({r["details"]["clip_norm"] for r in cell if r["details"].get("clip_norm")})
    return (
        data, clients, preset, _name(cell[0]), over_seeds(cell), ending(cell),
        ", ".join(f"{norm:g}" for norm in norms) or "-",
        f"{np.mean(known):.0%}" if known else "-",
        short_guarantee(cell[0]),
    )  # fmt: skip


def _sentences(fleets: Mapping[Fleet, Sequence[Record]]) -> list[str]:
    """Where a nominal budget ends a run before FedAvg has converged, and what that costs."""
    said = []
    for (clients, preset, data), records in fleets.items():
        cells = {_name(cell[0]): cell for cell in _cells(records)}
        if "FedAvg" not in cells:
            continue
        gaps = below_fedavg(records)
        parts = [
            f"{name} {gap_in_words([gap for r, gap in gaps if r in cell], sign=-1)} "
            f"({ending(cell)})"
            for name, cell in cells.items()
            if name != "FedAvg"
        ]
        said.append(
            f"{data}, {clients} clients, {preset} preset: FedAvg {over_seeds(cells['FedAvg'])}, "
            f"{ending(cells['FedAvg'])}; against it, on the same clients, {', '.join(parts)}. "
            "The paper's means: "
            f"-{TIMEFL_BELOW_FEDAVG[clients]} for DP-TimeFL, "
            f"{TIMEFL_ABOVE_CENTRAL[clients]} above CDP-FL."
        )
    return said
