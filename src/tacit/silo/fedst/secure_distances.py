"""The kernel of shapelet distances: `distances_dot`, over replicated shares in the ring of 2^32.

The integers are those of `tacit.silo.fedst.distances`, bit for bit, for encodings whose distances
all lie below 2^31 (`Encoding.narrow`); a share of the ring of 2^64 becomes one of 2^32 locally, by
dropping the upper half of each word. Opens nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.silo.fedst.distances import distances_of_many
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated, Words

Limbs = tuple[Floats, Floats]
# So many products of 16-bit limbs, twice, sum to at most 2**53: exact in float64.
MAX_LENGTH = 2**20
# Windows of all candidates and series compared at once: about 200 MB at a party.
BLOCK_WINDOWS = 2**21


def replicated_distances(
    party: Replicated,
    series: Pair,
    squares: Pair,
    cuts: Pair,
    *,
    counts: tuple[int, ...],
    lengths: tuple[int, ...],
    channels: tuple[int, ...],
    caps: tuple[int, ...],
    shifts: tuple[int, ...],
) -> Pair:
    """Rescaled distances (b, R), in the ring of 2^64, of b shapelets to series (R, channels, N).

    The shapelets lie one after the other in the row `cuts`: `counts` of each run, whose `lengths`
    and `channels` are public; each is compared with its own channel only. All runs go through the
    tournaments in step, in blocks of series that fit a party's memory.
    Public numbers that the ring cannot take are refused, at every party, before a message is sent.
    """
    for cap, shift, length in zip(caps, shifts, lengths, strict=True):
        if not (0 <= cap < 2**31 and 0 <= shift < 32 and length <= MAX_LENGTH):
            raise TacitError(
                f"a cap of {cap}, a shift by {shift} or a length of {length} does not fit "
                "distances below 2^31; use `distances_dot` instead."
            )
    low = [_low_words(x) for x in (series, squares, cuts)]
    shapelets = _cut_apart(low[2], counts, lengths)
    products = party.multiply(low[2], low[2])
    norms = [
        (x[0].sum(axis=1, dtype=np.uint32), x[1].sum(axis=1, dtype=np.uint32))
        for x in _cut_apart(products, counts, lengths)
    ]
    rows, _, length = series[0].shape
    per_row = sum(c * (length - n + 1) for c, n in zip(counts, lengths, strict=True))
    height = max(1, BLOCK_WINDOWS // max(1, per_row))
    blocks = []
    for start in range(0, rows, height):
        part = [(x[0][start : start + height], x[1][start : start + height]) for x in low[:2]]
        raw = _raw_distances(party, part[0], part[1], shapelets, norms, channels)
        blocks.append(_rescaled_minima(party, raw, caps, shifts))
    return np.concatenate([b[0] for b in blocks], axis=1), np.concatenate(
        [b[1] for b in blocks], axis=1
    )


def _low_words(x: Pair) -> Pair:
    return x[0].astype(np.uint32), x[1].astype(np.uint32)


def _cut_apart(row: Pair, counts: tuple[int, ...], lengths: tuple[int, ...]) -> list[Pair]:
    found, start = [], 0
    for count, length in zip(counts, lengths, strict=True):
        stop = start + count * length
        found.append(
            (row[0][start:stop].reshape(count, length), row[1][start:stop].reshape(count, length))
        )
        start = stop
    return found


def _raw_distances(
    party: Replicated,
    series: Pair,
    squares: Pair,
    shapelets: list[Pair],
    norms: list[Pair],
    channels: tuple[int, ...],
) -> list[Pair]:
    """sum t^2 + sum s^2 - 2 sum s t, shares (windows, R, b) for each run."""
    local = [
        _cross_terms((series[0][:, channel], series[1][:, channel]), cut)
        for channel, cut in zip(channels, shapelets, strict=True)
    ]
    cross = party.mask_sum(np.concatenate([x.reshape(-1) for x in local]))
    two, start, found = np.uint32(2), 0, []
    shapes = [x.shape for x in local]
    for channel, cut, norm, shape in zip(channels, shapelets, norms, shapes, strict=True):
        stop, length = start + int(np.prod(shape)), cut[0].shape[1]
        sums = [_window_sums(t[:, channel], length).T[:, :, None] for t in squares]
        raw = [
            total + s - two * c[start:stop].reshape(shape)
            for total, s, c in zip(sums, norm, cross, strict=True)
        ]
        found.append((raw[0], raw[1]))
        start = stop
    return found


def _rescaled_minima(
    party: Replicated, raw: list[Pair], caps: tuple[int, ...], shifts: tuple[int, ...]
) -> Pair:
    """(b, R): the cap takes part in the tournament where it binds; one shift for all runs."""
    capped = []
    for x, cap in zip(raw, caps, strict=True):
        top = party.constant(cap, (1 if cap else 0, *x[0].shape[1:]), np.uint32)
        capped.append((np.concatenate([x[0], top[0]]), np.concatenate([x[1], top[1]])))
    best = party.smallest(*capped)
    # A distance of 20 bits after its shift has room to be raised to the largest shift.
    most = max(shifts)
    parts = [
        np.concatenate(
            [x[i].T << np.uint32(most - s) for x, s in zip(best, shifts, strict=True)], axis=0
        )
        for i in (0, 1)
    ]
    return party.shifted((parts[0], parts[1]), shift=most)


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


def _output_shape(
    series: Shape, squares: Shape, cuts: Shape, *, counts: tuple[int, ...], **_: Any
) -> Shape:
    return sum(counts), series[0]


NARROW_DISTANCES = Kernel(
    name="distances",
    plaintext=distances_of_many,
    compiled=distances_of_many,
    replicated=replicated_distances,
    output_shape=_output_shape,
)
