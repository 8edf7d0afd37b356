"""What P0 ends with: shapelets of its own series, intervals, words, and a classifier over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Cube, Floats, Integers
from tacit.errors import BundleError, TacitError
from tacit.silo.fedst.candidates import Encoding, choose_encoding, encode
from tacit.silo.fedst.classifiers.forest import Forest, forest_from_arrays
from tacit.silo.fedst.classifiers.linear import Logistic, logistic_from_arrays
from tacit.silo.fedst.classifiers.ridge import Ridge, ridge_from_arrays
from tacit.silo.fedst.dictionary import Word
from tacit.silo.fedst.distances import best_windows, own_distances, rescale_for, unit_of
from tacit.silo.fedst.public_features import PublicFeatures, channel_words, public_features
from tacit.silo.fedst.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapelet:
    """One shapelet: where it was cut from P0's series, and its values as they are compared."""

    series: int
    start: int
    length: int
    values: Floats
    channel: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeletModel:
    """The features kept, best first, and the classifier trained on them.

    `items[k]` is -1 for a shapelet, else the place of feature k in `public`; shapelets have
    windows, the others an empty one.
    """

    encoding: Encoding
    series: NDArray[np.intp]
    channel: NDArray[np.intp]
    start: NDArray[np.intp]
    windows: tuple[Integers, ...]
    items: NDArray[np.intp]
    public: PublicFeatures
    classifier: Forest | Logistic | Ridge

    @property
    def shapelets(self) -> list[Shapelet]:
        """All shapelets, best first."""
        return [self.shapelet(k) for k in np.flatnonzero(self.items < 0)]

    def shapelet(self, k: int) -> Shapelet:
        """Feature k, which is a shapelet."""
        window = self.windows[k]
        return Shapelet(
            series=int(self.series[k]),
            start=int(self.start[k]),
            length=len(window),
            values=window / 2.0**self.encoding.fraction_bits,
            channel=int(self.channel[k]),
        )

    def channel_of(self, k: int) -> int:
        """The channel that feature k looks at."""
        if self.items[k] >= 0:
            return int(self.public.items[self.items[k]].channel)
        return int(self.channel[k])

    def kind(self, k: int) -> str:
        """ "shapelet", "interval" or "word"."""
        if self.items[k] < 0:
            return "shapelet"
        return "word" if isinstance(self.public.items[self.items[k]], Word) else "interval"

    def description(self, k: int) -> str:
        """Feature k in words."""
        if self.items[k] >= 0:
            return self.public.describe(int(self.items[k]))
        where = channel_words(int(self.channel[k]), self.public.n_channels)
        found = f"shapelet of {len(self.windows[k])} steps from series {self.series[k]}"
        return f"{found}, step {self.start[k]}{where}"

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse a series that has not the channels and the length of the training."""
        known = (self.public.n_channels, self.encoding.series_length)
        if shape != known:
            raise TacitError(
                f"series must have the channels and length {known} of the training, got {shape}."
            )

    def features(self, X: Cube) -> Integers:
        """Rescaled distances (K, n) of series (n, channels, N), the integers of the training."""
        encoded = encode(X, self.encoding)
        out = np.empty((len(self.windows), len(X)), dtype=np.int64)
        for (channel, length), which in self._runs().items():
            cut = np.stack([self.windows[k] for k in which])
            rescale = rescale_for(length, self.encoding)
            out[which] = own_distances(encoded[:, channel], cut, rescale)
        chosen = np.flatnonzero(self.items >= 0)
        if chosen.size:
            out[chosen] = self.public.chosen(self.items[chosen]).levels(encoded)
        return out

    def natural(self, features: Integers) -> Floats:
        """What features (K, n) mean: squared distances, or the values of statistics and words."""
        out: Floats = features * self.units()[:, None]
        chosen = np.flatnonzero(self.items >= 0)
        if chosen.size:
            out[chosen] = self.public.chosen(self.items[chosen]).natural(features[chosen])
        return out

    def matches(self, x: Floats) -> tuple[NDArray[np.intp], Floats]:
        """For one series (channels, N): where each feature lies, and its distance or value."""
        encoded = encode(x[None], self.encoding)
        where = np.empty(len(self.windows), dtype=np.intp)
        distance = np.empty(len(self.windows))
        for (channel, _), which in self._runs().items():
            cut = np.stack([self.windows[k] for k in which])
            best, place = best_windows(encoded[:, channel], cut)
            where[which] = place[:, 0]
            distance[which] = best[:, 0] / 4.0**self.encoding.fraction_bits
        for k in np.flatnonzero(self.items >= 0):
            where[k], _ = self.public.place(int(self.items[k]), encoded[0])
            distance[k] = self.public.chosen([int(self.items[k])]).values(encoded)[0, 0]
        return where, distance

    def units(self) -> Floats:
        """What one step of each feature means in squared units of the series."""
        return np.array([unit_of(len(w), self.encoding) if len(w) else 1.0 for w in self.windows])

    def probabilities(self, X: Cube) -> Floats:
        """Class probabilities (n, C)."""
        features = self.features(X)
        if isinstance(self.classifier, Forest):
            return self.classifier.votes(features)
        return self.classifier.probabilities(features)

    def _runs(self) -> dict[tuple[int, int], list[int]]:
        """The shapelets of each channel and length."""
        runs: dict[tuple[int, int], list[int]] = {}
        for k in np.flatnonzero(self.items < 0).tolist():
            runs.setdefault((int(self.channel[k]), len(self.windows[k])), []).append(k)
        return runs


def model_from(
    arrays: Mapping[str, NDArray[Any]],
    *,
    own: Integers,
    encoding: Encoding,
    n_classes: int,
    public: PublicFeatures,
) -> ShapeletModel:
    """P0's model from the arrays of a run and its own encoded series, or refuse."""
    try:
        series, start = arrays["series"].astype(np.intp), arrays["start"].astype(np.intp)
        length = arrays["length"].astype(np.intp)
        channel = arrays.get("channel", np.zeros(len(series))).astype(np.intp)
        items = arrays["item"].astype(np.intp) if "item" in arrays else np.full(len(series), -1)
        if items.size and items.max() >= len(public.items):
            raise ValueError(f"item {items.max()} of {len(public.items)}")
        windows = tuple(
            own[s, c, p : p + n] if n > 0 else own[0, 0, :0]
            for s, c, p, n in zip(series, channel, start, length, strict=True)
        )
        classifier = _classifier_from(arrays, n_classes=n_classes)
    except (KeyError, IndexError, ValueError) as error:
        raise BundleError(f"these arrays are not a shapelet model: {error!r}.") from error
    return ShapeletModel(
        encoding=encoding,
        series=series,
        channel=channel,
        start=start,
        windows=windows,
        items=items,
        public=public,
        classifier=classifier,
    )


def trained_model(
    arrays: Mapping[str, NDArray[Any]], *, own: Cube, settings: Settings, n_classes: int
) -> ShapeletModel:
    """P0's model from the arrays of a run under `settings` and its own series (n, channels, N)."""
    encoding = choose_encoding(
        series_length=own.shape[2],
        normalise=settings.normalise,
        value_bound=settings.value_bound,
        distance_bits=int(arrays["distance_bits"][0]) if "distance_bits" in arrays else 20,
    )
    return model_from(
        arrays,
        own=encode(own, encoding),
        encoding=encoding,
        n_classes=n_classes,
        public=public_features(settings, encoding, n_channels=own.shape[1]),
    )


def _classifier_from(
    arrays: Mapping[str, NDArray[Any]], *, n_classes: int
) -> Forest | Logistic | Ridge:
    if "ridge_weights" in arrays:
        return ridge_from_arrays(arrays)
    if "weights" in arrays:
        return logistic_from_arrays(arrays)
    return forest_from_arrays(arrays, n_classes=n_classes)
