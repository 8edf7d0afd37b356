"""Golden vectors: series with the features, label and place that every runtime must find.

The series are drawn from the public model (its mean and spread) with a fixed seed: no recording of
anybody goes into an export.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.local.exports.portable import PortableModel
from tacit.local.exports.reference import reference_features, reference_symbol

GOLDEN_FILE = "golden.json"
N_GOLDEN = 4
# The NumPy runtime sums float32 products in another order than the reference. A proportion may
# then count a step more or less, and a kernel may win or lose one: of 1e4 features a few.
NUMPY_TOLERANCE = 1e-4
NUMPY_TOLERANCE_SHARE = 1e-3  # of the features that may lie outside, by a step or so


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Golden:
    """One series (channels, T) with what the device computes from it before the noise."""

    series: Floats
    features: Floats32
    symbol: int


def golden_vectors(model: PortableModel, X: Sequence[Floats] | Floats) -> tuple[Golden, ...]:
    """What the reference says of these series."""
    return tuple(_golden(model, np.asarray(series, dtype=np.float64)) for series in X)


def golden_series(model: PortableModel, count: int = N_GOLDEN) -> list[Floats]:
    """Made-up series around the public mean: waves that wander, one with a flat stretch."""
    offset = model.body.offset.astype(np.float64)[:, None]
    spread = 1.0 / model.body.scale.astype(np.float64)[:, None]
    shape = (model.n_channels, model.n_timepoints)
    made = []
    for number in range(count):
        rng = np.random.default_rng(number)
        walk = rng.standard_normal(shape).cumsum(axis=1) / np.sqrt(shape[1])
        phase = np.linspace(0.0, 2.0 * np.pi * (number + 1), shape[1])
        series = offset + spread * (walk + np.sin(phase + rng.random((shape[0], 1))))
        if number == 1:
            series[:, shape[1] // 2 :] = series[:, shape[1] // 2 :][:, :1]
        made.append(series)
    return made


def golden_json(model: PortableModel, vectors: Sequence[Golden]) -> str:
    """The file that lies beside an export."""
    plain = {
        "format": "tacit-golden",
        "format_version": 1,
        "model": model.identity,
        "kind": model.kind,
        "features": "float32, little-endian, base64; bit-equal in the web and C runtimes",
        "numpy_tolerance": {"absolute": NUMPY_TOLERANCE, "share_outside": NUMPY_TOLERANCE_SHARE},
        "vectors": [_plain(model, vector) for vector in vectors],
    }
    return json.dumps(plain, allow_nan=False) + "\n"


def feature_hash(features: Floats32) -> int:
    """FNV-1a over the bits of the features, which a device can compare without storing them."""
    value = 0xCBF29CE484222325
    for byte in features.astype("<f4").tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def _golden(model: PortableModel, series: Floats) -> Golden:
    features = reference_features(model.body, series)
    symbol = reference_symbol(model, series, features)
    return Golden(series=series, features=features, symbol=symbol)


def _plain(model: PortableModel, vector: Golden) -> dict[str, Any]:
    label, place = divmod(vector.symbol, model.n_places)
    encoded = base64.b64encode(vector.features.astype("<f4").tobytes())
    return {
        "series": vector.series.tolist(),
        "features": encoded.decode(),
        "label": model.classes[label],
        "place": None if model.locator is None else place,
        "symbol": vector.symbol,
    }
