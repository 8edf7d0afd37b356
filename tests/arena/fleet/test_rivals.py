"""Rivals of the fleet: their real budgets, and that they learn on the features of the fleet."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.arena.fleet import flower
from tacit.arena.fleet.problem import clipped, multiplier
from tacit.arena.fleet.rivals import FLEET_METHODS, gaussian_epsilon
from tacit.arena.outcome import Outcome
from tacit.arena.suites import suite_tasks
from tacit.arena.task import Task
from tacit.data import Dataset, load_dataset
from tacit.guarantee import Unprotected

N = 60


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Embedded; both of its parts together are enough for sixty clients."""
    return load_dataset("ItalyPowerDemand")


def outcome_of(method: str, data: Dataset, epsilon: float) -> Outcome:
    larger = Dataset(
        name=data.name,
        X_train=data.X_test,
        y_train=data.y_test,
        X_test=data.X_train,
        y_test=data.y_train,
        classes=data.classes,
    )
    options = (("n_clients", N), ("split", "iid"))
    task = Task(suite="fleet-rivals", method=method, data="x", epsilon=epsilon, options=options)
    return FLEET_METHODS[method](task, larger)


def nominal_epsilon(found: Outcome) -> float:
    """Rivals draw their noise in float64: no guarantee, whoever they trust."""
    assert isinstance(found.guarantee, Unprotected)
    assert found.guarantee.nominal_epsilon is not None
    return found.guarantee.nominal_epsilon


@pytest.mark.seconds
@pytest.mark.parametrize("method", ["dp-fedavg", "client-dpsgd", "flower-fixed"])
def test_a_rival_learns_with_a_large_budget_and_spends_all_of_it(
    method: str, data: Dataset
) -> None:
    """Half is chance; noise of this budget leaves accuracies of 0.9 and more."""
    found = outcome_of(method, data, 40.0)
    assert found.accuracy > 0.75
    assert 39.9 < nominal_epsilon(found) <= 40.0 + 1e-6


def test_flowers_adaptive_clipping_stops_before_it_passes_the_total(data: Dataset) -> None:
    found = outcome_of("flower-adaptive", data, 1.0)
    assert 0.5 < nominal_epsilon(found) <= 1.0 + 1e-6
    assert 0 < found.details["rounds"] <= 40


def test_flowers_local_noise_is_that_of_the_real_total(data: Dataset) -> None:
    found = outcome_of("flower-local", data, 2.0)
    assert nominal_epsilon(found) <= 2.0
    # Its classical formula asks for far more noise than is needed: its own epsilon is smaller.
    assert found.details["nominal_epsilon"] < 2.0


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_two_accountants_agree_on_the_noise(epsilon: float) -> None:
    """Ours calibrates, dp-accounting accounts: the same total to a thousandth."""
    noise = multiplier(epsilon, rounds=40)
    assert gaussian_epsilon(noise, steps=40) == pytest.approx(epsilon, rel=1e-3)
    assert gaussian_epsilon(0.98 * noise, steps=40) > 1.01 * epsilon


def test_moves_are_clipped_to_the_norm_and_short_ones_kept() -> None:
    moves = np.array([[[3.0, 4.0]], [[0.3, 0.4]], [[0.0, 0.0]]])
    np.testing.assert_allclose(
        clipped(moves, 1.0), [[[0.6, 0.8]], [[0.3, 0.4]], [[0.0, 0.0]]], atol=1e-15
    )


def test_flowers_fixed_clipping_adds_the_calibrated_noise() -> None:
    """Its mean of models that hardly moved is pure noise: 6.5 errors of a spread, 1e-10."""
    pytest.importorskip("flwr", reason="the fleet extra is not installed")
    from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg

    strategy = DifferentialPrivacyServerSideFixedClipping(FedAvg(), 7.0, 0.5, 4)
    weights = np.zeros((2, 4000))
    strategy.current_arrays = flower._record(weights)
    replies = [flower._message(flower._content(weights + 1e-12), node) for node in range(4)]
    arrays, _ = strategy.aggregate_train(1, replies)
    spread = arrays.to_numpy_ndarrays()[0].std()
    allowed = 6.5 / np.sqrt(2 * weights.size)
    assert abs(spread / (7.0 * 0.5 / 4) - 1.0) < allowed
    assert abs(spread / (7.7 * 0.5 / 4) - 1.0) > allowed


def test_the_suite_compares_every_rival_with_the_fleet_on_the_same_deal() -> None:
    tasks = suite_tasks("fleet-rivals")
    cells = {(t.data, t.epsilon, t.seed, dict(t.options)["split"], dict(t.options)["n_clients"])
             for t in tasks if t.method == "timefl"}  # fmt: skip
    assert len(cells) == 3 * 3 * 5 * 3 * 2
    for task in tasks:
        options = dict(task.options)
        assert (task.data, task.epsilon, task.seed, options["split"], options["n_clients"]) in cells
    assert {task.method for task in tasks} == {"timefl", *FLEET_METHODS}
