"""Frozen features from a public seed: nothing in them is learned from anybody's data.

A window becomes per-channel statistics, spectral bands, correlations between channels and the
proportion of positive values under random kernels (PPV). They are standardised and partly
decorrelated with the mean and covariance of *generated* signals, drawn from the same public seed,
so that not a single data statistic is in them. Every row has norm 1 and ends with the constant
that carries the bias. The noise will be equally large in all coordinates, so what counts is how
much of a row's energy tells classes apart; full decorrelation would spread it thin.

NumPy only: clients carry this module.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Literal

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.errors import TacitError, check_at_least
from tacit.features.counting import count_true
from tacit.system.memory import return_memory
from tacit.system.threads import on_all_cores

PUBLIC_SEED = 20230
FEATURE_VERSION = 2  # raised when equal seeds give other features, so that old models are refused
_KERNEL_LENGTH = 9
_DILATIONS = (1, 2, 4, 8, 16)
_N_BANDS = 8
_FLOOR = 1e-2  # below this a spread counts as silence; keeps the logarithms finite
FeatureKind = Literal["fine", "coarse"]
FEATURE_KINDS: tuple[FeatureKind, ...] = ("fine", "coarse")


@dataclass(frozen=True, slots=True)
class _Balance:
    """How the energy of a row is spread over directions.

    `ridge` is that of the public decorrelation, in units of a variance; `weights` are those of
    statistics, bands, correlations and proportions before it, which leaves more of heavier ones.
    """

    ridge: float
    weights: tuple[float, float, float, float]


# Chosen on public data: docs/decisions/2026-11-16-fleet-defaults.md and, for noisy runs,
# docs/decisions/2026-11-18-fleet-small-epsilons.md.
_BALANCE: dict[FeatureKind, _Balance] = {
    "fine": _Balance(0.5, (3.0, 2.0, 0.5, 1.0)),
    "coarse": _Balance(10.0, (6.0, 4.0, 1.0, 1.0)),
}
_CHUNK_VALUES = 2**20  # of a block of windows, as they are and unfolded: what a cache holds
_PIECE_VALUES = 2**15  # of a piece of generated signals: a device has little memory
_LARGEST_INPUT = 1e6  # beyond, a square would leave float32


@dataclass(frozen=True, slots=True)
class _KernelBank:
    """Random kernels of one dilation: columns of `weights` are (channels * length) taps."""

    dilation: int
    weights: Floats32
    biases: Floats32


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """The public map from series (n, channels, length) to unit rows (n, n_features)."""

    n_channels: int
    length: int
    n_kernels: int
    seed: int
    banks: tuple[_KernelBank, ...] = field(repr=False)
    centre: Floats = field(repr=False)
    whitener: Floats = field(repr=False)

    @property
    def n_features(self) -> int:
        """Columns of `transform`, the constant included."""
        return int(self.whitener.shape[1]) + 1

    def transform(self, X: Floats) -> Floats:
        """Unit rows, one per series; bounded whatever the values are."""
        if X.ndim != 3 or X.shape[1:] != (self.n_channels, self.length):
            raise TacitError(
                f"these features take series of {self.n_channels} channels and length "
                f"{self.length}, got an array of shape {X.shape}."
            )
        rows = np.ones((len(X), self.n_features))

        def fill(part: slice) -> None:
            raw = np.concatenate(_blocks(X[part], self.banks), axis=1)
            rows[part, :-1] = (raw - self.centre) @ self.whitener
            rows[part] /= np.linalg.norm(rows[part], axis=1, keepdims=True)

        on_all_cores(fill, _pieces(X))
        return rows


@lru_cache(maxsize=8)
def public_features(
    *,
    n_channels: int,
    length: int,
    n_kernels: int = 256,
    seed: int = PUBLIC_SEED,
    kind: FeatureKind = "fine",
) -> FeatureMap:
    """Build the map; equal arguments give the equal map on every machine.

    `coarse` keeps more of a row's energy in a few directions, for runs whose noise would drown
    the many of `fine`.
    """
    balance = _BALANCE[kind]
    check_at_least(n_channels, 1, name="n_channels")
    check_at_least(length, 3, name="length")
    check_at_least(n_kernels, 1, name="n_kernels")
    rng = np.random.default_rng([seed, n_channels, length, n_kernels])
    banks = _draw_banks(n_channels, length, n_kernels, rng)
    count = max(600, min(2000, 2**21 // length))  # enough for a covariance, quick for long series
    widths = [block.shape[1] for block in _blocks(np.zeros((1, n_channels, length)), banks)]
    pieces = _cuts(count, n_channels * length, _PIECE_VALUES)
    signals = _signals(pieces, n_channels, length, rng)
    raw = _raw_features(banks, signals, pieces, sum(widths))
    scale = np.repeat(balance.weights, widths)
    centre = raw.mean(axis=0)
    raw -= centre
    spread = (np.sqrt(_sum_of_squares(raw) / count) + 1e-3) / scale
    raw /= spread
    covariance = _covariance(raw)
    del raw  # a device has no room for it beside what eigh needs
    # The symmetric root does not depend on the basis that eigh happens to return.
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors / np.sqrt(np.maximum(values, 0.0) + balance.ridge)) @ vectors.T
    whitener = np.asarray(root / spread[:, None])
    del covariance, vectors, root
    return_memory()  # eight megabytes on a device, which would stay with it
    return FeatureMap(n_channels, length, n_kernels, seed, banks, centre, whitener)


def _raw_features(
    banks: tuple[_KernelBank, ...],
    signals: Iterator[Floats],
    pieces: Sequence[slice],
    n_columns: int,
) -> Floats:
    """The features of generated signals, of which only a few pieces are in memory at a time."""
    raw, taking = np.empty((pieces[-1].stop, n_columns)), Lock()
    drawn = zip(pieces, signals, strict=True)

    def fill(_: slice) -> None:
        with taking:  # whoever comes first draws the next one
            part, signal = next(drawn)
        raw[part] = np.concatenate(_blocks(signal, banks), axis=1)

    on_all_cores(fill, pieces)
    return raw


def _sum_of_squares(rows: Floats) -> Floats:
    """Of every column; row by row, without another array of this size."""
    total = np.zeros(rows.shape[1])
    for row in rows:
        total += row * row
    return total


def _covariance(rows: Floats) -> Floats:
    """That of `np.cov` to the last bit, in the memory of the rows, which are centred in it."""
    rows -= rows.mean(axis=0)
    products: Floats = rows.T @ rows
    products *= 1.0 / (len(rows) - 1)
    return products


def generated_signals(count: int, n_channels: int, length: int, rng: np.random.Generator) -> Floats:
    """Public stand-ins for sensor data: harmonics, random walks, noise, gains and offsets."""
    pieces = _cuts(count, n_channels * length, _PIECE_VALUES)
    return np.concatenate(list(_signals(pieces, n_channels, length, rng)))


def _signals(
    pieces: Sequence[slice], n_channels: int, length: int, rng: np.random.Generator
) -> Iterator[Floats]:
    """The same piece by piece, because a device has no room for all of them.

    What is drawn for every time step is drawn twice: once to go past it, as what is drawn for the
    series comes after it, and once more where it is used.
    """
    count = pieces[-1].stop
    per_series, per_channel = (count, 1, 1), (count, n_channels, 1)
    time = np.arange(length)
    cycles = _log_uniform(rng, 0.5, max(1.0, length / 8), per_series)
    periodic = rng.random(per_series) < 0.6
    waves = [
        (harmonic, rng.uniform(0.0, 2.0 * np.pi, per_channel), rng.standard_normal(per_channel))
        for harmonic in (1, 2, 3)
    ]
    steps = _past(rng, pieces, n_channels, length)
    wander = _log_uniform(rng, 0.02, 1.0, per_series)
    noise = _past(rng, pieces, n_channels, length)
    loudness = _log_uniform(rng, 0.01, 0.5, per_channel)
    gain = _log_uniform(rng, 0.05, 1.5, per_channel)
    offset = rng.standard_normal(per_channel)

    def made(part: slice) -> Floats:
        shape = (len(cycles[part]), n_channels, length)
        signal: Floats = np.zeros(shape)
        for harmonic, phase, height in waves:
            wave = np.sin(2.0 * np.pi * cycles[part] / length * harmonic * time + phase[part])
            signal += height[part] / harmonic * wave * periodic[part]
        walk = np.cumsum(steps.standard_normal(shape), axis=2) / np.sqrt(length)
        signal += walk * wander[part]
        signal += noise.standard_normal(shape) * loudness[part]
        signal *= gain[part]
        signal += 0.6 * offset[part]
        return signal

    return map(made, pieces)


def _past(
    rng: np.random.Generator, pieces: Sequence[slice], n_channels: int, length: int
) -> np.random.Generator:
    """A copy of the generator as it is, which itself goes past a value for every time step."""
    here = copy.deepcopy(rng)
    for part in pieces:
        rng.standard_normal((part.stop - part.start, n_channels, length))
    return here


def _log_uniform(
    rng: np.random.Generator, low: float, high: float, shape: tuple[int, ...]
) -> Floats:
    drawn: Floats = np.exp(rng.uniform(np.log(low), np.log(high), shape))
    return drawn


def _draw_banks(
    n_channels: int, length: int, n_kernels: int, rng: np.random.Generator
) -> tuple[_KernelBank, ...]:
    taps = min(_KERNEL_LENGTH, max(1, length // 2))
    dilations = [d for d in _DILATIONS if d * (taps - 1) < length]
    shares = np.array_split(np.arange(n_kernels), len(dilations))
    return tuple(
        _draw_bank(dilation, len(share), n_channels, taps, rng)
        for dilation, share in zip(dilations, shares, strict=True)
        if len(share)
    )


def _draw_bank(
    dilation: int, count: int, n_channels: int, taps: int, rng: np.random.Generator
) -> _KernelBank:
    weights = rng.standard_normal((count, n_channels, taps))
    used = np.zeros((count, n_channels, 1))
    for kernel in range(count):
        # Few channels more often than many, as in the ROCKET family.
        n_used = min(n_channels, int(2.0 ** rng.uniform(0.0, np.log2(n_channels + 1))))
        used[kernel, rng.choice(n_channels, n_used, replace=False)] = 1.0
    if taps > 1:  # half of the kernels ignore the level of the signal
        weights -= weights.mean(axis=2, keepdims=True) * (rng.random((count, 1, 1)) < 0.5)
    weights *= used
    weights /= np.linalg.norm(weights, axis=(1, 2), keepdims=True)
    biases = rng.standard_normal(count) * _log_uniform(rng, 0.03, 1.0, (count,))
    columns = weights.reshape(count, -1).T
    return _KernelBank(
        dilation, np.ascontiguousarray(columns, dtype=np.float32), biases.astype(np.float32)
    )


def _pieces(X: Floats) -> list[slice]:
    """Cuts of the series that a cache holds; a series' features do not depend on its piece."""
    return _cuts(len(X), X.shape[1] * X.shape[2], _CHUNK_VALUES)


