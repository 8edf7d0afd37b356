"""What a chart draws, read from the specification that the browser or the converter gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def layers(chart: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """The kind of mark and the rows of every layer, in the order of drawing."""
    whole = chart.to_dict()
    return [
        (layer["mark"]["type"], _rows(layer["data"], whole))
        for layer in _leaves(whole, data=None)
        if layer["data"] is not None
    ]


def rows(chart: Any, mark: str) -> list[dict[str, Any]]:
    """The rows of all layers of one kind of mark."""
    return [row for kind, found in layers(chart) if kind == mark for row in found]


def lines(chart: Any) -> dict[str, tuple[list[float], list[float]]]:
    """Per line its x and y values."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows(chart, "line"):
        xs, ys = found.setdefault(row["series"], ([], []))
        xs.append(row["x"])
        ys.append(row["y"])
    return found


def caption(chart: Any) -> str:
    """The text that `with_guarantee` wrote under the chart."""
    title = chart.to_dict()["title"]
    assert title["orient"] == "bottom"
    return " ".join(title["text"])


def _leaves(part: dict[str, Any], data: Any) -> Iterator[dict[str, Any]]:
    data = part.get("data", data)
    inner = [*part.get("layer", ()), *part.get("vconcat", ()), *part.get("hconcat", ())]
    for child in inner:
        yield from _leaves(child, data)
    if not inner:
        yield {**part, "data": data}


def _rows(data: dict[str, Any], whole: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        whole["datasets"][data["name"]] if "name" in data else data["values"]
    )
    return found
