"""What every classifier of the package promises, on top of aeon's own checks.

A family's tests do both:

    @aeon_contract(MyClassifier(small=True))
    def test_aeon_contract(check): check()

    def test_tacit_contract(): check_tacit_classifier(lambda: MyClassifier(small=True))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest
from aeon.testing.estimator_checking import parametrize_with_checks
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.guarantee import DpGuarantee, MpcGuarantee, Unprotected, from_json

Test = TypeVar("Test", bound=Callable[..., None])


def aeon_contract(*estimators: Any) -> Callable[[Test], Test]:
    """Parametrize a test with every check that aeon has for these instances."""
    decorate: Callable[[Test], Test] = parametrize_with_checks(list(estimators))
    return decorate


def toy_problem(
    *, n_series: int = 24, channels: int = 1, length: int = 40, n_classes: int = 2
) -> tuple[Floats, NDArray[np.str_]]:
    """Noisy sine waves whose frequency is the class: easy, small and the same each time."""
    rng = np.random.default_rng(7)
    codes = np.arange(n_series) % n_classes
    time = np.linspace(0.0, 2.0 * np.pi, length)
    phase = rng.uniform(0, 2 * np.pi, size=(n_series, channels, 1))
    waves = np.sin((1.0 + 2.0 * codes)[:, None, None] * time + phase)
    return waves + 0.1 * rng.standard_normal(waves.shape), np.array(["a", "b", "c"])[codes]


def check_tacit_classifier(make: Callable[[], Any]) -> None:
    """Guarantee, history, labels, refitting, shapes and refusal of what cannot be computed."""
    X, y = toy_problem()
    classifier = make()
    classifier.fit(X, y)
    assert isinstance(classifier.guarantee_, (DpGuarantee, MpcGuarantee, Unprotected))
    assert from_json(classifier.guarantee_.to_json()) == classifier.guarantee_
    assert classifier.history_ is not None
    assert list(classifier.classes_) == ["a", "b"]
    assert classifier.predict(X[:1]).shape == (1,)
    probabilities = classifier.predict_proba(X[:5, 0, :])
    assert probabilities.shape == (5, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-9)
    _check_refusals(classifier, X)
    X3, y3 = toy_problem(n_classes=3)
    classifier.fit(X3, y3)
    assert list(classifier.classes_) == ["a", "b", "c"]


def _check_refusals(classifier: Any, X: Floats) -> None:
    for bad in (np.nan, np.inf, 1e13):
        broken = X[:3].copy()
        broken[1, 0, 2] = bad
        # aeon looks at the values before we do, and NumPy warns about infinity minus infinity.
        with np.errstate(invalid="ignore"), pytest.raises(ValueError):
            classifier.predict(broken)
    with pytest.raises(ValueError):
        classifier.predict(X[:3, :, :-1])
