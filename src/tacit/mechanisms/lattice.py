"""Whole numbers from a rounded normal law, and vectors of them on one side of a hyperplane.

The law nu: P(z) is a whole number of 2**-64 next to the discrete Gaussian of sigma 256, symmetric,
drawn exactly by Walker's alias method. Vectors are conditioned by rejection, so every draw that
leaves is a draw of nu that was kept: no arithmetic ever touches its bits. What a direction changes
is which draws are kept, decided by comparing whole numbers.
Proofs: docs/guarantees/privunit-lattice.md.

NumPy and the standard library only, because devices carry this module.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.noise import NoiseSource, uniform

STEPS = 256  # steps of the lattice per standard deviation
DIRECTION = 2.0**24  # a direction is a vector of whole numbers of about this norm
# Draws that are added to the component along a direction and never leave: without them the
# component along an axis would have few values, and the probability of a side depend on the axis.
_HIDDEN = np.array([2.0**18, 2.0**12, 2.0**6, 1.0])
_HIDDEN_SQUARE = float((_HIDDEN**2).sum())
HIDDEN_NORM = math.sqrt(_HIDDEN_SQUARE)
STRETCH = math.sqrt(1.0 + _HIDDEN_SQUARE / DIRECTION**2)  # what the hidden draws take away

_COLUMN_BITS, _COARSE_BITS, _FINE_BITS = 13, 19, 32
_COLUMNS = 2**_COLUMN_BITS
_CAPACITY = 2 ** (_COARSE_BITS + _FINE_BITS)  # of a column, in units of 2**-64
_BLOCK = 2**18  # numbers that are drawn and compared at a time
_CHUNK = 2**14  # words at a time: they stay in the cache
_PATIENCE = 1000.0  # times the expected number of tries: exceeded with probability e**-1000


def lattice_normal(shape: tuple[int, ...], *, source: NoiseSource) -> NDArray[np.int16]:
    """Independent draws of nu, exactly, as a function of uniform words."""
    count = math.prod(shape)
    out = np.empty(count, dtype=np.int16)
    for start in range(0, count, _CHUNK):
        part = out[start : start + _CHUNK]
        part[:] = _drawn(part.size, source)
    return out.reshape(shape)


def _drawn(count: int, source: NoiseSource) -> NDArray[np.intp]:
    coarse, fine, other = _alias_table()
    words = source.words((count + 1) // 2).view(np.uint32)[:count]
    column = (words >> np.uint32(_COARSE_BITS)).astype(np.intp)
    height = words & np.uint32(2**_COARSE_BITS - 1)
    limit = coarse.take(column)
    own = height < limit
    # 19 bits decide unless they tie, once in half a million draws; then 32 more do.
    tied = np.flatnonzero(height == limit)
    if tied.size:
        more = source.words(tied.size) >> np.uint64(_FINE_BITS)
        own[tied] = more < fine.take(column[tied])
    drawn: NDArray[np.intp] = np.where(own, column, other.take(column)) - _COLUMNS // 2
    return drawn


@lru_cache(maxsize=1)
def lattice_weights() -> tuple[int, ...]:
    """P(z) in units of 2**-64 for z = -4096, ..., 4095."""
    exact = Context(prec=30)
    # From ten sigma on every weight rounds to 0.
    half = [_bell(z, exact) for z in range(10 * STEPS)]
    total = half[0] + 2 * sum(half[1:], Decimal(0))
    rounded = [int(exact.divide(value * 2**64, total).to_integral_value()) for value in half]
    rounded += [0] * (_COLUMNS // 2 - len(rounded))
    rounded[0] += 2**64 - rounded[0] - 2 * sum(rounded[1:])
    return (0, *rounded[:0:-1], *rounded)


def _bell(z: int, exact: Context) -> Decimal:
    return exact.exp(exact.divide(Decimal(-z * z), Decimal(2 * STEPS**2)))


@lru_cache(maxsize=1)
def _alias_table() -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.int16]]:
    """Of every column the share that is its own (in two parts), and whom the rest belongs to."""
    left = list(lattice_weights())
    own, other = [_CAPACITY] * _COLUMNS, list(range(_COLUMNS))
    poor = [c for c in range(_COLUMNS) if left[c] < _CAPACITY]
    rich = [c for c in range(_COLUMNS) if left[c] > _CAPACITY]
    while poor:
        column, giver = poor.pop(), rich[-1]
        own[column], other[column] = left[column], giver
        left[giver] -= _CAPACITY - left[column]
        if left[giver] <= _CAPACITY:
            rich.pop()
            if left[giver] < _CAPACITY:
                poor.append(giver)
    return (
        np.array([value >> _FINE_BITS for value in own], dtype=np.uint32),
        np.array([value % 2**_FINE_BITS for value in own], dtype=np.uint64),
        np.array(other, dtype=np.int16),
    )


def lattice_on_side(
    directions: Floats, above: NDArray[np.bool_], *, gamma: float, source: NoiseSource
) -> Floats:
    """For every direction a vector of independent draws of nu, conditioned on its side.

    With v the direction (whole numbers of norm R about 2**24), y the hidden draws and u uniform in
    (-1/2, 1/2): a vector z lies above if <z, v> + <y, hidden> + u >= gamma S with
    S = 256 sqrt(R**2 + |hidden|**2), which has the probability of a standard normal being at least
    gamma, up to `side_error`. Every z is drawn until it lies where `above` wants it.
    """
    count, dimension = directions.shape
    out = np.empty(directions.shape)
    squares = np.einsum("ij,ij->i", directions, directions)  # whole numbers below 2**53: exact
    heights = gamma * STEPS * np.sqrt(squares + _HIDDEN_SQUARE)
    block = max(1, _BLOCK // (dimension + _HIDDEN.size))
    for start in range(0, count, block):
        part = slice(start, start + block)
        out[part] = _draws_on_side(directions[part], heights[part], above[part], gamma, source)
    return out


def side_error(dimension: int) -> float:
    """How far the probability of lying above may be from that of a standard normal."""
    return (dimension + 16) * 2.0**-52


def _draws_on_side(
    directions: Floats,
    heights: Floats,
    above: NDArray[np.bool_],
    gamma: float,
    source: NoiseSource,
) -> Floats:
    count, dimension = directions.shape
    out = np.empty(directions.shape)
    rarest = 0.5 * math.erfc(abs(gamma) / math.sqrt(2.0))
    patience = _PATIENCE / rarest
    waiting = np.arange(count)
    while waiting.size:
        # Rare sides take many tries: a few rows get several at once, and the first that fits.
        room = _BLOCK // (waiting.size * (dimension + _HIDDEN.size))
        tries = max(1, min(room, math.ceil(0.25 / rarest)))
        drawn = lattice_normal((waiting.size, tries, dimension), source=source)
        fits, mirrored = _fits(
            drawn, directions[waiting], heights[waiting], above[waiting], gamma, source
        )
        first = fits.argmax(axis=1)
        row = np.flatnonzero(fits[np.arange(waiting.size), first])
        found = drawn[row, first[row]].astype(np.float64)
        found[mirrored[row, first[row]]] *= -1.0
        out[waiting[row]] = found
        waiting = np.delete(waiting, row)
        patience -= tries
        if patience < 0.0:
            raise TacitError(
                "the noise source does not look random: no draw fits; nothing was released."
            )
    return out


def _fits(
    drawn: NDArray[np.int16],
    directions: Floats,
    heights: Floats,
    above: NDArray[np.bool_],
    gamma: float,
    source: NoiseSource,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which draws lie on the wanted side, and which of them do only after a change of sign."""
    shape = drawn.shape[:2]
    # Sums of whole numbers below 2**53, exact in float64 in whatever order they are added.
    along = np.matmul(drawn.astype(np.float64), directions[:, :, None])[:, :, 0]
    along += lattice_normal((*shape, _HIDDEN.size), source=source).astype(np.float64) @ _HIDDEN
    dither = uniform(shape, source=source) - 0.5
    whole = np.floor(heights)[:, None]
    rest = heights[:, None] - whole
    up = (along - whole) + dither >= rest
    if gamma <= 0.0:
        return up == above[:, None], np.zeros(shape, dtype=bool)
    # A draw and its mirror image are equally likely and never both above, so for a row that must
    # lie above either will do: half as many draws.
    down = (-along - whole) - dither >= rest
    mirrored = down & above[:, None]
    return np.where(above[:, None], up | down, ~up), mirrored
