"""The kernel of shapelet distances: `distances_dot`, over replicated shares in the ring of 2^32.

The integers are those of `tacit.silo.fedst.distances`, bit for bit, for encodings whose distances
all lie below 2^31 (`Encoding.narrow`); a share of the ring of 2^64 becomes one of 2^32 locally, by
dropping the upper half of each word. Opens nothing.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.silo.fedst.distances import distances_dot
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated, Words

Limbs = tuple[Floats, Floats]
# So many products of 16-bit limbs, twice, sum to at most 2**53: exact in float64.
MAX_LENGTH = 2**20


def replicated_distances(
    party: Replicated, series: Pair, squares: Pair, shapelets: Pair, *, cap: int, shift: int
) -> Pair:
    """Rescaled distances (b, R), in the ring of 2^64, of shapelets (b, L) to series (R, N).

    Public numbers that the ring cannot take are refused, at every party, before a message is sent.
    """
    if not (0 <= cap < 2**31 and 0 <= shift < 32 and shapelets[0].shape[1] <= MAX_LENGTH):
        raise TacitError(
            f"a cap of {cap}, a shift by {shift} or a length of {shapelets[0].shape[1]} does not "
            "fit distances below 2^31; use `distances_dot` instead."
        )
    low = [_low_words(x) for x in (series, squares, shapelets)]
    raw = _raw_distances(party, *low)
    if cap:
        top = party.constant(cap, raw[0].shape[1:], np.uint32)
        raw = (np.concatenate([raw[0], top[0][None]]), np.concatenate([raw[1], top[1][None]]))
    best = party.shifted(party.smallest(raw), shift=shift)
    return best[0].T, best[1].T


def _low_words(x: Pair) -> Pair:
    return x[0].astype(np.uint32), x[1].astype(np.uint32)


def _raw_distances(party: Replicated, series: Pair, squares: Pair, shapelets: Pair) -> Pair:
    """sum t^2 + sum s^2 - 2 sum s t, shares (windows, R, b)."""
    length = shapelets[0].shape[1]
    norms = party.multiply(shapelets, shapelets)
    cross = party.mask_sum(_cross_terms(series, shapelets))
    two = np.uint32(2)
    found = [
        _window_sums(t, length).T[:, :, None] + s.sum(axis=1, dtype=np.uint32) - two * st
        for t, s, st in zip(squares, norms, cross, strict=True)
    ]
    return found[0], found[1]


def _window_sums(x: Words, length: int) -> Words:
    """Sums of all windows of each row, in the ring: linear, so every share for itself."""
    running = np.zeros((x.shape[0], x.shape[1] + 1), dtype=x.dtype)
    np.cumsum(x, axis=1, dtype=x.dtype, out=running[:, 1:])
    sums: Words = running[:, length:] - running[:, :-length]
    return sums


def _cross_terms(series: Pair, shapelets: Pair) -> Words:
    """This party's part of all products of windows and shapelets: (windows, R, b)."""
    # x_i (y_i + y_{i+1}) + x_{i+1} y_i, as in `Replicated.multiply`.
    first = (_limbs(series[0]), _limbs((shapelets[0] + shapelets[1]).T))
    second = (_limbs(series[1]), _limbs(shapelets[0].T))
    length, n_windows = shapelets[0].shape[1], series[0].shape[1] - shapelets[0].shape[1] + 1
    out = np.empty((n_windows, series[0].shape[0], shapelets[0].shape[0]), dtype=np.uint32)
    for p in range(n_windows):
        window = slice(p, p + length)
        out[p] = _product(first, window) + _product(second, window)
    return out


def _product(limbs: tuple[Limbs, Limbs], window: slice) -> Words:
    """The product of one window of all series with the shapelets, modulo 2^32."""
    (x_low, x_high), (y_low, y_high) = limbs
    low = x_low[:, window] @ y_low
    high = x_low[:, window] @ y_high + x_high[:, window] @ y_low
    product: Words = _word(low) + (_word(high) << np.uint32(16))
    return product


def _limbs(x: Words) -> Limbs:
    """Lower and upper 16 bits: sums of up to MAX_LENGTH products are exact in float64."""
    return (x & np.uint32(0xFFFF)).astype(np.float64), (x >> np.uint32(16)).astype(np.float64)


def _word(total: Floats) -> Words:
    return total.astype(np.uint64).astype(np.uint32)


def _output_shape(series: Shape, squares: Shape, shapelets: Shape) -> Shape:
    return shapelets[0], series[0]


NARROW_DISTANCES = Kernel(
    name="distances",
    plaintext=distances_dot,
    compiled=distances_dot,
    replicated=replicated_distances,
    output_shape=_output_shape,
)
