"""Statistics over public random intervals: each owner computes them on its own series, at home.

Which intervals and statistics there are follows from the public seed and the length of the series,
never from anybody's data, so that drawing them tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Floats

REPRESENTATIONS = ("series", "differences", "spectrum")
STATISTICS = ("mean", "deviation", "rise", "median", "quartile range", "minimum", "maximum")
_SPREADS = ("deviation", "quartile range")
_LARGEST = 8.0  # deviations of a series; the rare value beyond is clipped
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Interval:
    """One statistic of one interval of the series, of its differences or of its spectrum."""

    representation: str
    start: int
    length: int
    statistic: str
    channel: int = 0

    @property
    def description(self) -> str:
        """In words, without the channel."""
        where = "frequencies" if self.representation == "spectrum" else "steps"
        end = self.start + self.length - 1
        return f"{self.statistic} of the {self.representation}, {where} {self.start} to {end}"

    def limits(self, series_length: int) -> tuple[float, float]:
        """The public range of the statistic."""
        spectrum = self.representation == "spectrum"
        largest = math.sqrt(series_length) if spectrum else _LARGEST
        if self.statistic == "rise":
            return -2.0 * largest, 2.0 * largest
        return (0.0 if spectrum or self.statistic in _SPREADS else -largest), largest


def draw_intervals(
    *, series_length: int, n_intervals: int, seed: int, n_channels: int = 1
) -> tuple[Interval, ...]:
    """All statistics of `n_intervals` random intervals, a third of them of each representation.

    The channels take turns.
    """
    rng = np.random.default_rng([seed, 11])
    found = []
    for i in range(n_intervals):
        representation = REPRESENTATIONS[i % len(REPRESENTATIONS)]
        n = _length_of(representation, series_length)
        shortest = min(_SHORTEST, n)
        length = int(rng.integers(shortest, max(shortest, n // 2) + 1))
        start = int(rng.integers(0, n - length + 1))
        channel = i // len(REPRESENTATIONS) % n_channels
        found += [Interval(representation, start, length, name, channel) for name in STATISTICS]
    return tuple(found)


def interval_values(X: Floats, intervals: Sequence[Interval]) -> Floats:
    """Each statistic (row) of each series (column) of X (n, N)."""
    forms = {name: _form(X, name) for name in {i.representation for i in intervals}}
    out = np.empty((len(intervals), len(X)))
    for row, interval in enumerate(intervals):
        stop = interval.start + interval.length
        window = forms[interval.representation][:, interval.start : stop]
        out[row] = _statistic(window, interval.statistic)
    return out


def _length_of(representation: str, series_length: int) -> int:
    if representation == "differences":
        return max(1, series_length - 1)
    return series_length // 2 + 1 if representation == "spectrum" else series_length


def _form(X: Floats, representation: str) -> Floats:
    if representation == "series":
        return X
    if representation == "spectrum":
        found: Floats = np.abs(np.fft.rfft(X, axis=1)) / math.sqrt(X.shape[1])
        return found
    return np.diff(X, axis=1) if X.shape[1] > 1 else np.zeros_like(X)


def _statistic(window: Floats, name: str) -> Floats:
    if name == "rise":
        place = np.arange(window.shape[1]) - (window.shape[1] - 1) / 2
        slope: Floats = window @ place / max(float(place @ place), 1.0)
        return slope * window.shape[1]
    if name == "quartile range":
        low, high = np.quantile(window, [0.25, 0.75], axis=1)
        return np.asarray(high - low)
    functions: dict[str, Any] = {
        "mean": np.mean,
        "deviation": np.std,
        "median": np.median,
        "minimum": np.min,
        "maximum": np.max,
    }
    return np.asarray(functions[name](window, axis=1))
