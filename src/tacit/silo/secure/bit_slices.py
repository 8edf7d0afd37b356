"""Words as bit slices: slice k holds bit k of many words, eight words to a byte.

Boolean gates on slices cost one machine operation for 64 words, and only the slices that a circuit
needs go on the wire.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
# Words are padded to a multiple of this, so that every slice is a whole number of 64-bit words.
_PAD = 64
_SWAPS = (
    (np.uint64(7), np.uint64(0x00AA00AA00AA00AA)),
    (np.uint64(14), np.uint64(0x0000CCCC0000CCCC)),
    (np.uint64(28), np.uint64(0x00000000F0F0F0F0)),
)


def slice_bytes(n_words: int) -> int:
    """Bytes of one slice of n words."""
    return -(-n_words // _PAD) * _PAD // 8


def to_slices(words: NDArray[Any]) -> Bytes:
    """Slices (bits, bytes) of a flat array of words, lowest bit first."""
    n_bytes = words.dtype.itemsize
    padded = np.zeros(8 * slice_bytes(words.size), dtype=words.dtype)
    padded[: words.size] = words.reshape(-1)
    # One byte position of eight neighbouring words is an 8 x 8 block of bits, in one 64-bit word.
    by_position = padded.view(np.uint8).reshape(-1, 8, n_bytes).transpose(2, 0, 1)
    blocks = np.ascontiguousarray(by_position).view(np.uint64)[:, :, 0]
    for shift, mask in _SWAPS:  # transposes every block
        moved = (blocks ^ (blocks >> shift)) & mask
        blocks ^= moved ^ (moved << shift)
    of_bits = blocks[:, :, None].view(np.uint8).transpose(0, 2, 1)
    return np.ascontiguousarray(of_bits).reshape(8 * n_bytes, -1)


def bits_of(slice_: Bytes, n_words: int) -> Bytes:
    """One slice as n zeros and ones."""
    return np.unpackbits(slice_, count=n_words, bitorder="little")


def to_slice(bits: NDArray[Any]) -> Bytes:
    """Zeros and ones of a flat array as one padded slice."""
    packed = np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little")
    slice_ = np.zeros(slice_bytes(bits.size), dtype=np.uint8)
    slice_[: packed.size] = packed
    return slice_
