"""Pictures of the local family, from plain arrays: the paper's Fig. 3-5 and accuracy by budget.

Every function returns a Plotly figure; `tacit.report.figure.with_guarantee` adds the guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.report.figure import FAMILY_COLOURS, new_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

_INK = "#222222"


def allocation_figure(
    series: Floats,
    *,
    patch_starts: Sequence[int],
    patch_length: int,
    alpha: Floats,
    noise_scale: Floats,
    title: str = "What is kept and what is blurred",
) -> go.Figure:
    """One series (T,) or (channels, T) above the score and noise scale of each patch (Fig. 3).

    Shading is the score of the patches that cover a step: dark is kept, light is blurred.
    """
    from plotly.subplots import make_subplots

    channels = np.atleast_2d(np.asarray(series, dtype=np.float64))
    _check_patches(len(patch_starts), alpha=alpha, noise_scale=noise_scale)
    figure = make_subplots(
        rows=3, cols=1, shared_xaxes=True, row_heights=[0.6, 0.15, 0.25], vertical_spacing=0.03
    )
    for number, channel in enumerate(channels):
        figure.add_scatter(y=channel, name=f"channel {number}", line={"width": 1.5}, row=1, col=1)
    cover = per_step(alpha, patch_starts, patch_length, channels.shape[1])
    figure.add_heatmap(
        z=[cover], colorscale="Teal", zmin=0, zmax=1, showscale=False, name="score", row=2, col=1
    )
    centres = np.asarray(patch_starts) + patch_length / 2
    figure.add_bar(
        x=centres,
        y=np.asarray(noise_scale),
        name="noise scale",
        marker_color=FAMILY_COLOURS["local"],
        row=3,
        col=1,
    )
    _common_look(figure, title)
    figure.update_yaxes(title_text="value", row=1, col=1)
    figure.update_yaxes(title_text="score", showticklabels=False, row=2, col=1)
    figure.update_yaxes(title_text="noise scale", rangemode="tozero", row=3, col=1)
    figure.update_xaxes(title_text="time step", row=3, col=1)
    return figure


def latent_figure(
    panels: Mapping[str, Floats],
    labels: Sequence[str],
    *,
    title: str = "Representations of the test series",
) -> go.Figure:
    """Representations (n, D) per panel, each on its own two principal axes, by class (Fig. 4)."""
    from plotly.subplots import make_subplots

    if not panels:
        raise TacitError("latent_figure needs at least one panel of representations.")
    names = np.asarray(labels)
    figure = make_subplots(rows=1, cols=len(panels), subplot_titles=list(panels))
    for column, points in enumerate(panels.values(), start=1):
        if len(points) != len(names):
            raise TacitError(f"latent_figure got {len(points)} points for {len(names)} labels.")
        plane = principal_plane(points)
        for index, name in enumerate(dict.fromkeys(names.tolist())):
            chosen = names == name
            figure.add_scatter(
                x=plane[chosen, 0],
                y=plane[chosen, 1],
                mode="markers",
                name=str(name),
                legendgroup=str(name),
                showlegend=column == 1,
                marker={"size": 6, "color": _class_colour(index)},
                row=1,
                col=column,
            )
    _common_look(figure, title)
    figure.update_xaxes(title_text="first axis")
    figure.update_yaxes(title_text="second axis", col=1)
    return figure


def routing_figure(
    series: Floats,
    routing: Floats,
    *,
    patch_centres: Sequence[float],
    title: str = "Which expert reads which part",
) -> go.Figure:
    """One series above the routing weight (experts, patches) of its patches (Fig. 5)."""
    from plotly.subplots import make_subplots

    weights = np.asarray(routing, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[1] != len(patch_centres):
        raise TacitError(
            f"routing must be (experts, {len(patch_centres)} patches), got {weights.shape}."
        )
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.5, 0.5], vertical_spacing=0.05
    )
    for number, channel in enumerate(np.atleast_2d(series)):
        figure.add_scatter(y=channel, name=f"channel {number}", line={"width": 1.5}, row=1, col=1)
    figure.add_heatmap(
        x=list(patch_centres),
        y=[f"expert {number + 1}" for number in range(len(weights))],
        z=weights,
        colorscale="Blues",
        zmin=0,
        zmax=1,
        colorbar={"title": "weight", "len": 0.5, "y": 0.22},
        row=2,
        col=1,
    )
    _common_look(figure, title)
    figure.update_yaxes(title_text="value", row=1, col=1)
    figure.update_xaxes(title_text="time step", row=2, col=1)
    return figure


def budget_figure(
    epsilons: Sequence[float],
    accuracies: Mapping[str, Sequence[float]],
    *,
    ceiling: Sequence[float] | None = None,
    floor: float | None = None,
    title: str = "Accuracy against the budget",
) -> go.Figure:
    """Accuracy by epsilon per method, under the ceiling of every total-epsilon release.

    `ceiling` holds for releases whose total is epsilon; a published curve above it shows that
    its nominal epsilon is no such total.
    """
    figure = new_figure(title, x="epsilon (log scale)", y="accuracy")
    for name, values in accuracies.items():
        if len(values) != len(epsilons):
            raise TacitError(f"{name} has {len(values)} values for {len(epsilons)} epsilons.")
        figure.add_scatter(x=list(epsilons), y=list(values), mode="lines+markers", name=name)
    if ceiling is not None:
        figure.add_scatter(
            x=list(epsilons),
            y=list(ceiling),
            name="ceiling at this total epsilon",
            line={"dash": "dash", "color": _INK},
        )
    if floor is not None:
        figure.add_hline(y=floor, line_dash="dot", annotation_text="majority class")
    figure.update_xaxes(type="log", tickvals=list(epsilons), ticktext=[f"{e:g}" for e in epsilons])
    figure.update_yaxes(range=[0, 1.02])
    return figure


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


def _class_colour(index: int) -> str:
    from plotly.colors import qualitative

    palette: list[str] = qualitative.Safe
    return palette[index % len(palette)]


def _common_look(figure: go.Figure, title: str) -> None:
    figure.update_layout(
        title=title,
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "size": 13},
        margin={"l": 60, "r": 20, "t": 60, "b": 60},
    )
