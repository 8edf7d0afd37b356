"""What `set_up` plans: a run that can afford all of its rounds."""

from __future__ import annotations

import pytest

from tacit.data import load_dataset
from tacit.fleet.deployment.setup import FleetRequest, new_run
from tacit.fleet.learning.learner import Learner


@pytest.mark.parametrize("n_min", [2, 20, 200])
@pytest.mark.parametrize("rounds", [1, 7])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_a_plan_can_afford_all_of_its_rounds(n_min: int, rounds: int, epsilon: float) -> None:
    request = FleetRequest(
        n_nodes=n_min, rounds=rounds, epsilon=epsilon, delta=1e-5, n_min=n_min, n_kernels=8
    )
    fleet = new_run(
        load_dataset("ItalyPowerDemand"), request, public_key=bytes(32), helper_key=bytes(32)
    )
    learner = Learner(fleet.plan)
    total = 0.0
    for done in range(1, rounds + 1):
        guarantee = learner.spent([n_min] * done)
        assert guarantee is not None
        total = guarantee.epsilon
        assert total <= epsilon
    assert total > 0.98 * epsilon, "and leaves little unused"
