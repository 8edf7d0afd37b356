"""PrivUnitG: calibrated, unbiased on the whole ball, of the stated variance, finite, and fast."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, stats

from tacit.errors import TacitError
from tacit.mechanisms import PrivUnitG, calibrate_privunit, randomize_directions, second_moment
from tacit.noise import SYSTEM_NOISE

pytestmark = pytest.mark.core

FALSE_ALARM = 1e-7  # per check, two-sided
Z = stats.norm.isf(FALSE_ALARM / 2)
N = 200_000
EPSILONS = [1e-3, 0.1, 1.0, 4.0, 16.0, 30.0, 100.0, 500.0]


def mean_is(samples: NDArray[Any], value: float) -> bool:
    """Whether the mean of independent samples is `value`, by the central limit theorem."""
    error = samples.std() / math.sqrt(samples.size)
    return bool(abs(samples.mean() - value) < Z * error)


def release(vector: NDArray[Any], params: PrivUnitG, count: int = N) -> NDArray[Any]:
    rows = np.broadcast_to(vector, (count, vector.size))
    return randomize_directions(rows, params, source=SYSTEM_NOISE)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_density_ratio_is_epsilon_from_below(epsilon: float) -> None:
    params = calibrate_privunit(epsilon=epsilon, dimension=3)
    # A coin of probability above 1 - 2**-50 is not tossed: from 40 on there is privacy to spare.
    stated = min(epsilon, 40.1)
    assert stated * (1 - 1e-6) < params.realised_epsilon <= epsilon
    q = stats.norm.sf(params.gamma)
    ratio = math.log(params.p / q) - math.log((1 - params.p) / stats.norm.cdf(params.gamma))
    assert ratio == pytest.approx(params.realised_epsilon, rel=1e-9)
    if epsilon <= 16.0:
        assert ratio == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 7.4])
def test_no_other_p_has_a_smaller_sigma(epsilon: float) -> None:
    def sigma(logit: float) -> float:
        p = 1 / (1 + math.exp(-logit))
        q = 1 / (1 + math.exp(epsilon - logit))
        gamma = stats.norm.isf(q)
        return float(1 / (stats.norm.pdf(gamma) * (p / q - (1 - p) / (1 - q))))

    found = optimize.minimize_scalar(sigma, bounds=(-5, 20), method="bounded")
    params = calibrate_privunit(epsilon=epsilon, dimension=3)
    assert params.sigma == pytest.approx(found.fun, rel=1e-6)


def test_a_cap_too_small_to_be_hit_is_neither_calibrated_nor_sampled() -> None:
    params = calibrate_privunit(epsilon=16.0, dimension=3)
    assert params.q == pytest.approx(2.0**-8, rel=1e-9)
    assert params.sigma < 1.55 * 0.219234  # the least sigma for this epsilon, with a cap of 2.5e-6
    with pytest.raises(TacitError, match="calibrate again"):
        PrivUnitG(epsilon=40.0, dimension=3, p=0.98, gamma=7.0, sigma=0.14)


@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, 810), (4.0, 56)])
def test_variance_at_dimension_128(epsilon: float, expected: float) -> None:
    # Figures of an independent prototype, rounded: second moment less the norm of a unit vector.
    variance = second_moment(calibrate_privunit(epsilon=epsilon, dimension=128)) - 1.0
    assert variance == pytest.approx(expected, abs=0.6)


def test_sigma_is_one_over_the_mean_of_the_component() -> None:
    params = calibrate_privunit(epsilon=2.0, dimension=3)
    q = stats.norm.sf(params.gamma)
    above = integrate.quad(lambda a: a * stats.norm.pdf(a), params.gamma, 12)[0] / q
    below = integrate.quad(lambda a: a * stats.norm.pdf(a), -12, params.gamma)[0] / (1 - q)
    assert params.p * above + (1 - params.p) * below == pytest.approx(1 / params.sigma, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("vector", [[0.6, -0.8, 0.0], [0.3, 0.0, -0.4], [0.0, 0.0, 0.0]])
def test_releases_are_unbiased_on_the_whole_ball(vector: list[float], epsilon: float) -> None:
    x = np.array(vector)
    out = release(x, calibrate_privunit(epsilon=epsilon, dimension=3))
    assert all(mean_is(out[:, i], x[i]) for i in range(3))


def test_the_check_notices_a_small_bias() -> None:
    params = calibrate_privunit(epsilon=4.0, dimension=3)
    biased = dataclasses.replace(params, sigma=1.03 * params.sigma)
    assert not mean_is(release(np.array([0.6, -0.8, 0.0]), biased)[:, 1], -0.8)


@pytest.mark.parametrize("norm", [0.0, 0.5, 1.0])
def test_the_second_moment_is_the_stated_one_for_every_norm(norm: float) -> None:
    params = calibrate_privunit(epsilon=1.0, dimension=16)
    squares = (release(np.full(16, norm / 4.0), params, 100_000) ** 2).sum(axis=1)
    assert mean_is(squares, second_moment(params))
    assert not mean_is(squares, 1.02 * second_moment(params))  # the twin


def test_the_component_lies_above_gamma_with_probability_p() -> None:
    params = calibrate_privunit(epsilon=1.0, dimension=4)
    x = np.array([0.5, 0.5, -0.5, 0.5])
    hits = int(np.count_nonzero(release(x, params) @ x / params.sigma >= params.gamma))
    assert stats.binomtest(hits, N, params.p).pvalue > FALSE_ALARM
    assert stats.binomtest(hits, N, params.p - 0.02).pvalue < FALSE_ALARM  # the twin


def test_given_its_side_the_release_is_a_plain_normal() -> None:
    params = calibrate_privunit(epsilon=1.0, dimension=4)
    x = np.array([0.5, 0.5, -0.5, 0.5])
    g = release(x, params) / params.sigma
    side = g @ np.array([0.5, -0.5, -0.5, -0.5])  # orthogonal to x: a standard normal
    assert stats.kstest(side, "norm").pvalue > FALSE_ALARM
    along = g @ x
    above = along[along >= params.gamma]
    tail = stats.truncnorm(params.gamma, np.inf)
    assert stats.kstest(above, tail.cdf).pvalue > FALSE_ALARM
    assert mean_is(side**2, 1.0)
    assert not mean_is((1.02 * side) ** 2, 1.0)  # the twin


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_extreme_word_gives_a_finite_release(epsilon: float) -> None:
    class Extreme:
        """One word for the first ten calls, so that every sampler meets it; then real ones."""

        def __init__(self, word: int) -> None:
            self.word = word
            self.left = 10

        def words(self, count: int) -> NDArray[Any]:
            self.left -= 1
            if self.left < 0:
                return SYSTEM_NOISE.words(count)
            return np.full(count, self.word, dtype=np.uint64)

    params = calibrate_privunit(epsilon=epsilon, dimension=2)
    for word in (0, 1, 2**63, 2**64 - 1):
        out = randomize_directions(np.eye(2), params, source=Extreme(word))
        assert np.all(np.isfinite(out))


def test_a_source_that_repeats_itself_is_refused() -> None:
    class Stuck:
        def words(self, count: int) -> NDArray[Any]:
            return np.full(count, 2**63, dtype=np.uint64)

    params = calibrate_privunit(epsilon=8.0, dimension=2)
    with pytest.raises(TacitError, match="does not look random"):
        randomize_directions(np.eye(2), params, source=Stuck())


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-9])
def test_tiny_vectors_are_handled_as_nearly_zero(scale: float) -> None:
    params = calibrate_privunit(epsilon=1.0, dimension=3)
    out = randomize_directions(np.full((4, 3), scale), params, source=SYSTEM_NOISE)
    assert np.all(np.isfinite(out))


def test_a_thousand_reports_of_the_usual_size_are_quick() -> None:
    params = calibrate_privunit(epsilon=1.0, dimension=1542)
    vectors = np.zeros((1000, 1542))
    vectors[:, 0] = 1.0
    started = time.process_time()
    randomize_directions(vectors, params, source=SYSTEM_NOISE)
    assert time.process_time() - started < 2.0  # about 0.1 s on an idle core


def test_parameters_that_promise_too_much_cannot_exist() -> None:
    params = calibrate_privunit(epsilon=2.0, dimension=3)
    with pytest.raises(TacitError, match="above the stated"):
        dataclasses.replace(params, epsilon=1.999)
    with pytest.raises(TacitError, match="above the stated"):
        dataclasses.replace(params, p=params.p + 1e-3)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.full((2, 3), 0.7), "norm"),
        (np.array([[np.nan, 0.0, 0.0]]), "NaN"),
        (np.array([[np.inf, 0.0, 0.0]]), "NaN"),
        (np.zeros((2, 4)), "shape"),
        (np.zeros(3), "shape"),
    ],
)
def test_bad_vectors_are_refused(vectors: NDArray[Any], message: str) -> None:
    params = calibrate_privunit(epsilon=1.0, dimension=3)
    with pytest.raises(TacitError, match=message):
        randomize_directions(vectors, params, source=SYSTEM_NOISE)


@pytest.mark.parametrize("epsilon", [0.0, math.nan, math.inf, 501.0])
def test_bad_epsilons_are_refused(epsilon: float) -> None:
    with pytest.raises(TacitError, match="epsilon"):
        calibrate_privunit(epsilon=epsilon, dimension=3)
