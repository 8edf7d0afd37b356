"""Amplification by shuffling: known values, monotone, never above the local epsilon."""

from __future__ import annotations

import math
import time

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tacit.accounting import (
    calibrate_shuffle,
    closed_form_epsilon,
    closed_form_limit,
    compose_shuffled,
    shuffle_delta,
    shuffle_epsilon,
)
from tacit.errors import TacitError


def test_the_published_example_lies_in_its_interval() -> None:
    bound = shuffle_epsilon(local_epsilon=1.16, n=10_000, delta=1e-9)
    assert 0.0935 <= bound.central_epsilon <= 0.0965


@pytest.mark.parametrize(
    ("local_epsilon", "n", "delta", "central"),
    [  # computed independently with another implementation of the same theorem
        (2.48, 10**4, 1e-9, 0.309),
        (4.15, 10**5, 1e-9, 0.256),
        (5.29, 10**6, 1e-9, 0.142),
        (1.0, 100, 1e-3, 0.33),
        (2.0, 100, 1e-3, 1.28),
        (4.0, 100, 1e-3, 4.0),
        (8.0, 100, 1e-3, 8.0),
    ],
)
def test_values_of_an_independent_evaluation(
    local_epsilon: float, n: int, delta: float, central: float
) -> None:
    bound = shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=delta)
    assert bound.central_epsilon == pytest.approx(central, rel=0.01)
    assert bound.central_epsilon <= local_epsilon


@pytest.mark.parametrize(("n", "delta"), [(2, 1e-3), (100, 1e-6), (10**6, 1e-9), (10**9, 1e-12)])
def test_epsilon_and_delta_are_two_views_of_one_bound(n: int, delta: float) -> None:
    bound = shuffle_epsilon(local_epsilon=1.0, n=n, delta=delta)
    back = shuffle_delta(local_epsilon=1.0, n=n, central_epsilon=bound.central_epsilon)
    assert back == pytest.approx(delta, rel=1e-3)


@pytest.mark.seconds
def test_more_reports_and_a_larger_delta_never_hurt() -> None:
    by_n = [
        shuffle_epsilon(local_epsilon=2.0, n=n, delta=1e-13).central_epsilon
        for n in (1, 2, 10, 10**2, 10**3, 10**5, 10**7, 10**9, 10**12)
    ]
    by_delta = [
        shuffle_epsilon(local_epsilon=2.0, n=1000, delta=delta).central_epsilon
        for delta in (1e-100, 1e-20, 1e-12, 1e-6, 9e-4)
    ]
    assert by_n == sorted(by_n, reverse=True)
    assert by_delta == sorted(by_delta, reverse=True)


def test_the_closed_form_is_valid_only_within_its_condition_and_is_looser() -> None:
    limit = closed_form_limit(n=10_000, delta=1e-6)
    inside = closed_form_epsilon(local_epsilon=0.99 * limit, n=10_000, delta=1e-6)
    exact = shuffle_epsilon(local_epsilon=0.99 * limit, n=10_000, delta=1e-6)
    assert exact.central_epsilon < inside.central_epsilon
    with pytest.raises(TacitError, match="closed form needs"):
        closed_form_epsilon(local_epsilon=1.01 * limit, n=10_000, delta=1e-6)


def test_a_delta_of_one_over_n_is_refused_unless_forced() -> None:
    with pytest.raises(TacitError, match="not below 1/n"):
        shuffle_epsilon(local_epsilon=1.0, n=100, delta=0.01)
    assert shuffle_epsilon(local_epsilon=1.0, n=100, delta=0.01, force=True).central_epsilon < 1.0


def test_it_says_plainly_when_shuffling_does_not_help() -> None:
    assert "next to no amplification" in shuffle_epsilon(local_epsilon=4, n=100, delta=1e-3).note
    assert "factor" in shuffle_epsilon(local_epsilon=1, n=10**4, delta=1e-6).note


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(TacitError, match="local_epsilon"):
        shuffle_epsilon(local_epsilon=bad, n=100, delta=1e-6)
    with pytest.raises(TacitError, match="delta"):
        shuffle_epsilon(local_epsilon=1.0, n=100, delta=-abs(bad))


def test_composition_recovers_from_calibration_below_the_target() -> None:
    local = calibrate_shuffle(central_epsilon=8.0, n=1000, delta=1e-5, rounds=64)
    total = compose_shuffled([(local, 1000)] * 64, delta=1e-5)
    assert 7.9 < total <= 8.0


