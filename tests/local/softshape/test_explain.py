"""The arrays behind the pictures agree with what the network does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.data import load_dataset
from tacit.errors import TacitError
from tacit.local.softshape.explain import explain
from tacit.local.softshape.published import TrainedSoftShape, train_published
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.report.local_charts import allocation_figure, routing_figure


def trained(**switches: Any) -> tuple[TrainedSoftShape, Floats]:
    data = load_dataset("ItalyPowerDemand")
    codes = np.searchsorted(data.classes, data.y_train)
    settings = SoftShapeSettings(embed_dim=16, steps=5, views=1, **switches)
    return train_published(data.X_train, codes, 2, epsilon=1.0, settings=settings), data.X_test


def test_scores_scales_and_routing_of_one_series() -> None:
    model, X = trained()
    found = explain(model, X[3], epsilon=0.5)
    np.testing.assert_allclose(found.alpha, model.attention(X[3:4])[0])
    np.testing.assert_allclose(found.noise_scale, (1 - found.alpha) / 0.5, rtol=1e-4)
    k = model.settings.n_kept(model.network.n_patches)
    assert found.kept.sum() == k
    assert set(np.flatnonzero(found.kept)) == set(np.argsort(-found.alpha)[:k])
    assert found.routing is not None
    assert np.all((found.routing[:, found.kept] > 0).sum(0) == model.settings.top_k)
    assert np.isnan(found.routing[:, ~found.kept]).all()
    assert found.patch_starts[-1] + found.patch_length <= X.shape[2]


def test_the_pictures_take_the_arrays_as_they_are() -> None:
    model, X = trained()
    found = explain(model, X[0], epsilon=0.5)
    allocation_figure(
        X[0],
        patch_starts=found.patch_starts.tolist(),
        patch_length=found.patch_length,
        alpha=found.alpha,
        noise_scale=found.noise_scale,
    )
    assert found.routing is not None
    routing_figure(X[0], found.routing, patch_centres=found.patch_centres.tolist())


def test_without_experts_there_is_no_routing() -> None:
    model, X = trained(use_moe=False)
    assert explain(model, X[0], epsilon=0.5).routing is None


def test_a_bad_budget_is_refused() -> None:
    model, X = trained()
    with pytest.raises(TacitError, match="epsilon"):
        explain(model, X[0], epsilon=float("nan"))
