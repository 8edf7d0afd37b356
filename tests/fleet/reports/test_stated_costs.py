"""Costs in a plan file: the accountant's pass, and smaller ones are refused."""

from __future__ import annotations

import pytest

from tacit.audit.bounds import gaussian_epsilon
from tacit.errors import TacitError
from tacit.fleet.learning.learner import Learner
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.stated_costs import check_stated_costs, gaussian_delta


def plan(mechanism: str = "distributed", *, n_clients: int = 20, epsilon: float = 8.0) -> FleetPlan:
    return make_plan(
        classes=("a", "b"), n_channels=1, length=32, mechanism=mechanism, n_clients=n_clients,
        epsilon=epsilon, n_rounds=5, n_kernels=2,
    )  # fmt: skip


@pytest.mark.parametrize(("n_clients", "epsilon"), [(3, 400.0), (20, 8.0), (200, 1.0), (50, 0.2)])
def test_the_accountants_costs_pass_and_little_smaller_ones_do_not(
    n_clients: int, epsilon: float
) -> None:
    learner = Learner(plan(n_clients=n_clients, epsilon=epsilon))
    costs = learner.node_costs()
    learner.check_stated(costs)
    for share in (0.9, 1e-6):
        with pytest.raises(TacitError, match="less than its noise gives"):
            learner.check_stated([(share * e, d) for e, d in costs])
    with pytest.raises(TacitError, match="less than its noise gives"):
        learner.check_stated([*costs[:4], (0.0, 0.0)])
    with pytest.raises(TacitError, match="less than its noise gives"):
        learner.check_stated([(e, 0.0) for e, _ in costs])
    with pytest.raises(TacitError, match="less than its noise gives"):
        learner.check_stated([(2.0 * costs[0][0], costs[0][1]), (-costs[0][0], 0.0)])


def test_an_epsilon_that_promises_nothing_is_not_computed() -> None:
    check_stated_costs([(600.0, 1e-5), (1e6, 0.0)], shift_per_sigma=40.0, delta=1e-5)
    with pytest.raises(TacitError, match="less than its noise gives"):
        check_stated_costs([(float("nan"), 1e-5)], shift_per_sigma=1.0, delta=1e-5)


def test_a_mechanism_that_a_node_accounts_itself_takes_no_costs() -> None:
    learner = Learner(plan("privunit"))
    learner.check_stated(learner.node_costs())
    with pytest.raises(TacitError, match="works out by itself"):
        learner.check_stated([(1e-9, 0.0)])


@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_curve_is_that_of_gaussian_noise(mu: float, delta: float) -> None:
    epsilon = gaussian_epsilon(1.0 / mu, delta)
    if epsilon > 0.0:
        assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    check_stated_costs([(epsilon, delta)], shift_per_sigma=mu, delta=delta)
