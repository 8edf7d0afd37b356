"""A noise source with a seed, which only tests may have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class SeededNoise:
    """Reproducible 64-bit words; never importable from the package."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._rng.integers(0, 2**64, size=count, dtype=np.uint64)
