"""The one-run audit on toy trainings: noisy sums and a little DP gradient descent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from seeded import SeededNoise
from tacit.audit import audit_training, one_run_lower_bound
from tacit.audit.bounds import calibrate_gaussian_sigma
from tacit.audit.onerun import one_run_p_value
from tacit.errors import TacitError
from tacit.noise import SYSTEM_NOISE, float_gaussian, float_laplace

pytestmark = pytest.mark.core

M = 20_000
DELTA = 1e-10  # the method pays 2 m delta: with more, nothing is proved at this confidence
Mask = NDArray[np.bool_]


def noisy_sum(epsilon: float):  # type: ignore[no-untyped-def]
    """Canary i adds 1 to coordinate i of a sum released with Laplace noise: epsilon-DP."""

    def train(included: Mask) -> NDArray[np.float64]:
        return included + float_laplace((M,), scale=1.0 / epsilon, source=SYSTEM_NOISE)

    return train


def little_dp_sgd(sigma: float, rounds: int):  # type: ignore[no-untyped-def]
    """Full-batch gradient descent with clipped, orthogonal canary gradients and Gaussian noise."""

    def train(included: Mask) -> NDArray[np.float64]:
        weights = np.zeros(M)
        for _ in range(rounds):
            pull = np.clip(included - 0.1 * weights, -1.0, 1.0)
            pull *= included
            weights += pull + float_gaussian((M,), sigma=sigma, source=SYSTEM_NOISE)
        return weights

    return train


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_sound_noisy_sum_is_consistent(epsilon: float) -> None:
    result = audit_training(
        noisy_sum(epsilon), name="sum", n_canaries=M, claimed_epsilon=epsilon, confidence=1 - 1e-6
    )
    assert result.verdict == "consistent"
    assert result.lower_bound > 0.6 * epsilon


def test_a_quarter_of_the_noise_is_refuted() -> None:
    result = audit_training(
        noisy_sum(4.0), name="sum", n_canaries=M, claimed_epsilon=1.0, confidence=1 - 1e-6
    )
    assert result.verdict == "refuted"


def test_little_dp_sgd_is_consistent_and_without_noise_refuted() -> None:
    sigma = calibrate_gaussian_sigma(4.0, DELTA) * math.sqrt(5)
    sound = audit_training(
        little_dp_sgd(sigma, 5),
        name="sgd",
        n_canaries=M,
        claimed_epsilon=4.0,
        delta=DELTA,
        confidence=1 - 1e-6,
    )
    assert sound.verdict == "consistent"
    assert sound.lower_bound > 0.3
    weak = audit_training(
        little_dp_sgd(sigma / 10, 5),
        name="sgd",
        n_canaries=M,
        claimed_epsilon=4.0,
        delta=DELTA,
        confidence=1 - 1e-6,
    )
    assert weak.verdict == "refuted"


def test_the_p_value_is_the_binomial_tail_and_delta_only_raises_it() -> None:
    keep = math.e / (1 + math.e)
    exact = stats.binom.sf(89, 100, keep)
    plain = one_run_p_value(n_canaries=200, n_guesses=100, n_right=90, epsilon=1.0, delta=0.0)
    assert plain == pytest.approx(exact, rel=1e-9)
    more = one_run_p_value(n_canaries=200, n_guesses=100, n_right=90, epsilon=1.0, delta=1e-3)
    # By the definition, term by term.
    tails = [stats.binom.sf(89 - i, 100, keep) for i in range(91)]
    alpha = max((tails[i] - tails[0]) / i for i in range(1, 91))
    assert more == pytest.approx(exact + 2 * 200 * 1e-3 * alpha, rel=1e-6)


def test_the_lower_bound_is_where_the_p_value_meets_the_false_alarm() -> None:
    bound = one_run_lower_bound(
        n_canaries=1000, n_guesses=500, n_right=450, delta=1e-5, false_alarm=0.01
    )
    at = one_run_p_value(n_canaries=1000, n_guesses=500, n_right=450, epsilon=bound, delta=1e-5)
    assert at == pytest.approx(0.01, rel=1e-6)
    assert bound < math.log(0.9 / 0.1)
    assert (
        one_run_lower_bound(
            n_canaries=1000, n_guesses=500, n_right=260, delta=0.0, false_alarm=0.01
        )
        == 0.0
    )


def test_guessing_blindly_is_rarely_refuted() -> None:
    # 300 trainings that ignore the canaries, at confidence 0.9 and a claim of almost nothing:
    # more than 66 refutations has probability below 1e-7 (at most 30 expected).
    rng = np.random.default_rng(5)
    refuted = sum(
        audit_training(
            lambda included: rng.normal(size=included.size),
            name="blind",
            n_canaries=400,
            claimed_epsilon=1e-9,
            confidence=0.9,
            source=SeededNoise(seed),
        ).verdict
        == "refuted"
        for seed in range(300)
    )
    assert refuted <= 66


def test_scores_of_a_wrong_shape_are_refused() -> None:
    with pytest.raises(TacitError, match="scores"):
        audit_training(lambda m: np.zeros(3), name="bad", n_canaries=10, claimed_epsilon=1.0)


@pytest.mark.parametrize("confidence", [0.4, 1.0, 1.5, math.nan])
def test_an_impossible_confidence_is_refused_before_the_training(confidence: float) -> None:
    def train(included: NDArray[Any]) -> NDArray[Any]:
        raise AssertionError("must not be trained")

    with pytest.raises(TacitError, match="confidence"):
        audit_training(train, name="sum", n_canaries=10, claimed_epsilon=1.0, confidence=confidence)
