"""Matrix products modulo 2^64 by floating-point matrix products of 16-bit limbs, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]
_LIMBS = 4
_LIMB_BITS = 16
# Up to four products of two limbs, so many of each, sum to at most 2^53: exact in float64.
_BLOCK = 1 << 19
_BLOCK_WORDS = 1 << 22  # of one operand, so that its limbs take 128 MB


def wrapping_matmul(x: Words, y: Words) -> Words:
    """x (n, m) times y (m, k) modulo 2^64, for words of 64 bits."""
    total = np.zeros((x.shape[0], y.shape[1]), dtype=np.uint64)
    width = max(1, min(_BLOCK, _BLOCK_WORDS // max(1, *total.shape)))
    for start in range(0, x.shape[1], width):
        block = slice(start, start + width)
        total += _block_product(x[:, block], y[block])
    return total


def _block_product(x: Words, y: Words) -> Words:
    left, right = _limbs(x), _limbs(y)
    total = np.zeros((x.shape[0], y.shape[1]), dtype=np.uint64)
    for power in range(_LIMBS):
        sums = sum(left[i] @ right[power - i] for i in range(power + 1))
        total += np.asarray(sums).astype(np.uint64) << np.uint64(_LIMB_BITS * power)
    return total


def _limbs(x: Words) -> list[NDArray[np.float64]]:
    mask = np.uint64(2**_LIMB_BITS - 1)
    shifts = (np.uint64(_LIMB_BITS * i) for i in range(_LIMBS))
    return [((x >> shift) & mask).astype(np.float64) for shift in shifts]
