"""Classes with one training series: what is assumed where nothing can be measured.

How well a class is recognised is measured on series that were held out from the fit. Without its
only series a fit does not know the class at all, so that held-out row says nothing about the model
that devices get. Such rows choose no penalty and no temperature, and count in no accuracy; where
every class needs a row, they are replaced by what series of the other classes got on average.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats


def is_measured(y: Codes) -> NDArray[np.bool_]:
    """Which series belong to a class that has another one: what is held out of them counts."""
    return np.asarray(np.bincount(y)[y] > 1)


def assume_unmeasured(held_out: Floats, y: Codes) -> Floats:
    """Held-out posteriors (n, classes) in which a class with one series is like the others.

    Its true class gets the mean probability that the measured series gave theirs; the rest is
    spread evenly, for nothing says where its errors would go.
    """
    measured = is_measured(y)
    recognised = float(held_out[measured, y[measured]].mean())
    rows = held_out.copy()
    rows[~measured] = (1.0 - recognised) / (held_out.shape[1] - 1)
    rows[~measured, y[~measured]] = recognised
    return rows


def held_out_accuracy(held_out: Floats, y: Codes) -> float:
    """The share of measured series that are classified right when they are held out."""
    measured = is_measured(y)
    return float(np.mean(held_out[measured].argmax(axis=1) == y[measured]))
