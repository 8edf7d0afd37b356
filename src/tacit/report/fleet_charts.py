"""Charts and pages of the fleet family: rounds, clients, epsilons, and who can be linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.guarantee import DpGuarantee, Guarantee, Unprotected
from tacit.report.charts import FAMILY_COLOURS, Line, alt, bar_chart, line_chart, with_guarantee
from tacit.report.page import Table, Text, write_page

UNPROTECTED_ROWS = Unprotected(
    reason=(
        "the published mode's reports are linked to their senders and its epsilons are nominal; "
        "only the figures headed 'with a guarantee' show protected runs"
    )
)


def epsilon_per_round(
    epsilons: Sequence[float | None],
    guarantee: Guarantee,
    *,
    title: str = "Privacy spent per round",
) -> alt.VConcatChart:
    """Epsilon spent so far, where the run was accounted."""
    lines = [Line("epsilon", _accounted(epsilons), colour=FAMILY_COLOURS["fleet"])]
    chart = line_chart(title, lines, x="round", y="epsilon spent so far")
    return with_guarantee(chart, guarantee)


def accuracy_per_round(
    curves: Mapping[str, Sequence[float]],
    guarantee: Guarantee,
    *,
    title: str = "Accuracy per round",
) -> alt.VConcatChart:
    """Accuracy on public test series after every round, one curve per method (Figs. 3-5)."""
    alone = FAMILY_COLOURS["fleet"] if len(curves) == 1 else None
    lines = [
        Line(name, list(enumerate(values, start=1)), colour=alone)
        for name, values in curves.items()
    ]
    chart = line_chart(title, lines, x="round", y="accuracy", legend=len(lines) > 1)
    return with_guarantee(chart, guarantee)


def accuracy_against(
    what: str,
    curves: Mapping[str, Mapping[float, float]],
    guarantee: Guarantee,
    *,
    title: str | None = None,
) -> alt.VConcatChart:
    """Accuracy against `what` (clients or epsilon), one curve per method (Figs. 2 and 6)."""
    lines = {name: sorted(points.items()) for name, points in curves.items()}
    title = title or f"Accuracy against {what}"
    return with_guarantee(line_chart(title, lines, x=what, y="accuracy", log_x=True), guarantee)


def linkability(
    rates: Mapping[str, float],
    *,
    chance: float,
    guarantee: Guarantee,
    title: str = "Reports joined to their senders",
) -> alt.VConcatChart:
    """Share of shuffled reports joined to their senders, per mechanism, beside chance."""
    chart = bar_chart(
        title,
        rates,
        x="share of reports",
        colours=[FAMILY_COLOURS["fleet"]] * len(rates),
        x_range=(0.0, 1.05),
        level=(f"chance {chance:.3g}", chance),
    )
    return with_guarantee(chart, guarantee)


def write_run_page(path: Path, result: Mapping[str, Any]) -> Path:
    """One page about one run of `tacit train timefl`."""
    guarantee: Guarantee = result["guarantee"]
    methods = {"this run": result["accuracy"], **result.get("baselines", {})}
    said = f"{result['accuracy']:.1%} of {result['n_test']:,} test series get the right label"
    blocks: list[Any] = [Text(f"{said}, after {result['rounds']} rounds.")]
    if len(methods) > 1:
        rows = [[name, f"{value:.1%}"] for name, value in methods.items()]
        blocks.append(Table(columns=("method", "accuracy"), rows=rows))
    if result.get("accuracy_per_round"):
        curves = {result["mechanism"]: result["accuracy_per_round"]}
        blocks.append(accuracy_per_round(curves, guarantee))
    if result["mode"] == "sound":
        blocks.append(epsilon_per_round(result["epsilon_per_round"], guarantee))
    if result.get("reidentification") is not None:
        rates = {f"{result['mode']}, {result['mechanism']}": result["reidentification"]}
        blocks.append(linkability(rates, chance=1 / result["clients"], guarantee=guarantee))
    title = f"DP-TimeFL on {result['data']}, {result['clients']} clients"
    write_page(path, title=title, guarantee=guarantee, blocks=blocks)
    return path


def benchmark_blocks(
    published: Sequence[Mapping[str, Any]], sound: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """The paper's Figs. 2-6 from the rows of the suites `fleet-published` and `fleet-sound`.

    Rows are plain dictionaries; values are means over the seeds that are there. A figure
    without rows is left out.
    """
    blocks: list[Any] = []
    for name in _values(published, "data"):
        rows = [row for row in published if row["data"] == name]
        blocks.append(Text("", heading=f"{name}, as published"))
        for clients in _values(rows, "clients"):
            some = [row for row in rows if row["clients"] == clients]
            title = f"{name}, N = {clients}: accuracy per round (Fig. 3 and 4)"
            blocks.append(accuracy_per_round(_curves(some), UNPROTECTED_ROWS, title=title))
            title = f"{name}, N = {clients}: the accountant's delta per round (Fig. 6)"
            blocks.append(nominal_delta_per_round(some, title=title))
        title = f"{name}: accuracy against clients (Fig. 2)"
        blocks.append(_against(rows, "clients", UNPROTECTED_ROWS, title=title))
        budgets = [row for row in rows if row["method"] == "dptimefl"]
        if budgets:
            title = f"{name}: accuracy against nominal epsilon"
            blocks.append(_against(budgets, "nominal_epsilon", UNPROTECTED_ROWS, title=title))
    return [*blocks, *_sound_blocks(sound), *_linked_blocks([*published, *sound])]


def nominal_delta_per_round(
    rows: Sequence[Mapping[str, Any]], *, title: str = "Nominal delta per round"
) -> alt.VConcatChart:
    """The delta that the published moments accountant claims after every round (Fig. 6)."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        deltas = row.get("nominal_delta_per_round") or []
        if any(deltas):
            lines.setdefault(_method(row), list(enumerate(deltas, start=1)))
    chart = line_chart(title, lines, x="round", y="nominal delta", log_y=True)
    return with_guarantee(chart, UNPROTECTED_ROWS)


