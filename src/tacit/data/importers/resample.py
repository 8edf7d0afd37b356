"""Channels seen through a change: codes for no value, short gaps filled, another rate.

They are still read piece by piece.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tacit.arrays import Floats
from tacit.data.importers.options import same_rate
from tacit.data.importers.recording import Batch, Recording, Signal
from tacit.errors import TacitError

_LARGEST_FACTOR = 10_000
_WORST_ERROR = 1e-6  # of the rate: 0.09 s a day


def filled(signal: Signal, *, max_gap: int) -> Signal:
    """The channel with gaps of at most `max_gap` samples filled by straight lines."""

    def read(start: int, stop: int) -> Floats:
        first, last = max(0, start - max_gap - 1), min(signal.n_samples, stop + max_gap + 1)
        values = fill_gaps(signal.read(first, last), max_gap=max_gap)
        return values[start - first : stop - first]

    return replace(signal, read=read)


def fill_gaps(values: Floats, *, max_gap: int) -> Floats:
    """Fill runs of NaN that are short enough and have values on both sides."""
    missing = ~np.isfinite(values)
    if not missing.any() or missing.all():
        return values
    edges = np.flatnonzero(np.diff(np.concatenate(([0], missing.astype(np.int8), [0]))))
    result = values.copy()
    for start, stop in edges.reshape(-1, 2).tolist():
        if stop - start <= max_gap and start > 0 and stop < len(values):
            result[start:stop] = np.interp(
                np.arange(start, stop), (start - 1, stop), (values[start - 1], values[stop])
            )
    return result


def resampled(signal: Signal, rate: float | None, *, where: str) -> Signal:
    """The channel at another rate: low-pass and interpolation by a polyphase filter."""
    if rate is None or same_rate(signal.rate, rate):
        return signal
    if signal.rate is None:
        raise TacitError(
            f"{where} does not say its rate, so it cannot be resampled to {rate:g} Hz; "
            "pass --source-rate HZ."
        )
    up, down = _ratio(signal.rate, rate, where)
    margin = 10 * math.ceil(max(1.0, down / up)) + 2  # the filter reaches this far

    def read(start: int, stop: int) -> Floats:
        first = max(0, start * down // up - margin) // down * down
        last = min(signal.n_samples, -(-stop * down // up) + margin)
        offset = first // down * up
        return _filter(signal.read(first, last), up, down)[start - offset : stop - offset]

    return replace(signal, rate=rate, n_samples=signal.n_samples * up // down, read=read)


def _ratio(old: float, new: float, where: str) -> tuple[int, int]:
    exact = Fraction(new) / Fraction(old)
    ratio = exact.limit_denominator(_LARGEST_FACTOR)
    if not ratio or abs(ratio - exact) > _WORST_ERROR * exact or ratio.numerator > _LARGEST_FACTOR:
        raise TacitError(
            f"{where} has {old:g} Hz, which cannot be resampled to {new:g} Hz by a ratio of whole "
            f"numbers up to {_LARGEST_FACTOR}; choose another --rate."
        )
    return ratio.numerator, ratio.denominator


def _filter(values: Floats, up: int, down: int) -> Floats:
    from scipy.signal import resample_poly

    missing = ~np.isfinite(values)
    if not missing.any():
        # Zeros beyond the ends would bend a signal that does not lie around zero.
        result: Floats = resample_poly(values, up, down, padtype="edge")
        return result
    if missing.all():
        return np.full(-(-len(values) * up // down), np.nan)
    places = np.arange(len(values))
    whole = np.interp(places, places[~missing], values[~missing])
    result = np.asarray(resample_poly(whole, up, down, padtype="edge"))
    # A result is missing if any sample is that lies within one step, old or new, of it.
    reach = max(1.0, down / up)
    source = np.arange(len(result)) * down / up
    first = np.clip(np.floor(source - reach).astype(np.int64) + 1, 0, len(values))
    last = np.clip(np.ceil(source + reach).astype(np.int64), 0, len(values))
    count = np.concatenate(([0], np.cumsum(missing)))
    result[count[last] > count[first]] = np.nan
    return result


def without_codes(values: Floats, codes: tuple[float, ...]) -> Floats:
    """Samples with NaN where one of the numbers stands that mean a missing value."""
    missing = np.zeros(values.shape, dtype=np.bool_)
    for code in codes:
        # The scale of a header may turn -9999 into -9998.9999.
        missing |= np.isclose(values, code, rtol=1e-6, atol=0.0)
    return np.where(missing, np.nan, values) if missing.any() else values


def with_missing(item: Recording | Batch, codes: tuple[float, ...]) -> Recording | Batch:
    """A recording in which some numbers stand for missing values."""
    if not codes:
        return item
    if isinstance(item, Batch):
        return replace(item, X=without_codes(np.asarray(item.X, dtype=np.float64), codes))
    return replace(item, signals=tuple(_signal_without(signal, codes) for signal in item.signals))


def _signal_without(signal: Signal, codes: tuple[float, ...]) -> Signal:
    def read(start: int, stop: int) -> Floats:
        return without_codes(signal.read(start, stop), codes)

    return replace(signal, read=read)
