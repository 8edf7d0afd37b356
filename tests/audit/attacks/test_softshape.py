"""The bound on re-identification; tests/cli/test_attack.py runs the whole attack."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from collector_parts import counting_model
from seeded import SeededNoise
from tacit.audit.attacks.result import SoundCheck, best_guess_rate
from tacit.audit.attacks.softshape import attack_softshape, attack_symbols, name_likeliest
from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee
from tacit.local.releases.label import LabelHead
from tacit.mechanisms import krr_matrix, randomize_symbols
from tacit.noise import SYSTEM_NOISE

pytestmark = pytest.mark.core

GUARANTEE = DpGuarantee(epsilon=2.0, model="local", unit="series")


def krr_attack(real_epsilon: float, bound: float) -> SoundCheck:
    """The attacker on k-RR over 10 symbols, one candidate each: it meets the bound exactly."""
    own = np.tile(np.arange(10), 20_000)
    released = randomize_symbols(own, n_symbols=10, epsilon=real_epsilon, source=SYSTEM_NOISE)
    table = krr_matrix(10, real_epsilon)[:, released].T
    named = name_likeliest(table, source=SYSTEM_NOISE)
    hits = int(np.count_nonzero(named == own))
    return SoundCheck.of(hits=hits, runs=own.size, bound=bound, what="krr", guarantee=GUARANTEE)


def test_the_bound_is_met_exactly_by_randomized_response() -> None:
    bound = best_guess_rate(2.0, 10)
    check = krr_attack(2.0, bound)
    assert check.within  # false alarm 1e-6
    assert check.rate == pytest.approx(bound, abs=0.01)
    assert not krr_attack(2.1, bound).within  # the twin: five percent less privacy


def test_best_guess_rates() -> None:
    assert best_guess_rate(1e-12, 100) == pytest.approx(0.01)
    assert best_guess_rate(0.1, 100) == pytest.approx(math.exp(0.1) / (math.exp(0.1) + 99))
    assert best_guess_rate(1000.0, 100) == 1.0
    assert best_guess_rate(1.0, 2, delta=0.9) == 1.0


def test_ties_are_broken_evenly() -> None:
    # 40,000 ties of four: each named 10,000 times within 6 standard deviations.
    named = name_likeliest(np.ones((40_000, 4)), source=SeededNoise(1))
    counts = np.bincount(named, minlength=4)
    assert np.all(np.abs(counts - 10_000) < 6 * math.sqrt(7500))


def test_a_given_model_is_attacked_and_hits_are_counted_as_they_come() -> None:
    """The bound is that of the model's own epsilon; false alarm 1e-6."""
    model = counting_model()
    assert isinstance(model.head, LabelHead)
    candidates = np.random.default_rng(0).normal(size=(20, model.n_channels, model.n_timepoints))
    heard: list[tuple[int, int]] = []
    check = attack_symbols(
        model.head, candidates, epsilon=2.0, count=lambda hits, runs: heard.append((hits, runs))
    )
    assert check.within
    assert check.bound == best_guess_rate(2.0, 20)
    assert [runs for _, runs in heard] == list(range(20, 4001, 20))
    assert all(one[0] <= other[0] for one, other in pairwise(heard))
    assert heard[-1][0] == round(check.rate * 4000)


def test_a_series_that_is_not_there_gets_a_sentence() -> None:
    pytest.importorskip("torch")
    with pytest.raises(TacitError, match="series 150 is not there; GunPoint has 0 to 149"):
        attack_softshape(first=150)
