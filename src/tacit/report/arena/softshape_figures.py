"""Figures 3 to 5 of the DP-SoftShape paper from records: allocation, manifolds, routing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.report.arena.tables import Record, Section
from tacit.report.local_charts import allocation_figure, latent_figure, routing_figure
from tacit.report.page import Table, Text

_NOTE = (
    "One training for each picture, at nominal epsilon 0.1 and no guarantee. A silhouette near 0 "
    "says that classes overlap, near 1 that they lie apart, before the projection."
)


def figure_blocks(records: Sequence[Record]) -> Section:
    """Fig. 3 on CBF, Fig. 4 on SyntheticControl beside InceptionTime, Fig. 5 on Trace."""
    blocks: list[Any] = [Text(_NOTE, "DP-SoftShape, Figures 3 to 5")]
    blocks += [_allocation(r) for r in _of(records, "CBF")]
    planes = {_name(r): r for r in records if r["task"]["data"] == "SyntheticControl"}
    if planes:
        blocks += _manifolds(planes)
    blocks += [_routing(r) for r in _of(records, "Trace") if r["details"]["routing"]]
    return [], blocks


def _of(records: Sequence[Record], data: str) -> list[Record]:
    return [r for r in records if r["task"]["data"] == data and "alpha" in r["details"]]


def _name(record: Record) -> str:
    task = record["task"]
    if task["method"] == "inceptiontime-picture":
        return "InceptionTime, input noise"
    return f"DP-SoftShape, preset {task['options'].get('preset', 'tuned')}"


def _allocation(record: Record) -> Any:
    found = record["details"]
    return allocation_figure(
        _numbers(found["series"]),
        patch_starts=found["patch_starts"],
        patch_length=found["patch_length"],
        alpha=_numbers(found["alpha"]),
        noise_scale=_numbers(found["noise_scale"]),
        title=f"Fig. 3: what is kept and what is blurred, {_name(record)}",
    )


def _manifolds(planes: dict[str, Record]) -> list[Any]:
    first = next(iter(planes.values()))["details"]["labels"]
    figure = latent_figure(
        {name: np.asarray(r["details"]["plane"]) for name, r in planes.items()},
        first,
        title="Fig. 4: representations of SyntheticControl under noise (t-SNE)",
    )
    rows = [
        (name, f"{r['accuracy']:.3f}", f"{r['details']['silhouette']:.3f}")
        for name, r in planes.items()
    ]
    return [figure, Table(("Fig. 4", "accuracy", "silhouette"), rows)]


def _routing(record: Record) -> Any:
    found = record["details"]
    centres = [start + found["patch_length"] / 2 for start in found["patch_starts"]]
    return routing_figure(
        _numbers(found["series"]),
        _numbers(found["routing"]),
        patch_centres=centres,
        title=f"Fig. 5: which expert reads which part, {_name(record)}",
    )


def _numbers(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)  # None becomes NaN
