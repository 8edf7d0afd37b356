"""Names for the arrays that travel between modules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cube = Floats  # series as (n, channels, length)
Floats32 = NDArray[np.float32]
Integers = NDArray[np.int64]
Codes = NDArray[np.intp]  # classes, clients or symbols as numbers from 0
