"""The shuffled report: calibration, range and what is charged for it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from seeded import SeededNoise
from tacit.accounting import compose_shuffled, privunit_cap
from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan, PrivUnitSettings
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.privunit import PrivUnitReport
from tacit.guarantee import round_up
from tacit.noise import SYSTEM_NOISE

N = 60


@lru_cache
def plan(**changes: int) -> FleetPlan:
    return make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=24,
        mechanism="privunit",
        n_clients=N,
        n_kernels=20,
        **{"n_rounds": 6, **changes},  # type: ignore[arg-type]
    )


def report(**changes: int) -> PrivUnitReport:
    return PrivUnitReport(plan(**changes))


def test_the_whole_run_spends_the_target_and_not_more() -> None:
    spent = report().guarantee([N] * 6)
    assert spent is not None
    assert 0.99 * plan().epsilon < spent.epsilon <= plan().epsilon
    assert (spent.model, spent.unit, spent.neighbours) == ("shuffle", "client", "replace")
    local = report().local_epsilon
    rounds = [(local, N)] * 6
    assert spent.epsilon == compose_shuffled(rounds, delta=plan().delta, cap=privunit_cap)


def test_shuffling_allows_more_than_plain_composition() -> None:
    assert report().local_epsilon > plan().epsilon / 6


def test_rounds_in_turn_compose_only_where_a_client_takes_part() -> None:
    turns = plan(clients_per_round=20)
    assert turns.client_rounds == 2
    assert turns.n_min == 20
    spent = PrivUnitReport(turns).guarantee([20, 20])
    assert spent is not None
    assert spent.epsilon <= turns.epsilon


def test_a_batch_of_one_is_charged_the_local_epsilon() -> None:
    spent = report().guarantee([1])
    assert spent is not None
    assert spent.epsilon == pytest.approx(report().local_epsilon, rel=1e-4)


def test_what_was_received_is_accounted_whatever_delta_the_plan_has() -> None:
    wide = replace(plan(), delta=1e-2)
    found = PrivUnitReport(wide).guarantee([200])
    assert found is not None
    assert found.epsilon <= PrivUnitReport(wide).local_epsilon


def test_honest_reports_pass_the_range_check_and_longer_ones_do_not() -> None:
    rows = np.random.default_rng(0).standard_normal((2000, plan().dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    mechanism = report()
    reports = mechanism.randomize(rows, source=SYSTEM_NOISE)
    for sent in reports:
        message = mechanism.encode(sent, source=SYSTEM_NOISE).analyser
        np.testing.assert_array_equal(mechanism.decode(message), sent)
    longer = reports[0] / np.linalg.norm(reports[0]) * mechanism.largest_norm * 1.01
    message = mechanism.encode(longer, source=SYSTEM_NOISE).analyser
    with pytest.raises(TacitError, match="outside the randomizer's range"):
        mechanism.check(message)


def test_a_client_without_gradient_still_sends_a_report_of_full_size() -> None:
    zero = np.zeros((1, plan().dimension))
    sent = report().randomize(zero, source=SeededNoise(0))
    assert np.linalg.norm(sent) > 0.1 * report().largest_norm


def test_a_plan_of_the_other_mechanism_is_refused() -> None:
    other = make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=24,
        mechanism="distributed",
        n_clients=N,
        n_kernels=20,
        n_rounds=6,
    )
    with pytest.raises(TacitError, match="not privunit"):
        PrivUnitReport(other)
    with pytest.raises(TacitError, match="local_epsilon"):
        replace(plan(), settings=PrivUnitSettings(local_epsilon=0.0))


@pytest.mark.parametrize(("n_clients", "n_rounds"), [(2, 1), (2, 3), (3, 7), (5, 12), (20, 2)])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_what_is_accounted_never_passes_what_was_asked(
    n_clients: int, n_rounds: int, epsilon: float
) -> None:
    plan = make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=24,
        mechanism="privunit",
        n_clients=n_clients,
        n_rounds=n_rounds,
        epsilon=epsilon,
        n_kernels=5,
    )
    total = PrivUnitReport(plan).guarantee([n_clients] * n_rounds)
    assert total is not None
    assert 0.999 * epsilon < total.epsilon <= epsilon


def test_what_holds_if_the_sizes_are_chosen_is_stated() -> None:
    """More reports lower epsilon, but not against who chooses the sizes after seeing models."""
    planned = replace(plan(), n_min=200)
    more = PrivUnitReport(planned).guarantee([400] * 3)
    assert more is not None
    (said,) = [part for part in more.assumptions if "chose the sizes" in part]
    assert f"({planned.epsilon:g}, {planned.delta:g}) holds" in said
    assert "at least 200 reports" in said
    unamplified = report().guarantee([1])
    assert unamplified is not None
    assert not any("chose the sizes" in part for part in unamplified.assumptions)


def test_what_is_left_against_a_cheating_shuffler_is_stated() -> None:
    """It can forward one client among reports of its own: then nothing amplifies."""
    amplified = PrivUnitReport(replace(plan(), n_min=200)).guarantee([200] * 3)
    assert amplified is not None
    assert amplified.model == "shuffle"
    (said,) = [part for part in amplified.not_covered if "forwards one client" in part]
    local = report().local_epsilon
    assert f"{round_up(local)} a round and {round_up(3 * local)} in all" in said
    unamplified = report().guarantee([1])
    assert unamplified is not None
    assert unamplified.model == "local"
    assert not any("forwards one client" in part for part in unamplified.not_covered)
