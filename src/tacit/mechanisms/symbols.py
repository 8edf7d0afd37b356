"""Randomizers of symbols: k-ary randomized response and any other finite channel, exactly.

Every probability is a whole number of 2**-62, drawn by comparing integers. The epsilon of a
channel is computed from these whole numbers, so no statement here leans on floating point.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tacit.arrays import Codes, Floats, Integers
from tacit.errors import TacitError, check_at_least, check_epsilon
from tacit.noise import NoiseSource

_ONE = 2**62  # the whole of a row; a word of 62 bits falls on each unit equally often


def randomize_symbols(
    symbols: Codes, *, n_symbols: int, epsilon: float, source: NoiseSource
) -> Codes:
    """Release every symbol through k-ary randomized response.

    Guarantee: each output is `epsilon`-LDP (pure) when its input symbol is replaced, exactly.
    Assumes: `source` is uniform, independent and secret.
    Composes: a series of T symbols costs T * epsilon.
    Not covered: the number of symbols, and when they are sent.
    """
    symbols = _check_symbols(symbols, check_at_least(n_symbols, 2, name="n_symbols"))
    keep, other = _krr_weights(n_symbols, epsilon)
    words = _words62(symbols.shape, source)
    step = np.where(words < keep, 0, 1 + (words - keep) // other)
    released: Codes = ((symbols + step) % n_symbols).astype(np.intp)
    return released


def krr_matrix(n_symbols: int, epsilon: float) -> Floats:
    """The channel of `randomize_symbols`: row = true symbol, column = released symbol."""
    check_at_least(n_symbols, 2, name="n_symbols")
    keep, other = _krr_weights(n_symbols, epsilon)
    matrix = np.full((n_symbols, n_symbols), other / _ONE)
    np.fill_diagonal(matrix, keep / _ONE)
    return matrix


def randomize_through_channel(symbols: Codes, *, channel: Floats, source: NoiseSource) -> Codes:
    """Release every symbol x as an output drawn from row x of a row-stochastic channel.

    Guarantee: each output is `channel_epsilon(channel)`-LDP (pure) when its symbol is replaced.
    Assumes: `source` is uniform, independent and secret; the channel does not depend on the
    symbols (a channel fitted to training data is a constant for the series released later).
    Composes: a series of T symbols costs T times that.
    Not covered: the number of symbols, when they are sent, and the data the channel was fitted to.
    """
    thresholds = channel_thresholds(channel)
    symbols = _check_symbols(symbols, len(thresholds))
    words = _words62(symbols.shape, source)
    released = np.empty(symbols.shape, dtype=np.intp)
    for symbol, row in enumerate(thresholds):
        here = symbols == symbol
        released[here] = np.searchsorted(row, words[here], side="right")
    return released


def channel_thresholds(channel: Floats) -> Integers:
    """Running sums of each row in units of 2**-62: all that sampling the channel needs.

    A uniform word of 62 bits releases the number of thresholds of its row that do not exceed it.
    """
    return np.cumsum(_channel_weights(channel), axis=1)


def channel_epsilon(channel: Floats) -> float:
    """The epsilon of the channel as it is sampled, rounded up; infinite if it has none."""
    weights = _channel_weights(channel)
    largest, smallest = weights.max(axis=0), weights.min(axis=0)
    if np.any((largest > 0) & (smallest == 0)):
        return math.inf
    used = largest > 0
    worst = max(
        Fraction(int(a), int(b)) for a, b in zip(largest[used], smallest[used], strict=True)
    )
    # ratio - 1 is exact before it is rounded, so log1p is good near 0; then two units upwards.
    return math.nextafter(math.nextafter(math.log1p(worst - 1), math.inf), math.inf)


def tighten_channel(channel: Floats, *, epsilon: float) -> Floats:
    """Move a channel just far enough towards its average row that `channel_epsilon` <= epsilon.

    For channels from a numerical solver, which meets its constraints only up to a tolerance:
    outputs that no row gives more than 1e-9 are closed.
    """
    check_epsilon(epsilon)
    channel = _channel_weights(channel) / _ONE
    channel = np.where(channel.max(axis=0) > 1e-9, channel, 0.0)
    channel /= channel.sum(axis=1, keepdims=True)
    average = np.broadcast_to(channel.mean(axis=0), channel.shape)
    if channel_epsilon(channel) <= epsilon:
        return channel
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        mixed = (1.0 - middle) * channel + middle * average
        low, high = (low, middle) if channel_epsilon(mixed) <= epsilon else (middle, high)
    tight: Floats = (1.0 - high) * channel + high * average
    return tight


def _krr_weights(n_symbols: int, epsilon: float) -> tuple[int, int]:
    """Weights of the true and of each other symbol; rounded so that keep / other <= e**epsilon."""
    check_epsilon(epsilon)
    shrunk = math.exp(-epsilon)
    exact = shrunk / (1.0 + (n_symbols - 1) * shrunk)
    # The slack exceeds the rounding of exp and of the division, the ceiling covers the grid.
    other = max(1, math.ceil(Fraction(exact) * _ONE * (1 + Fraction(1, 2**48))))
    if other > _ONE // n_symbols:
        other = _ONE // n_symbols
        if Fraction(_ONE, other) - n_symbols > Fraction(epsilon):  # e**epsilon is at least 1 + it
            raise TacitError(
                f"epsilon = {epsilon:g} is too small to sample {n_symbols} symbols exactly; "
                "use a larger one."
            )
    return _ONE - (n_symbols - 1) * other, other


def _channel_weights(channel: Floats) -> Integers:
    """The channel in units of 2**-62; what is really sampled."""
    channel = np.asarray(channel, dtype=np.float64)
    if channel.ndim != 2 or 0 in channel.shape:
        raise TacitError(f"a channel is a matrix (inputs, outputs), got shape {channel.shape}.")
    sums = channel.sum(axis=1)
    if not (np.all(channel >= 0.0) and np.all(np.abs(sums - 1.0) <= 1e-9)):
        raise TacitError(
            "a channel needs entries of at least 0 and rows that sum to 1, got row sums "
            f"from {sums.min()!r} to {sums.max()!r}; divide each row by its sum."
        )
    weights: Integers = np.floor(channel / sums[:, None] * float(_ONE)).astype(np.int64)
    weights[(weights == 0) & (channel > 0.0)] = 1
    rows = np.arange(len(weights))
    weights[rows, weights.argmax(axis=1)] += _ONE - weights.sum(axis=1)
    return weights


def _words62(shape: tuple[int, ...], source: NoiseSource) -> Integers:
    return (source.words(math.prod(shape)) >> np.uint64(2)).astype(np.int64).reshape(shape)


def _check_symbols(symbols: Codes, n_symbols: int) -> Codes:
    symbols = np.asarray(symbols)
    if not np.issubdtype(symbols.dtype, np.integer):
        raise TacitError(f"symbols must be whole numbers, got {symbols.dtype}; encode them first.")
    if symbols.size and not 0 <= symbols.min() <= symbols.max() < n_symbols:
        raise TacitError(
            f"symbols span {symbols.min()}..{symbols.max()}, outside 0..{n_symbols - 1}; "
            "encode with the same number of symbols first."
        )
    return symbols.astype(np.intp)
