"""Plans: what they promise, what they refuse, and the steps that go with their noise."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan, plan_from_json
from tacit.fleet.reports.calibration import default_training, make_plan, run_noise

N = 24


def small_plan(mechanism: str, **changes: Any) -> FleetPlan:
    return make_plan(
        classes=("a", "b", "c"),
        n_channels=1,
        length=24,
        mechanism=mechanism,
        n_clients=N,
        n_rounds=3,
        n_kernels=20,
        **changes,
    )


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"n_min": N + 1}, "n_min"),
        ({"clients_per_round": N + 1}, "clients_per_round"),
        ({"clients_per_round": 1}, "clients_per_round"),
    ],
)
def test_impossible_plans_are_refused(changes: dict[str, object], word: str) -> None:
    with pytest.raises(TacitError, match=word):
        small_plan("privunit", **changes)


@pytest.mark.parametrize(("n_rounds", "most"), [(4, 1.5 / 4), (16, 1.5), (80, 1.5), (320, 1.5)])
def test_no_run_goes_further_than_its_noise_allows_and_a_short_one_less(
    n_rounds: int, most: float
) -> None:
    plan = replace(small_plan("privunit"), n_rounds=n_rounds, client_rounds=n_rounds)
    assert run_noise(0.014 * (plan.dimension * n_rounds) ** 0.5, plan) == pytest.approx(0.014)
    spread = default_training(0.014, plan).server_rate * n_rounds * 0.014
    assert spread == pytest.approx(most)


def test_a_quiet_run_of_many_coordinates_steps_by_the_norm_of_its_noise() -> None:
    wide = replace(small_plan("privunit"), n_kernels=900, n_rounds=80, client_rounds=80)
    rates = [default_training(noise, wide).server_rate for noise in (0.006, 0.012)]
    assert rates[0] / rates[1] == pytest.approx(2**1.5)


def test_a_noisy_run_goes_until_its_noise_has_spread_and_keeps_its_last_iterate() -> None:
    plan = replace(small_plan("privunit"), n_rounds=80, client_rounds=80)
    quiet, noisy = default_training(0.01, plan), default_training(4.0, plan)
    assert noisy.server_rate * 80 * 4.0 == pytest.approx(1.2)
    assert int(80 * (1.0 - noisy.averaged_share)) == 79
    assert quiet.averaged_share == 0.5


@pytest.mark.parametrize(("n_channels", "kind"), [(1, "fine"), (3, "coarse")])
def test_noisy_runs_on_several_channels_take_coarse_features(n_channels: int, kind: str) -> None:
    def planned(epsilon: float) -> FleetPlan:
        return make_plan(
            classes=("a", "b"), n_channels=n_channels, length=24, mechanism="distributed",
            n_clients=200, epsilon=epsilon, n_rounds=20, n_kernels=8,
        )  # fmt: skip

    assert planned(1.0).feature_kind == kind
    assert planned(12.0).feature_kind == "fine"
    assert plan_from_json(planned(1.0).to_json()) == planned(1.0)
    earlier = json.loads(planned(12.0).to_json())
    del earlier["feature_kind"]
    assert plan_from_json(json.dumps(earlier)) == planned(12.0)
    with pytest.raises(TacitError, match="unknown public features 'rough'"):
        replace(planned(1.0), feature_kind="rough")  # type: ignore[arg-type]


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_a_delta_that_all_clients_together_would_pass_is_refused_when_planning(
    mechanism: str,
) -> None:
    """It is n_min that is calibrated, and n_clients that a batch may really hold."""
    with pytest.raises(TacitError, match=r"delta = 0\.001 is not below 1/1100"):
        make_plan(
            classes=("a", "b"),
            n_channels=1,
            length=24,
            mechanism=mechanism,
            n_clients=1100,
            n_min=900,
            delta=1e-3,
            n_kernels=4,
        )
