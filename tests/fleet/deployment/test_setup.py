"""What `set_up` plans: a run that can afford all of its rounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tacit.data import load_dataset
from tacit.errors import TacitError
from tacit.fleet.deployment import setup
from tacit.fleet.deployment.batches.records import record_size
from tacit.fleet.deployment.config import LARGEST_BATCH
from tacit.fleet.deployment.members.planning import NextRun, plan_next
from tacit.fleet.deployment.seal import sealed_size
from tacit.fleet.deployment.setup import FleetRequest, new_run
from tacit.fleet.learning.learner import Learner
from tacit.fleet.reports.mechanisms import report_of


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


def test_a_batch_that_no_analyser_would_take_is_refused_when_it_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = FleetRequest(n_nodes=3, rounds=2, epsilon=8.0, delta=1e-5, n_min=3, n_kernels=4)
    data, folder = load_dataset("ItalyPowerDemand"), tmp_path / "fleet"
    plan = new_run(data, request, public_key=bytes(32), helper_key=bytes(32)).plan
    report = report_of(plan)
    one = record_size(sealed_size(report.message_bytes))
    most = LARGEST_BATCH // one
    setup.check_batch_size(report, most)
    with pytest.raises(
        TacitError, match=rf"a batch of {most + 1} nodes would have 4\.0 GiB, and 4"
    ):
        setup.check_batch_size(report, most + 1)

    setup.set_up(folder, data, request, setup.Hosts(port=20_000), seed=0)
    monkeypatch.setattr(setup, "LARGEST_BATCH", 3 * one)
    larger = replace(request, most_nodes=4)
    with pytest.raises(TacitError, match="a batch of 4 nodes"):
        setup.set_up(tmp_path / "other", data, larger, setup.Hosts(port=20_000), seed=0)
    assert not (tmp_path / "other").exists(), "nothing is written of it"
    with pytest.raises(TacitError, match="a batch of 4 nodes"):
        plan_next(folder, NextRun(most_nodes=4))
    assert plan_next(folder, NextRun(most_nodes=3)).most_nodes == 3
