"""Features that every owner computes at home: intervals and words, chosen publicly, as integers.

A value in its public range becomes a level from 0 to 2^(bits/2) - 1 and is shared as the square of
it: the classifiers take roots of all features, because those of shapelets are squared distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.silo.fedst.candidates import Encoding
from tacit.silo.fedst.dictionary import Word, all_words, count_words, first_place, word_values
from tacit.silo.fedst.intervals import STATISTICS, Interval, draw_intervals, interval_values
from tacit.silo.fedst.settings import Settings

Item = Interval | Word


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFeatures:
    """Intervals and words for series of one encoding."""

    items: tuple[Item, ...]
    encoding: Encoding
    n_channels: int = 1

    def levels(self, encoded: Integers) -> Integers:
        """Shared integers (items, n) of encoded series (n, channels, N)."""
        low, high = self._limits()
        share = (self.values(encoded) - low) / (high - low)
        largest = 2 ** (self.encoding.distance_bits // 2) - 1
        levels: Integers = np.rint(np.clip(share, 0.0, 1.0) * largest).astype(np.int64)
        return levels**2

    def values(self, encoded: Integers) -> Floats:
        """The statistics themselves (items, n), in deviations of a series."""
        X = self._series(encoded)
        out = np.empty((len(self.items), len(X)))
        for channel in {item.channel for item in self.items}:
            here = {i: item for i, item in enumerate(self.items) if item.channel == channel}
            intervals = {i: item for i, item in here.items() if isinstance(item, Interval)}
            words = {i: item for i, item in here.items() if isinstance(item, Word)}
            if intervals:
                out[list(intervals)] = interval_values(X[:, channel], list(intervals.values()))
            if words:
                out[list(words)] = word_values(X[:, channel], list(words.values()))
        return out

    def describe(self, item: int) -> str:
        """An item in words, with its channel if there are several."""
        found = self.items[item]
        return found.description + channel_words(found.channel, self.n_channels)

    def least_deviations(self) -> Floats:
        """The smallest deviation of each item's level by which a classifier should divide it.

        A word that P0's own few series hardly hold has next to no deviation there; divided by it,
        one occurrence elsewhere would drown all other features. So it is at least one occurrence.
        """
        low, high = self._limits()
        units = [[1.0 if isinstance(item, Word) else 0.0] for item in self.items]
        largest = 2 ** (self.encoding.distance_bits // 2) - 1
        found: Floats = (np.array(units).reshape(-1, 1) / (high - low) * largest)[:, 0]
        return found

    def natural(self, levels: Integers) -> Floats:
        """What shared integers (items, n) mean, to the precision of a level."""
        low, high = self._limits()
        largest = 2 ** (self.encoding.distance_bits // 2) - 1
        found: Floats = low + np.sqrt(levels) / largest * (high - low)
        return found

    def place(self, item: int, encoded: Integers) -> tuple[int, Floats]:
        """Where in an encoded series (channels, N) an item lies, and the values there.

        The place is -1 for nowhere.
        """
        found = self.items[item]
        x = encoded[found.channel] / 2.0**self.encoding.fraction_bits
        if isinstance(found, Word):
            start = first_place(self._series(encoded)[found.channel], found)
            return start, x[max(start, 0) : max(start, 0) + (found.window if start >= 0 else 0)]
        if found.representation == "spectrum":
            return 0, x
        extra = 1 if found.representation == "differences" else 0
        return found.start, x[found.start : found.start + found.length + extra]

    def chosen(self, which: Sequence[int] | NDArray[np.intp]) -> PublicFeatures:
        """Some of the items only."""
        return replace(self, items=tuple(self.items[i] for i in which))

    def _series(self, encoded: Integers) -> Floats:
        scale = 2.0**self.encoding.fraction_bits
        if not self.encoding.normalise:
            scale *= self.encoding.value_bound / 4  # a raw series then spans -4 to 4
        return np.asarray(encoded / scale)

    def _limits(self) -> tuple[Floats, Floats]:
        limits = [item.limits(self.encoding.series_length) for item in self.items]
        low, high = np.array(limits, dtype=np.float64).reshape(-1, 2).T
        return low[:, None], high[:, None]


def channel_words(channel: int, n_channels: int) -> str:
    """Which channel, to be put after a description; nothing to say if there is only one."""
    return f", channel {channel}" if n_channels > 1 else ""


def count_items(settings: Settings, *, series_length: int, n_channels: int = 1) -> int:
    """How many items `public_features` gives, without making them."""
    n_items = 0
    if "intervals" in settings.features:
        n_items += settings.n_intervals * len(STATISTICS)
    if "dictionary" in settings.features:
        n_items += count_words(series_length=series_length, n_channels=n_channels)
    return n_items


@lru_cache(maxsize=4)
def public_features(
    settings: Settings, encoding: Encoding, *, n_channels: int = 1
) -> PublicFeatures:
    """The items of the settings' kinds, intervals first."""
    items: tuple[Item, ...] = ()
    length = encoding.series_length
    if "intervals" in settings.features:
        items += draw_intervals(
            series_length=length,
            n_intervals=settings.n_intervals,
            seed=settings.seed,
            n_channels=n_channels,
        )
    if "dictionary" in settings.features:
        items += all_words(series_length=length, n_channels=n_channels)
    return PublicFeatures(items=items, encoding=encoding, n_channels=n_channels)
