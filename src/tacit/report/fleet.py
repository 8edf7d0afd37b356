"""Pictures of the fleet family: rounds, clients, epsilons, and who can be linked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.guarantee import Guarantee
from tacit.report.figure import FAMILY_COLOURS, new_figure, with_guarantee

if TYPE_CHECKING:
    import plotly.graph_objects as go

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


def _cycled(count: int) -> list[str]:
    return [_COLOURS[index % len(_COLOURS)] for index in range(count)]


def _add_line(
    figure: go.Figure, x: Sequence[float], y: Sequence[float], name: str, colour: str
) -> None:
    import plotly.graph_objects as go

    line = {"color": colour}
    figure.add_trace(go.Scatter(x=x, y=list(y), mode="lines+markers", name=name, line=line))
