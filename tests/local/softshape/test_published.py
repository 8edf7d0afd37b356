"""Published mode: it learns, its noise is on at test, it promises nothing, it survives saving."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from seeded import SeededNoise
from tacit.data import load_dataset
from tacit.errors import BundleError, TacitError
from tacit.guarantee import Unprotected
from tacit.local.softshape.published import (
    TrainedSoftShape,
    from_state_arrays,
    train_published,
)
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.local.softshape.trained import Normalisation

QUICK = SoftShapeSettings(steps=80, views=4)
Problem = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]


def problem(name: str = "GunPoint") -> Problem:
    data = load_dataset(name)
    codes = [np.searchsorted(data.classes, y) for y in (data.y_train, data.y_test)]
    return data.X_train, codes[0], data.X_test, codes[1]


@pytest.fixture(scope="module")
def gunpoint() -> TrainedSoftShape:
    X, y, _, _ = problem()
    return train_published(X, y, 2, epsilon=1.0, settings=QUICK, seed=3)


def accuracy(trained: TrainedSoftShape, X: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    return float(np.mean(trained.predict_scores(X).argmax(1) == y))


def test_it_learns_with_the_noise_on(gunpoint: TrainedSoftShape) -> None:
    _, _, X, y = problem()
    assert accuracy(gunpoint, X, y) > 0.8


def test_it_learns_several_channels() -> None:
    X, y, X_test, y_test = problem("BasicMotions")
    trained = train_published(X, y, 4, epsilon=None, settings=replace(QUICK, steps=60), seed=0)
    assert X.shape[1] == 6
    assert accuracy(trained, X_test, y_test) > 0.8


def test_scores_are_probabilities_from_one_fresh_release(gunpoint: TrainedSoftShape) -> None:
    _, _, X, _ = problem()
    one, two = gunpoint.predict_scores(X[:20]), gunpoint.predict_scores(X[:20])
    np.testing.assert_allclose(one.sum(1), 1.0, atol=1e-12)
    assert np.all(one != two)
    seeded = [gunpoint.predict_scores(X[:20], SeededNoise(5)) for _ in range(2)]
    np.testing.assert_array_equal(seeded[0], seeded[1])


def test_without_epsilon_nothing_is_random() -> None:
    X, y, _, _ = problem()
    trained = train_published(X, y, 2, epsilon=None, settings=replace(QUICK, steps=3), seed=0)
    np.testing.assert_array_equal(trained.predict_scores(X), trained.predict_scores(X))


def test_one_seed_gives_one_model_and_another_seed_another() -> None:
    X, y, _, _ = problem()
    brief = replace(QUICK, steps=5)
    states = [
        train_published(X, y, 2, epsilon=1.0, settings=brief, seed=seed).state_arrays()
        for seed in (1, 1, 2)
    ]
    assert all(np.array_equal(states[0][key], states[1][key]) for key in states[0])
    assert not np.array_equal(states[0]["network.coefficients"], states[2]["network.coefficients"])


def test_it_promises_nothing(gunpoint: TrainedSoftShape) -> None:
    assert isinstance(gunpoint.guarantee, Unprotected)
    assert gunpoint.guarantee.nominal_epsilon == 1.0
    assert "not a guarantee" in gunpoint.guarantee.sentence


def test_the_state_survives_saving(gunpoint: TrainedSoftShape) -> None:
    _, _, X, _ = problem()
    values = json.loads(json.dumps(gunpoint.state_values()))
    again = from_state_arrays(gunpoint.state_arrays(), values)
    np.testing.assert_array_equal(
        again.predict_scores(X[:9], SeededNoise(1)), gunpoint.predict_scores(X[:9], SeededNoise(1))
    )
    assert again.settings == gunpoint.settings


@pytest.mark.parametrize(
    "missing", ["network.coefficients", "normalisation.offset", "network.head.bias"]
)
def test_a_state_with_a_hole_is_refused(gunpoint: TrainedSoftShape, missing: str) -> None:
    arrays = gunpoint.state_arrays()
    del arrays[missing]
    with pytest.raises(BundleError, match="does not fit"):
        from_state_arrays(arrays, gunpoint.state_values())


def test_a_state_of_another_shape_is_refused(gunpoint: TrainedSoftShape) -> None:
    with pytest.raises(BundleError, match="does not fit"):
        from_state_arrays(gunpoint.state_arrays(), {**gunpoint.state_values(), "n_outputs": 3})


def test_normalisation_is_per_series_for_one_channel_and_per_channel_for_more() -> None:
    rng = np.random.default_rng(0)
    one = rng.normal(5, 3, size=(10, 1, 50))
    scaled = Normalisation.of(one).apply(one)
    np.testing.assert_allclose(scaled.mean(2), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.std(2), 1, atol=1e-5)
    two = np.concatenate([one, 10 * one], axis=1)
    scaled = Normalisation.of(two).apply(two)
    np.testing.assert_allclose(scaled.mean((0, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(scaled[:, 0], scaled[:, 1], atol=1e-5)


def test_constant_series_and_one_class_are_trained_without_nan() -> None:
    X = np.full((4, 1, 30), 7.0)
    trained = train_published(
        X, np.zeros(4, dtype=int), 1, epsilon=1.0, settings=replace(QUICK, steps=3)
    )
    assert np.isfinite(trained.predict_scores(X)).all()


def test_encoder_helpers_have_the_promised_shapes(gunpoint: TrainedSoftShape) -> None:
    X, _, _, _ = problem()
    patches, dim = gunpoint.network.n_patches, gunpoint.settings.embed_dim
    assert gunpoint.embed(X).shape == (50, patches, dim)
    assert gunpoint.encode(X).shape == (50, 2)
    assert gunpoint.attention(X).shape == (50, patches)
    pooled, traces = gunpoint.traces(X)
    assert pooled.shape == (50, 2 * dim)
    assert traces[0].released.shape == (50, patches, dim)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_impossible_budgets_are_refused(epsilon: float) -> None:
    X, y, _, _ = problem()
    with pytest.raises(TacitError, match="epsilon"):
        train_published(X, y, 2, epsilon=epsilon, settings=QUICK)


def test_wrong_shapes_are_refused(gunpoint: TrainedSoftShape) -> None:
    X, y, _, _ = problem()
    with pytest.raises(TacitError, match="shape"):
        train_published(X[:, 0], y, 2, epsilon=1.0)
    with pytest.raises(TacitError, match="labels"):
        train_published(X, y[:-1], 2, epsilon=1.0)
    with pytest.raises(TacitError, match="codes"):
        train_published(X, y + 1, 2, epsilon=1.0)
    with pytest.raises(TacitError, match="steps"):
        gunpoint.predict_scores(X[:, :, :-1])