@pytest.mark.seconds
@settings(max_examples=25, deadline=None)
@given(
    central_epsilon=st.floats(0.01, 12.0),
    log_n=st.floats(0.0, 7.0),
    log_delta=st.floats(-9.0, -0.5),
)
def test_one_calibrated_round_recovers_the_target_from_below(
    central_epsilon: float, log_n: float, log_delta: float
) -> None:
    n = round(10.0**log_n)
    delta = 10.0**log_delta / n
    local = calibrate_shuffle(central_epsilon=central_epsilon, n=n, delta=delta)
    again = shuffle_epsilon(local_epsilon=local, n=n, delta=delta).central_epsilon
    assert again <= central_epsilon
    # Close to it as well, unless the curve jumps: some more local epsilon would be too much.
    more = shuffle_epsilon(local_epsilon=local * 1.0001, n=n, delta=delta).central_epsilon
    assert again > 0.999 * central_epsilon or more > central_epsilon


@pytest.mark.seconds
@settings(max_examples=6, deadline=None)
@given(
    central_epsilon=st.floats(0.2, 10.0),
    n=st.sampled_from([2, 50, 1000, 10**5]),
    rounds=st.integers(2, 300),
)
def test_many_calibrated_rounds_recover_the_target_from_below(
    central_epsilon: float, n: int, rounds: int
) -> None:
    local = calibrate_shuffle(central_epsilon=central_epsilon, n=n, delta=1e-6, rounds=rounds)
    again = compose_shuffled([(local, n)] * rounds, delta=1e-6)
    more = compose_shuffled([(local * 1.001, n)] * rounds, delta=1e-6)
    assert again <= central_epsilon < more


@pytest.mark.seconds
@settings(max_examples=30, deadline=None)
@given(
    local_epsilon=st.floats(1e-3, 30.0),
    n=st.integers(1, 10**9),
    log_delta=st.floats(-80.0, -0.3),
)
def test_the_bound_never_exceeds_the_local_epsilon_and_always_exists(
    local_epsilon: float, n: int, log_delta: float
) -> None:
    bound = shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=10.0**log_delta, force=True)
    assert 0.0 < bound.central_epsilon <= local_epsilon
    assert bound.amplification >= 1.0


@pytest.mark.seconds
def test_all_of_the_range_takes_under_two_seconds_each() -> None:
    for n in (2, 10**3, 10**6, 10**9):
        for local_epsilon in (0.1, 2.0, 8.0):
            start = time.process_time()
            shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=1e-10)
            assert time.process_time() - start < 2.0


def exact_pmf(c: int, u: int, p: mpmath.mpf) -> mpmath.mpf:
    log_choose = mpmath.loggamma(c + 1) - mpmath.loggamma(u + 1) - mpmath.loggamma(c - u + 1)
    return mpmath.exp(log_choose + u * mpmath.log(p) + (c - u) * mpmath.log(1 - p))


def exact_cdf(c: int, u: int, p: mpmath.mpf) -> mpmath.mpf:
    """Summed from the largest term downwards until nothing changes."""
    term, total = exact_pmf(c, u, p), mpmath.mpf(0)
    while u >= 0 and term > total * mpmath.mpf(10) ** -16:
        total += term
        term *= mpmath.mpf(u) / (c - u + 1) * (1 - p) / p
        u -= 1
    return total


@pytest.mark.seconds
@pytest.mark.parametrize("c", [10, 1000, 10**5, 10**7, 10**8, 10**9])
@pytest.mark.parametrize("deviations", [2.0, 6.0, 20.0])
def test_scipy_stays_within_the_error_that_the_bound_allows(c: int, deviations: float) -> None:
    with mpmath.workdps(50):
        for p in (0.5, 0.01):
            u = int(c * p - deviations * math.sqrt(c * p * (1.0 - p)))
            if u < 1:
                continue
            exact_p = mpmath.mpf(p)
            allowed = 1e-10 + 1e-16 * c
            pmf_error = mpmath.mpf(float(binom.pmf(u, c, p))) / exact_pmf(c, u, exact_p) - 1
            cdf_error = mpmath.mpf(float(binom.cdf(u, c, p))) / exact_cdf(c, u, exact_p) - 1
            assert abs(cdf_error) < allowed
            assert abs(pmf_error) < allowed


@pytest.mark.parametrize("local_epsilon", [1e-12, 99.0, 101.0, 1e4])
def test_extreme_local_epsilons_have_an_answer(local_epsilon: float) -> None:
    bound = shuffle_epsilon(local_epsilon=local_epsilon, n=1000, delta=1e-6)
    assert 0.0 < bound.central_epsilon <= local_epsilon
    total = compose_shuffled([(local_epsilon, 1000)] * 3, delta=1e-6)
    assert 0.0 < total <= 3.0 * local_epsilon * (1.0 + 1e-12)
