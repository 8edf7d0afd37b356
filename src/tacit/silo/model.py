"""What P0 ends with: shapelets cut from its own series, and a classifier over their distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.errors import BundleError
from tacit.silo.fedst.candidates import Encoding, choose_encoding, encode
from tacit.silo.fedst.distances import best_windows, own_distances, rescale_for, unit_of
from tacit.silo.fedst.forest import Forest, forest_from_arrays
from tacit.silo.fedst.linear import Logistic, logistic_from_arrays
from tacit.silo.fedst.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapelet:
    """One shapelet: where it was cut from P0's series, and its values as they are compared."""

    series: int
    start: int
    length: int
    values: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeletModel:
    """Shapelets, best first, and the classifier trained on distances to them."""

    encoding: Encoding
    series: NDArray[np.intp]
    start: NDArray[np.intp]
    windows: tuple[Integers, ...]
    classifier: Forest | Logistic

    @property
    def shapelets(self) -> list[Shapelet]:
        """All shapelets, best first."""
        scale = 2.0**self.encoding.fraction_bits
        return [
            Shapelet(series=int(s), start=int(p), length=len(w), values=w / scale)
            for s, p, w in zip(self.series, self.start, self.windows, strict=True)
        ]

    def features(self, X: Floats) -> Integers:
        """Rescaled distances (K, n) of series (n, N), the integers that the training used."""
        encoded = encode(X, self.encoding)
        out = np.empty((len(self.windows), len(X)), dtype=np.int64)
        for length, which in self._by_length().items():
            cut = np.stack([self.windows[k] for k in which])
            out[which] = own_distances(encoded, cut, rescale_for(length, self.encoding))
        return out

    def matches(self, x: Floats) -> tuple[NDArray[np.intp], Floats]:
        """For one series: where each shapelet matches best, and the distance in its own units."""
        encoded = encode(x[None, :], self.encoding)
        where = np.empty(len(self.windows), dtype=np.intp)
        distance = np.empty(len(self.windows))
        for which in self._by_length().values():
            cut = np.stack([self.windows[k] for k in which])
            best, place = best_windows(encoded, cut)
            where[which] = place[:, 0]
            distance[which] = best[:, 0] / 4.0**self.encoding.fraction_bits
        return where, distance

    def units(self) -> Floats:
        """What one step of each feature means in squared units of the series."""
        return np.array([unit_of(len(w), self.encoding) for w in self.windows])

    def probabilities(self, X: Floats) -> Floats:
        """Class probabilities (n, C)."""
        features = self.features(X)
        if isinstance(self.classifier, Forest):
            return self.classifier.votes(features)
        return self.classifier.probabilities(features)

    def _by_length(self) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for k, window in enumerate(self.windows):
            groups.setdefault(len(window), []).append(k)
        return groups


def model_from(
    arrays: Mapping[str, NDArray[Any]], *, own: Integers, encoding: Encoding, n_classes: int
) -> ShapeletModel:
    """P0's model from the arrays of a run and its own encoded series, or refuse."""
    try:
        series, start = arrays["series"].astype(np.intp), arrays["start"].astype(np.intp)
        length = arrays["length"].astype(np.intp)
        windows = tuple(own[s, p : p + n] for s, p, n in zip(series, start, length, strict=True))
        classifier = _classifier_from(arrays, n_classes=n_classes)
    except (KeyError, IndexError, ValueError) as error:
        raise BundleError(f"these arrays are not a shapelet model: {error!r}.") from error
    return ShapeletModel(
        encoding=encoding, series=series, start=start, windows=windows, classifier=classifier
    )


def trained_model(
    arrays: Mapping[str, NDArray[Any]], *, own: Floats, settings: Settings, n_classes: int
) -> ShapeletModel:
    """P0's model from the arrays of a run under `settings` and its own series (n, 1, N)."""
    encoding = choose_encoding(
        series_length=own.shape[2],
        normalise=settings.normalise,
        value_bound=settings.value_bound,
    )
    encoded = encode(own[:, 0], encoding)
    return model_from(arrays, own=encoded, encoding=encoding, n_classes=n_classes)


def _classifier_from(arrays: Mapping[str, NDArray[Any]], *, n_classes: int) -> Forest | Logistic:
    if "weights" in arrays:
        return logistic_from_arrays(arrays)
    return forest_from_arrays(arrays, n_classes=n_classes)
