"""Amplification by shuffling: known values, monotone, never above the local epsilon."""

from __future__ import annotations

import math

import pytest

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
