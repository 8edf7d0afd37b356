"""Pictures of the fleet family: rounds, clients, epsilons, and who can be linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.guarantee import DpGuarantee, Guarantee, Unprotected
from tacit.report.figure import FAMILY_COLOURS, new_figure, with_guarantee

if TYPE_CHECKING:
    import plotly.graph_objects as go

UNPROTECTED_ROWS = Unprotected(
    reason=(
        "the published mode's reports are linked to their senders and its epsilons are nominal; "
        "only the figures headed 'with a guarantee' show protected runs"
    )
)
_COLOURS = ("#b6633b", "#3b6fb6", "#3f8f5b", "#7a7a7a", "#8a5fb0", "#c79a2b")


def epsilon_per_round(epsilons: Sequence[float | None], guarantee: Guarantee) -> go.Figure:
    """Epsilon spent so far, where the run was accounted."""
    import plotly.graph_objects as go

    points = [(number, value) for number, value in enumerate(epsilons, start=1) if value]
    figure = new_figure("Privacy spent per round", x="round", y="epsilon spent so far")
    figure.add_trace(
        go.Scatter(
            x=[x for x, _ in points],
            y=[y for _, y in points],
            mode="lines+markers",
            line={"color": FAMILY_COLOURS["fleet"]},
            name="epsilon",
        )
    )
    return with_guarantee(figure, guarantee)


def accuracy_per_round(curves: Mapping[str, Sequence[float]], guarantee: Guarantee) -> go.Figure:
    """Accuracy on public test series after every round, one curve per method (Figs. 3-5)."""
    figure = new_figure("Accuracy per round", x="round", y="accuracy")
    for colour, (name, values) in zip(_cycled(len(curves)), curves.items(), strict=True):
        _add_line(figure, list(range(1, len(values) + 1)), values, name, colour)
    return with_guarantee(figure, guarantee)


def accuracy_against(
    what: str, curves: Mapping[str, Mapping[float, float]], guarantee: Guarantee
) -> go.Figure:
    """Accuracy against `what` (clients or epsilon), one curve per method (Figs. 2 and 6)."""
    figure = new_figure(f"Accuracy against {what}", x=what, y="accuracy")
    figure.update_xaxes(type="log")
    for colour, (name, points) in zip(_cycled(len(curves)), curves.items(), strict=True):
        xs = sorted(points)
        _add_line(figure, xs, [points[x] for x in xs], name, colour)
    return with_guarantee(figure, guarantee)


def linkability(rates: Mapping[str, float], *, chance: float, guarantee: Guarantee) -> go.Figure:
    """Share of shuffled reports joined to their senders, per mechanism, beside chance."""
    import plotly.graph_objects as go

    figure = new_figure("Reports joined to their senders", x="", y="share of reports")
    figure.add_trace(
        go.Bar(x=list(rates), y=list(rates.values()), marker_color=FAMILY_COLOURS["fleet"])
    )
    figure.add_hline(y=chance, line_dash="dash", annotation_text=f"chance {chance:.3g}")
    figure.update_yaxes(range=[0, 1.05])
    return with_guarantee(figure, guarantee)


def write_run_page(path: Path, result: Mapping[str, Any]) -> Path:
    """One page about one run of `tacit train timefl`."""
    from tacit.report.page import Table, write_page

    guarantee: Guarantee = result["guarantee"]
    methods = {"this run": result["accuracy"], **result.get("baselines", {})}
    rows = [[name, f"{value:.4f}"] for name, value in methods.items()]
    blocks: list[Any] = [Table(columns=("method", "accuracy"), rows=rows)]
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
    """The paper's Figs. 2-6 from the rows of `fleet_published.jsonl` and `fleet_sound.jsonl`.

    Rows are plain dictionaries; values are means over the seeds that are there. A figure
    without rows is left out. Fig. 5 (Sleep-EDF, MFD) needs data that cannot be had here.
    """
    from tacit.report.page import Text

    blocks: list[Any] = []
    for name in _values(published, "data"):
        rows = [row for row in published if row["data"] == name]
        blocks.append(Text("", heading=f"{name}, as published"))
        for clients in _values(rows, "clients"):
            some = [row for row in rows if row["clients"] == clients]
            title = f"{name}, N = {clients}: accuracy per round (Fig. 3 and 4)"
            blocks.append(_titled(accuracy_per_round(_curves(some), UNPROTECTED_ROWS), title))
            title = f"{name}, N = {clients}: the accountant's delta per round (Fig. 6)"
            blocks.append(_titled(nominal_delta_per_round(some), title))
        blocks.append(
            _titled(_against(rows, "clients"), f"{name}: accuracy against clients (Fig. 2)")
        )
        budgets = [row for row in rows if row["method"] == "dptimefl"]
        if budgets:
            title = f"{name}: accuracy against nominal epsilon"
            blocks.append(_titled(_against(budgets, "nominal_epsilon"), title))
    return [*blocks, *_sound_blocks(sound), *_linked_blocks([*published, *sound])]


def nominal_delta_per_round(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """The delta that the published moments accountant claims after every round (Fig. 6)."""
    figure = new_figure("Nominal delta per round", x="round", y="nominal delta")
    figure.update_yaxes(type="log")
    kept = [row for row in rows if any(row.get("nominal_delta_per_round") or [])]
    names = _values([{"name": _method(row)} for row in kept], "name")
    for colour, name in zip(_cycled(len(names)), names, strict=True):
        values = next(r["nominal_delta_per_round"] for r in kept if _method(r) == name)
        _add_line(figure, list(range(1, len(values) + 1)), values, name, colour)
    return with_guarantee(figure, UNPROTECTED_ROWS)


def write_benchmark_page(
    path: Path, *, published: Sequence[Mapping[str, Any]], sound: Sequence[Mapping[str, Any]]
) -> Path:
    """All pictures of the two benchmarks on one page."""
    from tacit.report.page import write_page

    blocks = benchmark_blocks(published, sound)
    title = "DP-TimeFL: as published, and with a guarantee"
    return write_page(path, title=title, guarantee=UNPROTECTED_ROWS, blocks=blocks)


def _sound_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    from tacit.report.page import Text

    blocks: list[Any] = []
    for split in _values(rows, "split"):
        some = [row for row in rows if row["split"] == split]
        promise = _promise(some)
        blocks.append(Text("", heading=f"{some[0]['data']} with a guarantee, split {split}"))
        for clients in _values(some, "clients"):
            cell = [row for row in some if row["clients"] == clients]
            title = f"N = {clients}: accuracy per round (Fig. 3 and 4)"
            blocks.append(_titled(accuracy_per_round(_curves(cell), promise), title))
            title = f"N = {clients}: epsilon spent per round (Fig. 6)"
            blocks.append(_titled(_spent_curves(cell, promise), title))
        blocks.append(
            _titled(_against(some, "clients", promise), "Accuracy against clients (Fig. 2)")
        )
    return blocks


def _spent_curves(rows: Sequence[Mapping[str, Any]], promise: Guarantee) -> go.Figure:
    figure = new_figure("Epsilon per round", x="round", y="epsilon spent so far")
    for colour, row in zip(_COLOURS, _firsts(rows), strict=False):
        points = [(n, e) for n, e in enumerate(row.get("epsilon_per_round") or [], 1) if e]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        _add_line(figure, xs, ys, _method(row), colour)
    return with_guarantee(figure, promise)


def _linked_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """One figure per number of clients: the best joining attack, published against sound."""
    from tacit.report.page import Text

    kept = [row for row in rows if row.get("reidentification") is not None]
    blocks: list[Any] = [Text("", heading="Who can be linked")] if kept else []
    for clients in _values(kept, "clients"):
        some = [row for row in kept if row["clients"] == clients]
        rates = {
            name: _mean([r["reidentification"] for r in some if _case(r) == name])
            for name in _values([{"name": _case(r)} for r in some], "name")
        }
        chance = max(float(row["chance"]) for row in some)
        figure = linkability(rates, chance=chance, guarantee=UNPROTECTED_ROWS)
        blocks.append(_titled(figure, f"Reports joined to their senders, N = {clients}"))
    return blocks


def _promise(rows: Sequence[Mapping[str, Any]]) -> Guarantee:
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
    rows: Sequence[Mapping[str, Any]], key: str, promise: Guarantee | None = None
) -> go.Figure:
    points: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        name = "DP-TimeFL" if key == "nominal_epsilon" else _method(row)
        name = f"{name}, N = {row['clients']}" if key == "nominal_epsilon" else name
        points.setdefault(name, {}).setdefault(float(row[key]), []).append(row["accuracy"])
        if "fedavg" in row:
            place = points.setdefault("FedAvg", {}).setdefault(float(row[key]), [])
            place.append(row["fedavg"])
    means = {n: {x: _mean(v) for x, v in some.items()} for n, some in points.items()}
    return accuracy_against(key.replace("_", " "), means, promise or UNPROTECTED_ROWS)


def _titled(figure: go.Figure, title: str) -> go.Figure:
    figure.update_layout(title=title)
    return figure


def _cycled(count: int) -> list[str]:
    return [_COLOURS[index % len(_COLOURS)] for index in range(count)]


def _add_line(
    figure: go.Figure, x: Sequence[float], y: Sequence[float], name: str, colour: str
) -> None:
    import plotly.graph_objects as go

    line = {"color": colour}
    figure.add_trace(go.Scatter(x=x, y=list(y), mode="lines+markers", name=name, line=line))
