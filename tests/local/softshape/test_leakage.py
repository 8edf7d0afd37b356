"""The leakage block against laws known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from seeded import SeededNoise
from tacit.data import load_dataset
from tacit.errors import TacitError
from tacit.local.softshape import leakage
from tacit.local.softshape.leakage import (
    claimed_totals,
    initialisation_trick,
    measure_leakage,
    release_law,
)
from tacit.local.softshape.published import TrainedSoftShape, train_published
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.noise import SYSTEM_NOISE, float_laplace

BRIEF = SoftShapeSettings(embed_dim=32, steps=30, views=2)


def trained(settings: SoftShapeSettings = BRIEF) -> tuple[TrainedSoftShape, NDArray[np.float64]]:
    data = load_dataset("GunPoint")
    codes = np.searchsorted(data.classes, data.y_train)
    return train_published(data.X_train, codes, 2, epsilon=1.0, settings=settings), data.X_test


def test_the_block_has_exactly_the_contracted_keys() -> None:
    model, X = trained()
    block = measure_leakage(model, X, epsilon=0.1, n_series=40)
    assert list(block) == [
        "claimed_total",
        "empirical_sensitivity",
        "realised_loss_median",
        "reidentification",
    ]
    assert all(type(value) is float and np.isfinite(value) for value in block.values())


def test_an_ordinary_model_leaks_far_beyond_its_nominal_epsilon() -> None:
    model, X = trained()
    block = measure_leakage(model, X, epsilon=1.0, n_series=50)
    assert block["claimed_total"] > 10
    assert block["empirical_sensitivity"] > 2
    assert block["realised_loss_median"] > 10
    assert block["reidentification"] > 0.9  # chance is 0.02


def test_uniform_noise_claims_one_epsilon_per_patch_and_block() -> None:
    model, X = trained(replace(BRIEF, attention_guided=False, rho=1.0))
    patches = model.network.n_patches
    np.testing.assert_allclose(claimed_totals(model, X[:5], epsilon=0.3), 0.3 * patches)
    two, _ = trained(replace(BRIEF, attention_guided=False, rho=1.0, n_blocks=2))
    # Two blocks at epsilon / 2; the second one also reads the fused token.
    expected = 0.15 * patches + 0.15 * (patches + 1)
    np.testing.assert_allclose(claimed_totals(two, X[:5], epsilon=0.3), expected)


def test_the_claim_is_the_papers_sum_over_patches() -> None:
    model, X = trained()
    by_hand = (0.3 / (1 - model.attention(X[:5]))).sum(axis=1)
    np.testing.assert_allclose(claimed_totals(model, X[:5], epsilon=0.3), by_hand, rtol=1e-4)


def test_the_likelihood_is_that_of_the_laplace_law() -> None:
    rng = np.random.default_rng(0)
    centres, scales = rng.normal(size=(3, 4, 2)), rng.uniform(0.5, 2.0, size=(3, 4))
    table = leakage._log_likelihoods(centres, scales, SeededNoise(1))
    wide = np.broadcast_to(scales[..., None], centres.shape)
    released = centres + float_laplace(centres.shape, scale=wide, source=SeededNoise(1))
    for i, z in enumerate(released):
        for j in range(3):
            law = stats.laplace(loc=centres[j], scale=scales[j][:, None])
            assert table[i, j] == pytest.approx(law.logpdf(z).sum())


def test_noise_that_hides_everything_leaves_chance() -> None:
    model, X = trained(replace(BRIEF, attention_guided=False))
    block = measure_leakage(model, X, epsilon=1e-6, n_series=100)
    # Binomial(100, 1/100) exceeds 12 with probability below 1e-9.
    assert block["reidentification"] <= 0.12
    assert abs(block["realised_loss_median"]) < 1e-2


def test_identical_series_cannot_be_told_apart() -> None:
    model, X = trained()
    block = measure_leakage(model, np.repeat(X[:1], 10, axis=0), epsilon=1.0)
    assert block["realised_loss_median"] == pytest.approx(0.0, abs=0.1)
    assert block["empirical_sensitivity"] == pytest.approx(0.0, abs=1e-4)


def test_the_law_is_the_one_that_releases_follow() -> None:
    model, X = trained()
    centres, scales = release_law(model, X[:64], epsilon=0.5)
    _, traces = replace_epsilon(model, 0.5).traces(X[:64], SYSTEM_NOISE)
    unit = (traces[0].released.double().numpy() - centres) / scales[..., None]
    assert stats.kstest(unit.ravel(), stats.laplace.cdf).pvalue > 1e-6
    assert stats.kstest(1.15 * unit.ravel(), stats.laplace.cdf).pvalue < 1e-6


def replace_epsilon(model: TrainedSoftShape, epsilon: float) -> TrainedSoftShape:
    return replace(model, epsilon=epsilon)


def test_a_bias_makes_any_nominal_epsilon_harmless() -> None:
    data = load_dataset("GunPoint")
    y, y_test = (np.searchsorted(data.classes, part) for part in (data.y_train, data.y_test))
    found = initialisation_trick(
        data.X_train,
        y,
        data.X_test,
        y_test,
        n_classes=2,
        settings=replace(BRIEF, steps=80),
    )
    assert found["nominal_epsilon"] == 0.01
    assert found["tricked_accuracy"] > 0.8


def test_one_series_or_a_bad_budget_is_refused() -> None:
    model, X = trained(replace(BRIEF, steps=1))
    with pytest.raises(TacitError, match="2 series"):
        measure_leakage(model, X[:1], epsilon=1.0)
    with pytest.raises(TacitError, match="epsilon"):
        measure_leakage(model, X, epsilon=0.0)
