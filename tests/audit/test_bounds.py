"""Confidence bounds and claims, against independent computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from tacit.audit.bounds import (
    DiscreteGaussianClaim,
    DpClaim,
    GaussianClaim,
    calibrate_discrete_gaussian_sigma,
    calibrate_gaussian_sigma,
    discrete_gaussian_epsilon,
    gaussian_epsilon,
    proportion_above,
    proportion_below,
)

pytestmark = pytest.mark.core


@pytest.mark.parametrize(("hits", "runs"), [(0, 50), (1, 50), (25, 50), (49, 50), (50, 50)])
def test_proportions_are_clopper_pearson(hits: int, runs: int) -> None:
    exact = stats.binomtest(hits, runs).proportion_ci(confidence_level=0.99, method="exact")
    assert proportion_above(hits, runs, false_alarm=0.005) == pytest.approx(exact.low)
    assert proportion_below(hits, runs, false_alarm=0.005) == pytest.approx(exact.high)


@pytest.mark.parametrize("p", [0.003, 0.2, 0.5, 0.97])
def test_proportions_miss_no_more_often_than_stated(p: float) -> None:
    # Exact, no sampling: sum the probability of the counts whose bound is wrong.
    runs, false_alarm = 200, 0.01
    counts = np.arange(runs + 1)
    mass = stats.binom.pmf(counts, runs, p)
    lows = [proportion_above(int(k), runs, false_alarm=false_alarm) for k in counts]
    highs = [proportion_below(int(k), runs, false_alarm=false_alarm) for k in counts]
    assert mass[np.array(lows) > p].sum() <= false_alarm
    assert mass[np.array(highs) < p].sum() <= false_alarm


def test_the_plain_claim() -> None:
    claim = DpClaim(epsilon=1.0, delta=0.1)
    assert claim.epsilon_for(0.6, 0.25) == pytest.approx(math.log(2.0))
    assert claim.epsilon_for(0.05, 0.0) == 0.0
    assert claim.epsilon_for(0.2, 0.5) == 0.0
    assert claim.epsilon_for(0.2, 0.0) == math.inf


@pytest.mark.parametrize("sigma", [0.5, 2.0, 3.73])
def test_gaussian_epsilons_agree_with_an_independent_accountant(sigma: float) -> None:
    grid = 1e-4
    continuous = pld.from_gaussian_mechanism(sigma, value_discretization_interval=grid)
    assert gaussian_epsilon(sigma, 1e-5) == pytest.approx(
        continuous.get_epsilon_for_delta(1e-5), abs=2 * grid
    )
    discrete = pld.from_discrete_gaussian_mechanism(sigma, value_discretization_interval=grid)
    assert discrete_gaussian_epsilon(sigma, 1e-5) == pytest.approx(
        discrete.get_epsilon_for_delta(1e-5), abs=2 * grid
    )


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 8.0])
def test_calibration_recovers_epsilon_from_below(epsilon: float) -> None:
    sigma = calibrate_gaussian_sigma(epsilon, 1e-5)
    assert epsilon * (1 - 1e-6) < gaussian_epsilon(sigma, 1e-5) <= epsilon
    sigma = calibrate_discrete_gaussian_sigma(epsilon, 1e-5)
    assert discrete_gaussian_epsilon(sigma, 1e-5) <= epsilon
    assert discrete_gaussian_epsilon(sigma - 1 / 64, 1e-5) > epsilon


@pytest.mark.parametrize("threshold", [-1.0, 0.2, 1.5])
def test_the_gaussian_claim_recovers_sigma_from_any_threshold(threshold: float) -> None:
    sigma = 2.0
    tpr, fpr = stats.norm.sf((threshold - 1) / sigma), stats.norm.sf(threshold / sigma)
    found = GaussianClaim(epsilon=1.0, delta=1e-5).epsilon_for(float(tpr), float(fpr))
    assert found == pytest.approx(gaussian_epsilon(sigma, 1e-5), rel=1e-9)


@pytest.mark.parametrize("threshold", [-3, 0, 1, 4])
def test_the_discrete_claim_recovers_sigma_from_any_threshold(threshold: int) -> None:
    sigma = 2.0
    support = np.arange(-100, 101)
    mass = np.exp(-(support**2) / (2 * sigma**2))
    mass /= mass.sum()
    tpr, fpr = mass[support >= threshold - 1].sum(), mass[support >= threshold].sum()
    found = DiscreteGaussianClaim(epsilon=1.0, delta=1e-5).epsilon_for(tpr, fpr)
    assert found == pytest.approx(discrete_gaussian_epsilon(sigma, 1e-5), rel=1e-6)


def test_claims_cope_with_useless_and_perfect_tests() -> None:
    for claim in (
        GaussianClaim(epsilon=1.0, delta=1e-5),
        DiscreteGaussianClaim(epsilon=1.0, delta=1e-5),
    ):
        assert claim.epsilon_for(0.4, 0.4) == 0.0
        assert claim.epsilon_for(0.3, 0.4) == 0.0
        assert claim.epsilon_for(0.999999, 1e-300) > 30.0
