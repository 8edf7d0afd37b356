"""Charts of the local family from plain arrays: the paper's Fig. 3-5 and accuracy by budget.

`tacit.report.charts.with_guarantee` adds the guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.report.charts import (
    FAMILY_COLOURS,
    INK,
    WIDTH,
    Line,
    Range,
    alt,
    axis_scale,
    heading,
    line_chart,
    line_layers,
    number,
    on,
    room,
    scatter_chart,
)
from tacit.report.look import PAPER

_PLOT_WIDTH = WIDTH - 80
_SERIES_HEIGHT = 190
_FEW = 6  # places whose probabilities can stand side by side


def allocation_figure(
    series: Floats,
    *,
    patch_starts: Sequence[int],
    patch_length: int,
    alpha: Floats,
    noise_scale: Floats,
    title: str = "What is kept and what is blurred",
) -> alt.VConcatChart:
    """One series (T,) or (channels, T) above the score and noise scale of each patch (Fig. 3).

    Shading is the score of the patches that cover a step: dark is kept, light is blurred.
    """
    channels = np.atleast_2d(np.asarray(series, dtype=np.float64))
    _check_patches(len(patch_starts), alpha=alpha, noise_scale=noise_scale)
    length = channels.shape[1]
    reach = (-0.5, length - 0.5)
    cover = per_step(alpha, patch_starts, patch_length, length)
    scores = [
        {"from": step - 0.5, "to": step + 0.5, "score": number(score)}
        for step, score in enumerate(cover)
    ]
    shade = (
        on(scores)
        .mark_rect()
        .encode(
            x=_steps("from", reach),
            x2="to:Q",
            color=alt.Color("score:Q", legend=None).scale(domain=[0, 1], scheme="teals"),
        )
    )
    centres = np.asarray(patch_starts) + patch_length / 2
    half = 0.4 * _spacing(centres, patch_length)
    bars = [
        {"centre": float(at), "from": at - half, "to": at + half, "scale": number(scale)}
        for at, scale in zip(centres.tolist(), noise_scale, strict=True)
    ]
    noise = (
        on(bars)
        .mark_bar(color=FAMILY_COLOURS["local"])
        .encode(
            x=_steps("from", reach, title="time step"),
            x2="to:Q",
            y=alt.Y("scale:Q", title="noise scale", axis=alt.Axis(tickCount=4)).scale(zero=True),
            y2=alt.Y2Datum(0.0),
        )
    )
    return _stacked(
        title,
        _series_panel(channels, reach),
        shade.properties(width=_PLOT_WIDTH, height=24, title=heading("score", size=11)),
        noise.properties(width=_PLOT_WIDTH, height=90),
    )


def places_figure(
    series: Floats,
    *,
    edges: Sequence[int],
    probability: Floats,
    title: str = "Where the evidence lies",
) -> alt.VConcatChart:
    """One series (T,) or (channels, T), shaded where the server thinks that its evidence lies.

    The likeliest place, and each of a few, says its probability too.
    """
    channels = np.atleast_2d(np.asarray(series, dtype=np.float64))
    if len(probability) != len(edges) - 1:
        raise TacitError(f"places_figure got {len(probability)} places and {len(edges)} edges.")
    reach = (-0.5, channels.shape[1] - 0.5)
    most = max(map(float, probability))
    places = [
        {
            "from": start - 0.5,
            "to": end - 0.5,
            "middle": (start + end - 1) / 2,
            "probability": number(share),
            "shown": f"{share:.0%}" if len(probability) <= _FEW or share == most else "",
        }
        for start, end, share in zip(edges[:-1], edges[1:], probability, strict=True)
    ]
    shade = (
        on(places)
        .mark_rect(color=FAMILY_COLOURS["local"], stroke=PAPER)
        .encode(
            x=_steps("from", reach, title="time step"),
            x2="to:Q",
            y=alt.value(0),
            y2=alt.value(_SERIES_HEIGHT),
            opacity=alt.Opacity("probability:Q", legend=None).scale(
                domain=[0, 1], range=[0.04, 0.6]
            ),
        )
    )
    shares = (
        on(places)
        .mark_text(y=-5, baseline="bottom", color=INK)
        .encode(x=_steps("middle", reach, title="time step"), text="shown:N")
    )
    panel = _series_panel(channels, reach, title="time step")
    panel.layer = [shade, *panel.layer, shares]
    return _stacked(title, panel)


def latent_figure(
    panels: Mapping[str, Floats],
    labels: Sequence[str],
    *,
    title: str = "Representations of the test series",
) -> alt.HConcatChart:
    """Representations (n, D) per panel, each on its own two principal axes, by class (Fig. 4)."""
    if not panels:
        raise TacitError("latent_figure needs at least one panel of representations.")
    size = (WIDTH - 60 * len(panels) - 10) / len(panels)
    charts: list[alt.LayerChart] = []
    for name, points in panels.items():
        if len(points) != len(labels):
            raise TacitError(f"latent_figure got {len(points)} points for {len(labels)} labels.")
        chart = scatter_chart(
            name,
            _by_class(principal_plane(points), labels),
            x="first axis",
            y="second axis" if not charts else "",
            size=size,
        )
        charts.append(chart.properties(title=heading(name, characters=30, size=11.5)))
    return alt.hconcat(*charts, title=heading(title), description=title, spacing=14)


def routing_figure(
    series: Floats,
    routing: Floats,
    *,
    patch_centres: Sequence[float],
    title: str = "Which expert reads which part",
) -> alt.VConcatChart:
    """One series above the routing weight (experts, patches) of its patches (Fig. 5)."""
    weights = np.asarray(routing, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[1] != len(patch_centres):
        raise TacitError(
            f"routing must be (experts, {len(patch_centres)} patches), got {weights.shape}."
        )
    channels = np.atleast_2d(np.asarray(series, dtype=np.float64))
    reach = (-0.5, channels.shape[1] - 0.5)
    half = 0.5 * _spacing(np.asarray(patch_centres, dtype=np.float64), 1.0)
    cells = [
        {
            "expert": f"expert {expert + 1}",
            "centre": float(centre),
            "from": float(centre) - half,
            "to": float(centre) + half,
            "weight": number(weights[expert, patch]),
        }
        for expert in range(len(weights))
        for patch, centre in enumerate(patch_centres)
    ]
    legend = alt.Legend(title="weight", orient="bottom", direction="horizontal")
    heat = (
        on(cells)
        .mark_rect(clip=True)
        .encode(
            x=_steps("from", reach, title="time step"),
            x2="to:Q",
            y=alt.Y("expert:N", title=None).sort(None),
            color=alt.Color("weight:Q", legend=legend).scale(domain=[0, 1], scheme="blues"),
        )
        .properties(width=_PLOT_WIDTH, height=alt.Step(22))
    )
    return _stacked(title, _series_panel(channels, reach), heat)


# What a release keeps has its family's colour; what it would be without noise is grey.
_BUDGET_COLOURS = {
    "label release, expected": FAMILY_COLOURS["local"],
    "place release": FAMILY_COLOURS["local"],
    "vector release": FAMILY_COLOURS["local"],
    "shapes release": FAMILY_COLOURS["local"],
    "before the noise": FAMILY_COLOURS["none"],
}


def budget_figure(
    epsilons: Sequence[float],
    accuracies: Mapping[str, Sequence[float]],
    *,
    ceiling: Sequence[float] | None = None,
    floor: float | None = None,
    title: str = "Accuracy against the budget",
) -> alt.LayerChart:
    """Accuracy by epsilon per method, under the ceiling of every total-epsilon release.

    `ceiling` holds for releases whose total is epsilon; a published curve above it shows that
    its nominal epsilon is no such total.
    """
    lines = []
    for name, values in accuracies.items():
        if len(values) != len(epsilons):
            raise TacitError(f"{name} has {len(values)} values for {len(epsilons)} epsilons.")
        points = list(zip(epsilons, values, strict=True))
        lines.append(Line(name, points, colour=_BUDGET_COLOURS.get(name)))
    if ceiling is not None:
        points = list(zip(epsilons, ceiling, strict=True))
        name = "ceiling at this total epsilon"
        lines.append(Line(name, points, colour=INK, dashed=True, dots=False))
    return line_chart(
        title,
        lines,
        x="epsilon (log scale)",
        y="accuracy",
        log_x=True,
        y_range=(0.0, 1.02),
        level=None if floor is None else ("always the commonest class", floor),
        level_left=True,
    )


def per_step(values: Floats, patch_starts: Sequence[int], patch_length: int, length: int) -> Floats:
    """Per time step, the mean value of the patches that cover it; NaN where none does."""
    total, count = np.zeros(length), np.zeros(length)
    for start, value in zip(patch_starts, values, strict=True):
        total[start : start + patch_length] += value
        count[start : start + patch_length] += 1
    return np.divide(total, count, out=np.full(length, np.nan), where=count > 0)


def principal_plane(points: Floats) -> Floats:
    """Coordinates (n, 2) on the two axes of largest variance; the sign is fixed."""
    centred = np.asarray(points, dtype=np.float64) - np.mean(points, axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    if len(axes) < 2:
        axes = np.vstack([axes, np.zeros((2 - len(axes), centred.shape[1]))])
    signs = np.where(axes[np.arange(2), np.abs(axes[:2]).argmax(axis=1)] < 0, -1.0, 1.0)
    return np.asarray(centred @ (axes[:2] * signs[:, None]).T)


def _check_patches(n_patches: int, **per_patch: Floats) -> None:
    for name, values in per_patch.items():
        if len(values) != n_patches:
            raise TacitError(f"{name} has {len(values)} values for {n_patches} patches.")


def _by_class(plane: Floats, labels: Sequence[str]) -> dict[str, list[tuple[float, float, str]]]:
    clouds: dict[str, list[tuple[float, float, str]]] = {}
    for (x, y), label in zip(plane.tolist(), labels, strict=True):
        clouds.setdefault(str(label), []).append((x, y, ""))
    return clouds


def _series_panel(channels: Floats, reach: Range, *, title: str | None = None) -> alt.LayerChart:
    """The lines of a series over the panels that explain it."""
    lines = [
        Line(f"channel {n}", list(enumerate(channel.tolist())), width=1.5, dots=False)
        for n, channel in enumerate(channels)
    ]
    up = alt.Y("y:Q", title="value", scale=axis_scale(room(channels.ravel())))
    across = _steps("x", reach, title=title)
    layers = line_layers(lines, across, up.axis(tickCount=5), legend=len(lines) > 1)
    return alt.LayerChart(layer=layers, width=_PLOT_WIDTH, height=_SERIES_HEIGHT)


def _steps(field: str, reach: Range, *, title: str | None = None) -> alt.X:
    """The time axis that all panels share; only the lowest names it."""
    axis = alt.Axis(tickCount=8, labels=title is not None, ticks=title is not None)
    return alt.X(f"{field}:Q", title=title, scale=axis_scale(reach), axis=axis)


def _stacked(title: str, *panels: alt.Chart | alt.LayerChart) -> alt.VConcatChart:
    own_colours = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
    return alt.VConcatChart(
        vconcat=list(panels),
        title=heading(title),
        description=title,
        spacing=8,
        resolve=own_colours,
    )


def _spacing(centres: Floats, single: float) -> float:
    """The distance between neighbouring centres; `single` where there is only one."""
    return float(np.diff(np.sort(centres)).min()) if len(centres) > 1 else float(single)
