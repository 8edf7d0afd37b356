"""The sum that is drawn at once has the law of the reports' sum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.estimator import DPTimeFLClassifier
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports import privunit_sum
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import report_of
from tacit.fleet.reports.privunit_sum import SIMULATED, summed_releases
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.mechanisms import PrivUnitG, calibrate_privunit, randomize_directions
from tacit.noise import SYSTEM_NOISE

DIMENSION, CLIENTS, DRAWS = 6, 40, 4000
FALSE_ALARM = 1e-6


def drawn(epsilon: float, *, at_once: bool) -> tuple[PrivUnitG, Floats, Floats]:
    """Sums of releases of alike but not equal directions."""
    params = calibrate_privunit(epsilon=epsilon, dimension=DIMENSION)
    rng = np.random.default_rng(0)
    rows = np.array([3.0, 1.0, 0.0, 0.0, 0.0, 0.0]) + rng.standard_normal((CLIENTS, DIMENSION))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if at_once:
        found = [summed_releases(rows, params, source=SYSTEM_NOISE) for _ in range(DRAWS)]
    else:
        many = np.tile(rows, (DRAWS, 1))
        single = randomize_directions(many, params, source=SYSTEM_NOISE)
        found = list(single.reshape(DRAWS, CLIENTS, DIMENSION).sum(axis=1))
    return params, rows, np.array(found)


@pytest.mark.seconds
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_both_sums_have_one_law(epsilon: float) -> None:
    """Along the mean direction, across it and along an axis; twins notice 10 % more spread."""
    _, rows, single = drawn(epsilon, at_once=False)
    _, _, together = drawn(epsilon, at_once=True)
    ahead = rows.mean(axis=0)
    across = np.array([-ahead[1], ahead[0], 0.0, 0.0, 0.0, 0.0])
    for axis in (ahead, across, np.eye(DIMENSION)[5]):
        a, b = single @ axis, together @ axis
        assert stats.ks_2samp(a, b).pvalue > FALSE_ALARM
        # 6.5 standard errors of the ratio of two spreads: false alarm below 1e-9.
        allowed = 6.5 * np.sqrt(1.0 / DRAWS)
        assert abs(np.log(a.std() / b.std())) < allowed
        assert abs(np.log(a.std() / (1.3 * b.std()))) > allowed
    # Unbiased: the mean of the sums is the sum of the directions.
    error = together.mean(axis=0) - rows.sum(axis=0)
    assert np.all(np.abs(error) < 6.5 * together.std(axis=0) / np.sqrt(DRAWS))


def test_directions_that_are_all_alike_leave_no_variance_across_lost() -> None:
    """n equal directions u: covariance n (I - u u^T), not a root of something negative."""
    u = np.zeros((privunit_sum._BLOCK, DIMENSION))
    u[:, 0] = 1.0
    found = np.array([privunit_sum._across(u, SYSTEM_NOISE) for _ in range(2000)])
    assert np.abs(found[:, 0]).max() < 1e-6
    spread = found[:, 1:].std(axis=0) / np.sqrt(privunit_sum._BLOCK)
    assert np.all(np.abs(spread - 1.0) < 6.5 / np.sqrt(2 * 2000))


def plan(n_clients: int) -> FleetPlan:
    return make_plan(
        classes=("a", "b"), n_channels=1, length=24, mechanism="privunit", n_clients=n_clients,
        n_rounds=2, n_kernels=8,
    )  # fmt: skip


def test_only_large_fleets_take_the_shortcut_and_say_so() -> None:
    assert report_of(plan(2000)).simulated_apart == ""
    assert report_of(plan(2001)).simulated_apart == SIMULATED


@pytest.mark.parametrize("n_clients", [2000, 2001])
def test_a_run_with_the_shortcut_states_no_guarantee(n_clients: int, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(n_clients, 1, 24))
    y, client = np.arange(n_clients) % 2, np.arange(n_clients)
    model = DPTimeFLClassifier(n_clients=n_clients, n_rounds=2, n_kernels=8, epsilon=1.0)
    model.fit(X, y, client=client)
    if n_clients == 2000:
        assert isinstance(model.guarantee_, DpGuarantee)
        return
    assert isinstance(model.guarantee_, Unprotected)
    assert "simulated" in model.guarantee_.sentence
    assert model.guarantee_.nominal_epsilon is not None
    with pytest.raises(TacitError, match="distributed"):
        model.save(tmp_path / "model")


def test_rows_of_another_length_are_refused() -> None:
    params = calibrate_privunit(epsilon=1.0, dimension=DIMENSION)
    with pytest.raises(TacitError, match="must have shape"):
        summed_releases(np.zeros((3, DIMENSION + 1)), params, source=SYSTEM_NOISE)
