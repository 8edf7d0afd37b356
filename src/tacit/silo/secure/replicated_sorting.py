"""Sorting over replicated shares: a bitonic network, whose comparisons never depend on the data.

Parties, corruption and openings are those of `tacit.silo.secure.replicated`: nothing is opened.
"""

from __future__ import annotations

import numpy as np

from tacit.errors import TacitError
from tacit.silo.secure.bit_slices import to_slice
from tacit.silo.secure.replicated import Pair, Replicated
from tacit.silo.secure.sorting_network import next_power_of_two


def lowest_bit(party: Replicated, x: Pair) -> Pair:
    """The lowest bit of every word in the ring of 2^64: no carry enters it."""
    bits = (to_slice(x[0] & x[0].dtype.type(1)), to_slice(x[1] & x[1].dtype.type(1)))
    return party.arithmetic(bits, x[0].shape, np.uint64)


def sorted_low_bits(party: Replicated, keys: Pair, *, n_bits: int) -> Pair:
    """The lowest bit of every key after each row (b, n) was sorted upwards.

    Keys of up to 31 bits are sorted in the ring of 2^32, others, up to 63, in that of 2^64.
    """
    if not 1 <= n_bits <= 63:
        raise TacitError(f"keys to sort have 1 to 63 bits, got {n_bits}.")
    ring = np.uint32 if n_bits <= 31 else np.uint64
    rows, n = keys[0].shape
    largest = np.iinfo(ring).max // 2
    filler = party.constant(largest, (rows, next_power_of_two(n) - n), ring)
    first, second = (
        np.concatenate([k.astype(ring), f], axis=1) for k, f in zip(keys, filler, strict=True)
    )
    ordered = sorted_rows(party, (first, second))
    return lowest_bit(party, (ordered[0][:, :n], ordered[1][:, :n]))


def sorted_rows(party: Replicated, x: Pair) -> Pair:
    """Each row (b, n) upwards by a bitonic network; n must be a power of two."""
    n, block = x[0].shape[1], 2
    while block <= n:
        x = _step(party, x, block // 2, mirrored=True)
        half = block // 4
        while half >= 1:
            x = _step(party, x, half, mirrored=False)
            half //= 2
        block *= 2
    return x


def _step(party: Replicated, x: Pair, half: int, *, mirrored: bool) -> Pair:
    """One step of the network: places j and j + half, or mirrored places, of each block."""
    rows, n = x[0].shape
    turn = slice(None, None, -1) if mirrored else slice(None)
    parts = [v.reshape(rows, n // (2 * half), 2, half) for v in x]
    a = (parts[0][:, :, 0], parts[1][:, :, 0])
    b = (parts[0][:, :, 1, turn], parts[1][:, :, 1, turn])
    low = party.minimum(a, b)
    out = [
        np.stack([lo, (p + q - lo)[:, :, turn]], axis=2).reshape(rows, n)
        for lo, p, q in zip(low, a, b, strict=True)
    ]
    return out[0], out[1]
