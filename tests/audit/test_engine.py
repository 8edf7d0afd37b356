"""Audit power and audit honesty: every mechanism is consistent, every weakened twin refuted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from seeded import SeededNoise
from tacit.audit import Audited, audit, build, mechanism_names
from tacit.audit.bounds import DpClaim, calibrate_gaussian_sigma
from tacit.audit.engine import search_pair
from tacit.errors import TacitError
from tacit.noise import SYSTEM_NOISE, bernoulli

pytestmark = pytest.mark.core

FALSE_ALARM = 1e-6  # per audit of a sound mechanism
SHARED = (
    "channel",
    "discrete-gaussian",
    "discrete-laplace",
    "gaussian",
    "krr",
    "laplace",
    "laplace-vector",
    "privunit",
)
# Exact: a twin is refuted by its law, so runs only have to show that the code follows it.
TRIALS = 400_000
# Without their laws: runs at which the twin's bound lies five of its standard deviations or more
# above the claim, for the mechanisms where sampling is quick to tell.
SAMPLED = {"discrete-laplace": 1_000_000, "krr": 1_000_000, "laplace": 1_000_000}


def weakened(name: str) -> float:
    """The epsilon of a mechanism with 10 % less noise than epsilon 1 needs."""
    if "gaussian" not in name:
        return 1.0 / 0.9
    wanted = 0.9 * calibrate_gaussian_sigma(1.0, 1e-5)
    low, high = 1.0, 2.0
    for _ in range(40):
        middle = (low + high) / 2
        too_low = calibrate_gaussian_sigma(middle, 1e-5) > wanted
        low, high = (middle, high) if too_low else (low, middle)
    return high


def test_the_shared_mechanisms_are_all_registered() -> None:
    assert set(SHARED) <= set(mechanism_names())


@pytest.mark.parametrize("name", SHARED)
def test_a_sound_mechanism_is_consistent_and_the_bound_is_near(name: str) -> None:
    result = audit(build(name), trials=TRIALS, confidence=1 - FALSE_ALARM)
    assert result.verdict == "consistent"
    assert 0.99 < result.lower_bound <= 1.0
    assert result.lower_bound == result.exact_epsilon
    assert result.method == "exact"
    assert result.seconds < 60
    assert 1.0 < result.detectable_epsilon < 1.35
    assert 0.0 < result.detectable_event < 3e-4  # of the runs of one of 17 inputs
    assert result.power == 0.95


@pytest.mark.parametrize("name", SHARED)
def test_ten_percent_too_little_noise_is_refuted(name: str) -> None:
    twin = build(name, epsilon=weakened(name), claim=1.0)
    result = audit(twin, trials=TRIALS, confidence=1 - FALSE_ALARM)
    assert result.verdict == "refuted"
    assert result.lower_bound > 1.0
    assert "law itself" in result.finding


@pytest.mark.seconds
@pytest.mark.parametrize("name", SAMPLED)
def test_sampling_alone_comes_near_and_refutes_the_twin(name: str) -> None:
    sound = replace(build(name), law=None)
    result = audit(sound, trials=SAMPLED[name], confidence=1 - FALSE_ALARM)
    assert result.verdict == "consistent"
    assert 0.7 < result.lower_bound <= 1.0
    assert result.method == "sampled"
    assert result.exact_epsilon is None
    assert result.lower_bound < 1.0 < result.detectable_epsilon < 1.15
    twin = replace(build(name, epsilon=weakened(name), claim=1.0), law=None)
    result = audit(twin, trials=SAMPLED[name], confidence=1 - FALSE_ALARM)
    assert result.verdict == "refuted"
    assert result.lower_bound > 1.0


@pytest.mark.parametrize("name", SHARED)
def test_code_with_ten_percent_too_little_noise_does_not_follow_the_stated_law(name: str) -> None:
    """The law of the sound mechanism beside runs of the weakened one: a bug in the code."""
    sound, twin = build(name), build(name, epsilon=weakened(name), claim=1.0)
    result = audit(replace(sound, run=twin.run), trials=TRIALS, confidence=1 - FALSE_ALARM)
    assert result.verdict == "refuted"
    assert "do not follow the stated law" in result.finding


@pytest.mark.seconds
@pytest.mark.parametrize("with_law", [True, False])
def test_an_honest_audit_rarely_exceeds_the_truth(with_law: bool) -> None:
    # 200 audits at confidence 0.9 of a mechanism exactly at its claim. More than 48 refutations
    # has probability below 1e-7 if the confidence is honest (20 expected at most).
    def verdict(seed: int) -> str:
        built = build("krr", source=SeededNoise(seed))
        audited = built if with_law else replace(built, law=None)
        return audit(audited, trials=4000, confidence=0.9).verdict

    assert sum(verdict(seed) == "refuted" for seed in range(200)) <= 48


def test_the_search_finds_the_one_leaking_pair() -> None:
    def run(x: int, count: int) -> NDArray[Any]:
        return bernoulli(0.9 if x == 7 else 0.5, (count,), source=SYSTEM_NOISE)

    pairs = [(a, b) for a in range(10) for b in range(a)]
    leaky = Audited("leaky", DpClaim(epsilon=1.0), run, pairs)
    assert 7 in search_pair(leaky, runs=100_000)
    assert audit(leaky, trials=400_000).verdict == "refuted"


def test_a_signal_in_the_spread_is_found() -> None:
    # Equal means, different scales: what the published SoftShape does with its attention.
    def run(x: float, count: int) -> NDArray[Any]:
        from tacit.noise import float_laplace

        return float_laplace((count, 3), scale=1.0 + x, source=SYSTEM_NOISE)

    result = audit(Audited("scales", DpClaim(epsilon=0.5), run, [(0.0, 2.0)]), trials=100_000)
    assert result.verdict == "refuted"


def test_an_output_that_identifies_the_input_is_refuted_at_a_large_epsilon() -> None:
    def run(x: float, count: int) -> NDArray[Any]:
        return np.full(count, x)

    # 250,000 runs without a false alarm prove a rate below 5.8e-5, so at most ln(17,000) = 9.7.
    result = audit(Audited("clear", DpClaim(epsilon=9.0), run, [(0.0, 1.0)]), trials=1_000_000)
    assert result.verdict == "refuted"


def test_an_infinite_output_is_refused() -> None:
    broken = Audited("broken", DpClaim(epsilon=1.0), lambda x, n: np.full(n, np.inf), [(0, 1)])
    with pytest.raises(TacitError, match="finite"):
        audit(broken, trials=4000)


@pytest.mark.parametrize("trials", [0, 1999])
def test_too_few_trials_are_refused(trials: int) -> None:
    with pytest.raises(TacitError, match="trials"):
        audit(build("krr"), trials=trials)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_bad_confidences_are_refused(confidence: float) -> None:
    with pytest.raises(TacitError, match="confidence"):
        audit(build("krr"), trials=4000, confidence=confidence)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(TacitError, match="did you mean 'laplace'"):
        build("laplac")
