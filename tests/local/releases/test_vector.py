"""The vector release: inputs in the ball whatever the series, and noise as calibrated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from local_problems import italy, trained, trained_multivariate, vector_head
from tacit.errors import TacitError
from tacit.local.releases.vector import VectorHead, scaled_to_sphere
from tacit.mechanisms import calibrate_privunit
from tacit.noise import SYSTEM_NOISE

FALSE_ALARM = 1e-6


def head_of(mechanism: str, epsilon: float = 2.0) -> VectorHead:
    head = vector_head(trained("vector", 2.0))
    privunit = None
    if mechanism == "privunit":
        privunit = calibrate_privunit(epsilon=epsilon, dimension=head.dimension)
    return replace(head, privunit=privunit, epsilon=epsilon)


def noise_fits(head: VectorHead, epsilon: float) -> bool:
    """Laplace noise of the claimed scale on a clipped vector; Kolmogorov-Smirnov, 100,000 draws."""
    summary = np.full((100_000, head.dimension), 100.0)  # far outside: must be clipped to 1
    values = head.randomize(summary, source=SYSTEM_NOISE)[:, 0]
    law = stats.laplace(loc=1.0 / head.dimension, scale=2.0 / epsilon)
    return bool(stats.kstest(values, law.cdf).pvalue > FALSE_ALARM)


@pytest.mark.seconds
def test_laplace_releases_are_clipped_and_noised_as_claimed() -> None:
    assert noise_fits(head_of("laplace"), 2.0)


def test_the_check_notices_ten_percent_less_noise() -> None:
    assert not noise_fits(head_of("laplace", 2.2), 2.0)


def test_privunit_takes_any_series_to_the_sphere() -> None:
    head = head_of("privunit")
    summary = np.array([[0.0], [1e-9], [5.0], [-1e6]]) * np.ones(head.dimension)
    norms = np.linalg.norm(scaled_to_sphere(summary), axis=1)
    np.testing.assert_allclose(norms, [0.0, 1.0, 1.0, 1.0])
    assert np.all(np.isfinite(head.randomize(summary, source=SYSTEM_NOISE)))


def test_a_randomizer_for_more_budget_or_other_dimensions_is_refused() -> None:
    head = vector_head(trained("vector"))
    for params in (
        calibrate_privunit(epsilon=2.5, dimension=head.dimension),
        calibrate_privunit(epsilon=2.0, dimension=head.dimension + 1),
    ):
        with pytest.raises(TacitError, match="train again"):
            replace(head, privunit=params)


@pytest.mark.seconds
def test_releases_have_few_dimensions_and_a_posterior() -> None:
    classifier, X = trained_multivariate("vector")
    release = classifier.release(X)
    assert release.values.shape == (len(X), vector_head(classifier).dimension)
    assert vector_head(classifier).dimension <= 2
    np.testing.assert_allclose(classifier.posterior(release).sum(axis=1), 1.0)


@pytest.mark.seconds
def test_vectors_of_another_model_are_refused() -> None:
    classifier, X = trained_multivariate("vector")
    release = trained("vector").release(italy().X_test[:3])
    with pytest.raises(TacitError, match="bundle that"):
        classifier.classify(release)
    wrong = replace(classifier.release(X[:2]), values=np.zeros((2, 7)))
    with pytest.raises(TacitError, match="another model"):
        classifier.classify(wrong)
    absurd = replace(classifier.release(X[:2]), values=np.full((2, 2), 1e12))
    absurd = replace(absurd, values=np.full((2, vector_head(classifier).dimension), 1e12))
    with pytest.raises(TacitError, match="no device"):
        classifier.classify(absurd)
