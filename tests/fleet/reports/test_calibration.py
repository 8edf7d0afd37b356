"""Plans: what they promise, what they refuse, and the steps that go with their noise."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import default_training, make_plan

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


def test_only_short_runs_take_shorter_steps() -> None:
    rates = [default_training(0.8, n_rounds=n).server_rate for n in (4, 16, 80, 320)]
    assert rates[0] == pytest.approx(rates[1] / 4)
    assert rates[1] == rates[2] == rates[3]


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
