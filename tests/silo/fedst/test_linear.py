"""Logistic regression against scikit-learn, and P0's plaintext standardisation against shares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from tacit.silo.fedst.linear import (
    Logistic,
    plain_roots,
    roots,
    standard_from,
    standardise,
    train_logistic,
)
from tacit.silo.secure.jax_x64 import enable_x64


def problem() -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(4)
    features = rng.integers(0, 2**20, size=(5, 90))
    codes = (features[0] > features[3]).astype(int) + (features[2] > 3 * 2**18)
    return features, codes


def test_roots_are_exact_up_to_the_edges() -> None:
    near = np.arange(2, 1024)[:, None] ** 2 + np.array([-1, 0, 1])
    values = np.concatenate([np.arange(50), near.ravel(), [2**20 - 1]])
    expected = [math.isqrt(16 * int(v)) for v in values]
    assert plain_roots(values).tolist() == expected
    with enable_x64():
        assert np.asarray(roots(values)).tolist() == expected


def test_plaintext_and_shared_standardisation_agree() -> None:
    features, _ = problem()
    standard = standard_from(features[:, :30])
    with enable_x64():
        shared = np.asarray(standardise(features, standard.centre, standard.multiplier))
    np.testing.assert_array_equal(shared, standard.apply(features))
    assert np.abs(shared).max() <= 8.0
    assert abs(shared[:30].mean()) < 0.01


def test_training_reaches_what_a_library_reaches() -> None:
    features, codes = problem()
    standard = standard_from(features)
    table = standard.apply(features)
    with enable_x64():
        weights, biases = train_logistic(
            table, np.eye(3, dtype=np.int64)[codes], n_steps=600, penalty=1e-2
        )
    model = Logistic(weights=np.asarray(weights), biases=np.asarray(biases), standard=standard)
    library = LogisticRegression(C=1 / (1e-2 * 90), max_iter=2000).fit(table, codes)
    difference = model.probabilities(features) - library.predict_proba(table)
    assert np.abs(difference).max() < 0.02