def _cuts(count: int, size: int, values: int) -> list[slice]:
    """Cuts of `count` series with `size` values each into pieces of about so many values."""
    n_series = max(1, values // size)
    return [
        slice(start, min(start + n_series, count)) for start in range(0, max(count, 1), n_series)
    ]


def _blocks(X: Floats, banks: tuple[_KernelBank, ...]) -> tuple[Floats, Floats, Floats, Floats]:
    """Statistics, bands, correlations and proportions, before anything is centred."""
    X = np.clip(X, -_LARGEST_INPUT, _LARGEST_INPUT)
    proportions = [_proportions(X.astype(np.float32), bank) for bank in banks]
    found: Floats = np.concatenate(proportions, axis=1)
    return _statistics(X), _band_energies(X), _correlations(X), found


def _statistics(X: Floats) -> Floats:
    """Squashed mean, log spread and log roughness of every channel."""
    rough = np.abs(np.diff(X, axis=2)).mean(axis=2)
    parts = [np.tanh(X.mean(axis=2)), np.log(X.std(axis=2) + _FLOOR), np.log(rough + _FLOOR)]
    return np.concatenate(parts, axis=1)


def _band_energies(X: Floats) -> Floats:
    """Log amplitude in octave-like frequency bands of every channel."""
    length = X.shape[2]
    power = np.abs(np.fft.rfft(X, axis=2)[:, :, 1:] / length) ** 2
    edges = np.unique(np.round(np.geomspace(1, power.shape[2] + 1, _N_BANDS + 1)).astype(int)) - 1
    bands = np.add.reduceat(power, edges[:-1], axis=2)
    logs: Floats = np.log(np.sqrt(bands) + _FLOOR).reshape(len(X), -1)
    return logs


def _correlations(X: Floats) -> Floats:
    """Correlation of every pair of channels; none for one channel."""
    centred = X - X.mean(axis=2, keepdims=True)
    centred /= centred.std(axis=2, keepdims=True) + _FLOOR
    first, second = np.triu_indices(X.shape[1], 1)
    products: Floats = (centred @ centred.transpose(0, 2, 1))[:, first, second] / X.shape[2]
    return products


def _proportions(X: Floats32, bank: _KernelBank) -> Floats:
    """Share of time steps at which each kernel's response passes its bias."""
    n_series, n_channels, length = X.shape
    taps = len(bank.weights) // n_channels
    steps = length - bank.dilation * (taps - 1)
    kernels, biases = np.ascontiguousarray(bank.weights.T), bank.biases[:, None]
    out = np.empty((n_series, len(kernels)))
    chunk = max(1, _CHUNK_VALUES // (steps * (len(bank.weights) + len(kernels))))
    for start in range(0, n_series, chunk):
        block = X[start : start + chunk]
        unfolded = np.empty((n_channels, taps, len(block), steps), dtype=np.float32)
        for tap in range(taps):
            first = tap * bank.dilation
            unfolded[:, tap] = block[:, :, first : first + steps].transpose(1, 0, 2)
        passed = kernels @ unfolded.reshape(len(bank.weights), -1) > biases
        counts = count_true(passed.reshape(len(kernels), len(block), steps))
        out[start : start + chunk] = counts.T.astype(np.float64) / steps
    return out
