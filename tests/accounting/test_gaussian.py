"""Gaussian accounting against exact curves: one-dimensional enumeration and dp-accounting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting import (
    calibrate_gaussian,
    compose_gaussian,
    summed_noise_gap,
    zcdp_epsilon,
)
from tacit.arrays import Floats
from tacit.errors import TacitError


def discrete_gaussian(sigma: float, reach: int) -> Floats:
    mass = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    normed: Floats = mass / mass.sum()
    return normed


def exact_delta(sigma: float, *, shift: int, epsilon: float) -> float:
    """Hockey-stick divergence of a discrete Gaussian and its shift, summed over the integers."""
    reach = int(60 * sigma) + shift
    mass = np.concatenate([np.zeros(shift), discrete_gaussian(sigma, reach), np.zeros(shift)])
    moved = np.roll(mass, shift)
    return float(np.maximum(mass - math.exp(epsilon) * moved, 0.0).sum())


@pytest.mark.parametrize("sigma", [1.5, 4.0, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_discrete_noise_is_never_under_accounted(sigma: float, delta: float) -> None:
    clip_norm = 2  # replacing a value in [-2, 2] moves an integer sum by up to 4
    epsilon = compose_gaussian(noise_multiplier=sigma / clip_norm, rounds=1, delta=delta)
    assert exact_delta(sigma, shift=2 * clip_norm, epsilon=epsilon) <= delta
    # The twin: half the sensitivity, the usual mistake, is noticed by the same check.
    half = compose_gaussian(
        noise_multiplier=sigma / clip_norm, rounds=1, delta=delta, neighbours="add-remove"
    )
    assert exact_delta(sigma, shift=2 * clip_norm, epsilon=half) > delta


@pytest.mark.parametrize("rounds", [1, 7, 100])
def test_continuous_noise_agrees_with_dp_accounting(rounds: int) -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    ours = compose_gaussian(
        noise_multiplier=6.0, rounds=rounds, delta=1e-6, noise="continuous", neighbours="add-remove"
    )
    theirs = pld.from_gaussian_mechanism(6.0).self_compose(rounds).get_epsilon_for_delta(1e-6)
    assert ours == pytest.approx(theirs, rel=2e-3)
    replaced = compose_gaussian(
        noise_multiplier=12.0, rounds=rounds, delta=1e-6, noise="continuous"
    )
    assert replaced == pytest.approx(ours, rel=1e-6)


def test_poisson_sampling_agrees_with_the_known_value() -> None:
    epsilon = compose_gaussian(
        noise_multiplier=1.0,
        rounds=100,
        delta=1e-5,
        noise="continuous",
        neighbours="add-remove",
        sampling_rate=0.1,
    )
    assert epsilon == pytest.approx(7.047, rel=2e-3)


def test_sampling_is_refused_where_it_is_not_sound() -> None:
    with pytest.raises(TacitError, match="add-remove"):
        compose_gaussian(noise_multiplier=1.0, rounds=1, delta=1e-5, sampling_rate=0.1)


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(0.05, 20.0),
    log_delta=st.floats(-12.0, -2.0),
    rounds=st.integers(1, 2000),
    noise=st.sampled_from(["discrete", "continuous"]),
)
def test_calibrated_noise_recovers_the_target_from_below(
    epsilon: float, log_delta: float, rounds: int, noise: Any
) -> None:
    delta = 10.0**log_delta
    multiplier = calibrate_gaussian(epsilon=epsilon, delta=delta, rounds=rounds, noise=noise)
    spent = compose_gaussian(noise_multiplier=multiplier, rounds=rounds, delta=delta, noise=noise)
    assert 0.999 * epsilon <= spent <= epsilon


@pytest.mark.parametrize("local_sigma", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("n_clients", [2, 5])
def test_a_sum_of_discrete_gaussians_stays_within_its_gap(
    local_sigma: float, n_clients: int
) -> None:
    one = discrete_gaussian(local_sigma, 20)
    total = one
    for _ in range(n_clients - 1):
        total = np.convolve(total, one)
    whole = discrete_gaussian(local_sigma * math.sqrt(n_clients), (total.size - 1) // 2)
    near = slice(total.size // 2 - 4, total.size // 2 + 5)  # where truncation plays no part
    gap = summed_noise_gap(local_sigma=local_sigma, n_clients=n_clients, dimension=1)
    off = float(np.abs(np.log(total[near] / whole[near])).max())
    assert off <= gap
    assert off > 1e-3 * gap  # the bound is about something


def test_the_gap_is_paid_for() -> None:
    free = compose_gaussian(noise_multiplier=5.0, rounds=10, delta=1e-6)
    paid = compose_gaussian(noise_multiplier=5.0, rounds=10, delta=1e-6, summed_gap=0.01)
    assert paid >= free + 0.2


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(TacitError):
        compose_gaussian(noise_multiplier=bad, rounds=1, delta=1e-5)
    with pytest.raises(TacitError):
        calibrate_gaussian(epsilon=bad, delta=1e-5)
    with pytest.raises(TacitError):
        zcdp_epsilon(rho=bad, delta=1e-5)
    with pytest.raises(TacitError):
        summed_noise_gap(local_sigma=min(bad, 0.1), n_clients=2, dimension=1)


def test_an_unreachable_epsilon_is_refused() -> None:
    with pytest.raises(TacitError, match="no noise"):
        calibrate_gaussian(epsilon=0.1, delta=1e-6, summed_gap=1.0)


@pytest.mark.parametrize("multiplier", [1e-9, 1e9, 1e200])
@pytest.mark.parametrize("noise", ["discrete", "continuous"])
def test_extreme_noise_has_an_answer(multiplier: float, noise: Any) -> None:
    epsilon = compose_gaussian(noise_multiplier=multiplier, rounds=1, delta=1e-6, noise=noise)
    assert 0.0 <= epsilon < math.inf
