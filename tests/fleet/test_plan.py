"""Plans as JSON: they come back equal, and nothing else is taken for one."""

from __future__ import annotations

import json

import pytest

from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan, plan_from_json
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import REPORTS


def small_plan(mechanism: str) -> FleetPlan:
    return make_plan(
        classes=("a", "b", "c"),
        n_channels=1,
        length=24,
        mechanism=mechanism,
        n_clients=24,
        n_rounds=3,
        n_kernels=20,
    )


@pytest.mark.parametrize("mechanism", REPORTS)
def test_the_plan_survives_json_and_refuses_what_it_does_not_know(mechanism: str) -> None:
    plan = small_plan(mechanism)
    assert plan_from_json(plan.to_json()) == plan
    for text in ("", "[]", "{}", plan.to_json().replace("n_min", "n_max")):
        with pytest.raises(TacitError):
            plan_from_json(text)


def test_a_plan_for_other_features_is_refused() -> None:
    plain = json.loads(small_plan("privunit").to_json())
    del plain["feature_version"]  # as plans were written before features had versions
    with pytest.raises(TacitError, match="train again"):
        plan_from_json(json.dumps(plain))


def test_earlier_plans_send_directions_alone() -> None:
    plain = json.loads(small_plan("privunit").to_json())
    assert plain["training"].pop("clip_norm") > 0.0  # as plans were written before
    assert plan_from_json(json.dumps(plain)).training.clip_norm == 0.0
    plain["training"]["clip_norm"] = -1.0
    with pytest.raises(TacitError, match="clip_norm"):
        plan_from_json(json.dumps(plain))
