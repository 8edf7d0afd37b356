"""Logistic regression against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from tacit.silo.fedst.classifiers.linear import Logistic, train_logistic
from tacit.silo.fedst.classifiers.standard import STANDARD_BITS, standard_from
from tacit.silo.secure.jax_x64 import enable_x64


def problem() -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(4)
    features = rng.integers(0, 2**20, size=(5, 90))
    codes = (features[0] > features[3]).astype(int) + (features[2] > 3 * 2**18)
    return features, codes


def test_training_reaches_what_a_library_reaches() -> None:
    features, codes = problem()
    standard = standard_from(features)
    table = standard.apply(features)
    with enable_x64():
        weights, biases = train_logistic(
            (table.T * 2**STANDARD_BITS).astype(np.int64),
            np.eye(3, dtype=np.int64)[codes],
            n_steps=600,
            penalty=1e-2,
        )
    model = Logistic(weights=np.asarray(weights), biases=np.asarray(biases), standard=standard)
    library = LogisticRegression(C=1 / (1e-2 * 90), max_iter=2000).fit(table, codes)
    difference = model.probabilities(features) - library.predict_proba(table)
    assert np.abs(difference).max() < 0.02
