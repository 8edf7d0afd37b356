"""Predicted labels beside true ones: how often each class is taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def confusion(true: NDArray[Any], predicted: NDArray[Any]) -> dict[str, Any]:
    """Counts with a row per true class and a column per predicted one, as plain values."""
    classes, codes = np.unique(
        np.concatenate([true.astype(str), predicted.astype(str)]), return_inverse=True
    )
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (codes[: len(true)], codes[len(true) :]), 1)
    return {"classes": classes.tolist(), "counts": counts.tolist()}
