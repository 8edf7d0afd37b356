"""What all figures share: one look, a guarantee caption, export to picture files."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.guarantee import Guarantee

if TYPE_CHECKING:
    import plotly.graph_objects as go

FAMILY_COLOURS = {"local": "#3b6fb6", "silo": "#3f8f5b", "fleet": "#b6633b", "none": "#7a7a7a"}
_CAPTION_WIDTH = 110


def new_figure(title: str, *, x: str, y: str) -> go.Figure:
    """An empty figure in the common look, with named axes."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        title=title,
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "size": 13},
        margin={"l": 60, "r": 20, "t": 60, "b": 60},
        xaxis_title=x,
        yaxis_title=y,
    )
    return figure


def with_guarantee(figure: go.Figure, guarantee: Guarantee) -> go.Figure:
    """Put the guarantee's sentence under the figure, so that it travels with the picture."""
    lines = textwrap.wrap(guarantee.sentence, _CAPTION_WIDTH)
    figure.add_annotation(
        text="<br>".join(lines),
        xref="paper",
        yref="paper",
        x=0,
        y=0,
        yshift=-55,
        xanchor="left",
        yanchor="top",
        align="left",
        showarrow=False,
        font={"size": 10, "color": "#444444"},
    )
    figure.update_layout(
        margin={"b": 75 + 14 * len(lines)}, meta={"guarantee": guarantee.to_dict()}
    )
    return figure


def save_picture(figure: go.Figure, path: Path) -> Path:
    """Write .png or .svg (needs kaleido), or a self-contained .html."""
    kind = path.suffix.lower().lstrip(".")
    if kind == "html":
        figure.write_html(path, include_plotlyjs=True)
        return path
    if kind not in {"png", "svg"}:
        raise TacitError(f"{path.name}: pictures are written as .html, .png or .svg.")
    try:
        figure.write_image(path, format=kind)
    except (ValueError, RuntimeError, ImportError) as error:
        raise TacitError(
            f"{path.name} needs kaleido and a Chrome browser; install both, or write .html."
        ) from error
    return path
