"""Rows that were computed once are not computed again, and are nobody's to change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.fleet.learning.head import feature_map
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.simulation import feature_rows as module
from tacit.fleet.simulation.feature_rows import feature_rows


def test_equal_series_have_equal_rows_and_others_their_own() -> None:
    plan = make_plan(
        classes=("a", "b"), n_channels=2, length=24, mechanism="privunit", n_clients=20,
        n_rounds=2, n_kernels=8,
    )  # fmt: skip
    X = np.random.default_rng(0).standard_normal((5, 2, 24))
    first = feature_rows(plan, X)
    np.testing.assert_array_equal(first, feature_map(plan).transform(X))
    assert feature_rows(plan, X.copy()) is first
    other = replace(plan, feature_kind="fine" if plan.feature_kind == "coarse" else "coarse")
    assert not np.allclose(feature_rows(other, X), first)
    assert not np.allclose(feature_rows(plan, X + 1.0), first)
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0
    for shift in range(10):
        feature_rows(plan, X + shift)
    assert len(module._rows) == module._KEPT