def write_benchmark_page(
    path: Path, *, published: Sequence[Mapping[str, Any]], sound: Sequence[Mapping[str, Any]]
) -> Path:
    """All charts of the two benchmarks on one page."""
    blocks = benchmark_blocks(published, sound)
    title = "DP-TimeFL: as published, and with a guarantee"
    return write_page(path, title=title, guarantee=UNPROTECTED_ROWS, blocks=blocks)


def _sound_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    blocks: list[Any] = []
    for split in _values(rows, "split"):
        some = [row for row in rows if row["split"] == split]
        guarantee = _weakest_guarantee(some)
        blocks.append(Text("", heading=f"{some[0]['data']} with a guarantee, split {split}"))
        for clients in _values(some, "clients"):
            cell = [row for row in some if row["clients"] == clients]
            title = f"N = {clients}: accuracy per round (Fig. 3 and 4)"
            blocks.append(accuracy_per_round(_curves(cell), guarantee, title=title))
            title = f"N = {clients}: epsilon spent per round (Fig. 6)"
            blocks.append(_spent_curves(cell, guarantee, title=title))
        title = "Accuracy against clients (Fig. 2)"
        blocks.append(_against(some, "clients", guarantee, title=title))
    return blocks


def _spent_curves(
    rows: Sequence[Mapping[str, Any]], guarantee: Guarantee, *, title: str
) -> alt.VConcatChart:
    lines = {_method(row): _accounted(row.get("epsilon_per_round") or []) for row in _firsts(rows)}
    chart = line_chart(title, lines, x="round", y="epsilon spent so far")
    return with_guarantee(chart, guarantee)


def _accounted(epsilons: Sequence[float | None]) -> list[tuple[float, float]]:
    """Round and epsilon, where there is one."""
    return [(number, value) for number, value in enumerate(epsilons, start=1) if value]


def _linked_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """One figure per number of clients: the best joining attack, published against sound."""
    kept = [row for row in rows if row.get("reidentification") is not None]
    blocks: list[Any] = [Text("", heading="Who can be linked")] if kept else []
    for clients in _values(kept, "clients"):
        some = [row for row in kept if row["clients"] == clients]
        rates = {
            name: _mean([r["reidentification"] for r in some if _case(r) == name])
            for name in _values([{"name": _case(r)} for r in some], "name")
        }
        chance = max(float(row["chance"]) for row in some)
        title = f"Reports joined to their senders, N = {clients}"
        blocks.append(linkability(rates, chance=chance, guarantee=UNPROTECTED_ROWS, title=title))
    return blocks


def _weakest_guarantee(rows: Sequence[Mapping[str, Any]]) -> Guarantee:
    """The weakest of the rows' guarantees, rebuilt from plain values."""
    worst = max((row["guarantee"] for row in rows), key=lambda g: float(g["epsilon"]))
    keys = ("epsilon", "delta", "model", "unit", "assumptions", "not_covered")
    plain = {key: worst[key] for key in keys if key in worst}
    for key in ("assumptions", "not_covered"):
        plain[key] = tuple(plain.get(key, ()))
    return DpGuarantee(**plain)


def _method(row: Mapping[str, Any]) -> str:
    """The curve a row belongs to."""
    if "mechanism" in row:
        return str(row["mechanism"])
    known = {"fedavg": "FedAvg", "cdpfl": "CDP-FL"}
    name = known.get(row["method"], "DP-TimeFL")
    return name if name == "FedAvg" else f'{name} "{row["nominal_epsilon"]:g}"'


def _case(row: Mapping[str, Any]) -> str:
    return f"{row['data']}, {row.get('split', 'iid')}, {_method(row)}"


def _values(rows: Sequence[Mapping[str, Any]], key: str) -> list[Any]:
    """Distinct values in the order of their first row."""
    return list(dict.fromkeys(row[key] for row in rows))


def _firsts(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({_method(row): row for row in reversed(rows)}.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _curves(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Mean accuracy per round over seeds; rounds that only some seeds reached are left out."""
    curves: dict[str, list[list[float]]] = {}
    for row in rows:
        if row.get("accuracy_per_round"):
            curves.setdefault(_method(row), []).append(row["accuracy_per_round"])
    return {
        name: [_mean(values) for values in zip(*runs, strict=False)]
        for name, runs in curves.items()
    }


def _against(
    rows: Sequence[Mapping[str, Any]], key: str, guarantee: Guarantee, *, title: str
) -> alt.VConcatChart:
    points: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        name = "DP-TimeFL" if key == "nominal_epsilon" else _method(row)
        name = f"{name}, N = {row['clients']}" if key == "nominal_epsilon" else name
        points.setdefault(name, {}).setdefault(float(row[key]), []).append(row["accuracy"])
        if "fedavg" in row:
            place = points.setdefault("FedAvg", {}).setdefault(float(row[key]), [])
            place.append(row["fedavg"])
    means = {n: {x: _mean(v) for x, v in some.items()} for n, some in points.items()}
    return accuracy_against(key.replace("_", " "), means, guarantee, title=title)
