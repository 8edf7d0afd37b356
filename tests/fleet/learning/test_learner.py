"""A plan as services see it: what a node pays."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.fleet.learning.learner import Learner
from tacit.fleet.reports.calibration import make_plan


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_a_node_pays_over_all_rounds_what_the_plan_says(mechanism: str) -> None:
    plan = make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=24,
        mechanism=mechanism,
        n_clients=30,
        epsilon=8.0,
        n_rounds=3,
        n_kernels=8,
    )
    learner = Learner(plan)
    costs = [learner.node_cost(i) for i in (1, 2, 3)]
    if mechanism == "privunit":
        assert len({cost.epsilon for cost in costs}) == 1
        assert costs[0].model == "local"
        assert costs[0].delta == 0.0
    else:
        assert sum(cost.epsilon for cost in costs) <= 8.0 + 1e-9
        assert sum(cost.delta for cost in costs) == pytest.approx(plan.delta)
        assert costs[0].epsilon > costs[1].epsilon > costs[2].epsilon > 0


@pytest.mark.parametrize("content", [b"", b"x" * 10, b"nan"])
def test_a_model_that_is_none_is_refused(content: bytes) -> None:
    learner = Learner(
        make_plan(
            classes=("a", "b"),
            n_channels=1,
            length=24,
            mechanism="privunit",
            n_clients=3,
            n_rounds=2,
            n_kernels=8,
        )
    )
    if content == b"nan":
        content = np.full(len(learner.initial()) // 8, np.nan).tobytes()
    with pytest.raises(TacitError, match="model"):
        learner.report(content, np.ones((1, 1, 24)), ["a"])
