"""What the plan promises is what the mechanism does."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.data import load_dataset
from tacit.studio.planning import EPSILONS, devices_needed, make_plan


@pytest.mark.seconds
def test_expectations_stay_under_the_ceiling_and_grow() -> None:
    plan = make_plan(load_dataset("GunPoint"))
    expected = [row["expected"] for row in plan.rows]
    ceiling = [row["ceiling"] for row in plan.rows]
    assert [row["epsilon"] for row in plan.rows] == list(EPSILONS)
    assert all(have <= most + 1e-9 for have, most in zip(expected, ceiling, strict=True))
    assert expected == sorted(expected)
    assert 0.5 <= expected[0] < 0.6
    assert expected[-1] > 0.95
    assert all(row["belief"] == pytest.approx(row["odds"] / (1 + row["odds"])) for row in plan.rows)


@pytest.mark.parametrize(("epsilon", "n_classes"), [(1.0, 2), (2.0, 4), (5.0, 3)])
def test_that_many_devices_give_two_points(epsilon: float, n_classes: int) -> None:
    """Draw at the worst share: the estimate's standard deviation is 0.02 / 1.96, within 5 %.

    4,000 estimates: their standard deviation has a relative error of 1.1 %; five of those are a
    false alarm of 6e-7.
    """
    n = int(devices_needed(epsilon, n_classes))
    keep = np.exp(epsilon) / (np.exp(epsilon) + n_classes - 1)
    other = (1 - keep) / (n_classes - 1)
    share = min(1.0, (min(0.5, keep) - other) / (keep - other))
    rng = np.random.default_rng(0)
    said = rng.binomial(n, other + share * (keep - other), size=4000) / n
    spread = float(np.std((said - other) / (keep - other)))
    assert spread == pytest.approx(0.02 / 1.96, rel=0.056)
