"""The feature rows of series that one process asks for again and again.

A run, its baselines and the next run on the same deal need the rows of the same series; computing
them takes longer than many a run.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import numpy as np

from tacit.arrays import Floats
from tacit.fleet.learning.head import feature_map
from tacit.fleet.plan import FleetPlan

_KEPT = 4  # training and test series of two kinds of features
_rows: OrderedDict[tuple[object, ...], Floats] = OrderedDict()


def feature_rows(plan: FleetPlan, X: Floats) -> Floats:
    """The rows of these series under the plan's features, read-only; the last few are kept."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    digest = hashlib.blake2b(X.data, digest_size=32).digest()
    kind = (plan.n_channels, plan.length, plan.n_kernels, plan.feature_seed, plan.feature_kind)
    key = (*kind, X.shape, digest)
    if key not in _rows:
        found = feature_map(plan).transform(X)
        found.flags.writeable = False
        _rows[key] = found
        while len(_rows) > _KEPT:
            _rows.popitem(last=False)
    _rows.move_to_end(key)
    return _rows[key]
