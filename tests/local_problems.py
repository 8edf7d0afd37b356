"""Small trained models that several tests share; trained once per process."""

from __future__ import annotations

from functools import cache

import numpy as np

from contract import toy_problem
from tacit.data import load_dataset
from tacit.data.dataset import Dataset
from tacit.local.estimator import DPSoftShapeClassifier


@cache
def italy() -> Dataset:
    return load_dataset("ItalyPowerDemand")


@cache
def trained(release: str, epsilon: float = 2.0, channel: str = "optimal") -> DPSoftShapeClassifier:
    """A univariate binary model on real data."""
    data = italy()
    classifier = DPSoftShapeClassifier(
        epsilon, release=release, encoder="kernels", channel=channel, random_state=0
    )
    return classifier.fit(data.X_train, data.y_train)


@cache
def trained_multivariate(release: str) -> tuple[DPSoftShapeClassifier, np.ndarray]:
    """Three classes on three channels, and its training series."""
    X, y = toy_problem(channels=3, n_classes=3, n_series=30)
    classifier = DPSoftShapeClassifier(4.0, release=release, encoder="kernels", random_state=0)
    return classifier.fit(X, y), X
