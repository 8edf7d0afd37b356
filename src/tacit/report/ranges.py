"""Numbers of charts: what JSON can hold, from where to where they reach, and how they are told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Range = tuple[float, float]


def number(value: float) -> float | None:
    """A plain float for JSON; None, which leaves a gap, for NaN and infinities."""
    plain = float(value)
    return plain if math.isfinite(plain) else None


def room(values: Iterable[float]) -> Range | None:
    """The values' range with a margin, which stays inside 0 to 1 for accuracies."""
    found = extent(values)
    if found is None:
        return None
    low, high = found
    margin = 0.05 * max(high - low, 0.02)
    if low >= 0.0 and high <= 1.0:
        return max(0.0, low - margin), min(1.0, high + margin)
    return low - margin, high + margin


def extent(values: Iterable[float]) -> Range | None:
    """The smallest and the largest finite value; None if there is none."""
    finite = [float(value) for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else None


def marks(xs: Sequence[float]) -> list[float]:
    """The places of the points, if those are few."""
    distinct = sorted({float(x) for x in xs})
    return distinct if len(distinct) <= 8 else []


def bar_range(values: Sequence[float], *, log: bool) -> Range:
    """From zero to the largest value; on a logarithmic axis from a tenth of the smallest."""
    if log:
        low, high = extent(value for value in values if value > 0.0) or (1.0, 10.0)
        return low / 10.0, high
    low, high = extent(values) or (0.0, 1.0)
    return min(0.0, low), max(0.0, high) or 1.0


def said(name: str, at: float, value: float, what: str = "") -> str:
    """What a dot says when it is pointed at."""
    return f"{name}, {what}: {at:.3f}, {value:.3f}" if what else f"{name}: {at:.4g}, {value:.4g}"


def percent_of(value: float) -> str:
    """A share beside its bar."""
    return f"{value:.1%}" if value > 1e-4 else f"{value:.1g}"
