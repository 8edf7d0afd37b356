"""Clients in blocks: sums that depend on neither blocks, cores nor machines."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from seeded import SeededNoise
from tacit.errors import TacitError
from tacit.fleet.learning.clients import group_clients, local_directions
from tacit.fleet.plan import FleetPlan, Training
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.reports.privunit_sum import summed_releases as randomized_sum
from tacit.fleet.simulation.fleet import Fleet, make_fleet, plain_sum
from tacit.fleet.simulation.on_ray import on_ray
from tacit.mechanisms import calibrate_privunit
from tacit.noise import SYSTEM_NOISE

N = 700  # clients of one to three series: more than one stretch of blocks


@lru_cache
def problem() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(3)
    client = np.repeat(np.arange(N), rng.integers(1, 4, N))
    rows = rng.standard_normal((40, 9))
    series = rng.integers(0, 40, len(client))
    return rows, rng.integers(0, 3, len(client)), client, series


@lru_cache
def fleet() -> Fleet:
    rows, labels, client, series = problem()
    return make_fleet(rows, labels, client, n_clients=N, n_classes=3, series=series)


@lru_cache
def weights() -> NDArray[Any]:
    drawn: NDArray[Any] = np.random.default_rng(4).standard_normal((2, 9))
    return drawn


def every() -> NDArray[np.int64]:
    return np.arange(N)


def test_rows_may_stand_for_many_series() -> None:
    rows, labels, client, series = problem()
    copied = make_fleet(rows[series], labels, client, n_clients=N, n_classes=3)
    assert len(fleet().stretches()) > 1
    np.testing.assert_array_equal(
        fleet().directions(every(), weights(), Training()),
        copied.directions(every(), weights(), Training()),
    )


def test_a_block_computes_what_its_clients_compute_alone() -> None:
    rows, labels, client, series = problem()
    together = fleet().directions(every()[::-1], weights(), Training())[::-1]
    for chosen in (0, 1, N - 1):
        own = client == chosen
        alone = group_clients(
            rows[series[own]], labels[own], np.zeros(own.sum(), dtype=int), n_clients=1, n_classes=3
        )[0]
        np.testing.assert_allclose(
            together[chosen], local_directions(weights(), alone, Training())[0], atol=1e-12
        )


def test_totals_are_equal_in_any_order_of_cores() -> None:
    members = every()[::3]
    there = fleet().total(members, weights(), Training(), plain_sum)
    in_order = fleet().total(members, weights(), Training(), plain_sum, in_order=True)
    np.testing.assert_array_equal(there, in_order)
    dense = fleet().directions(members, weights(), Training()).sum(axis=0)
    np.testing.assert_allclose(there, dense, atol=1e-10)


def plan(mechanism: str) -> FleetPlan:
    return make_plan(
        classes=("a", "b"), n_channels=1, length=24, mechanism=mechanism, n_clients=N,
        n_rounds=2, n_kernels=8,
    )  # fmt: skip


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_totals_of_blocks_add_up_to_the_mean_of_all(mechanism: str) -> None:
    """The mean of many equal directions nears them: 6 spreads, false alarm far below 1e-6."""
    report = report_of(plan(mechanism))
    one = np.zeros((N, report.plan.dimension))
    one[:, 0] = 1.0
    source = SeededNoise(5)
    total = sum(report.block_total(part, source=source) for part in np.array_split(one, 4))
    mean = report.released_mean(np.asarray(total), N, source=source)
    spread = report.noise_norm() / np.sqrt(report.plan.dimension)
    assert np.abs(mean - one[0]).max() < 6.0 * spread


@pytest.mark.slow
def test_a_cluster_gives_the_same_sums() -> None:
    ray = pytest.importorskip("ray", reason="the arena extra is not installed")
    try:
        there = on_ray(fleet())
        assert there.deal == fleet().deal
        np.testing.assert_array_equal(
            there.total(every()[::2], weights(), Training(), plain_sum),
            fleet().total(every()[::2], weights(), Training(), plain_sum),
        )
        params = calibrate_privunit(epsilon=1.0, dimension=18)
        drawn = partial(randomized_sum, params=params, source=SYSTEM_NOISE)
        first, second = (there.total(every(), weights(), Training(), drawn) for _ in range(2))
        assert not np.array_equal(first, second)
        with pytest.raises(TacitError, match="noise of their own"):
            there.total(every(), weights(), Training(), plain_sum, in_order=True)
    finally:
        ray.shutdown()
