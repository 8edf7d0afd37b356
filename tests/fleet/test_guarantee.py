"""Simulation and deployment state the same guarantee for the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fleet_servers import RUN, TwoServers
from seeded import SeededNoise
from tacit.features.feature_map import generated_signals
from tacit.fleet import DPTimeFLClassifier
from tacit.fleet.deployment.analyser import Analyser
from tacit.fleet.deployment.config import RunDescription
from tacit.fleet.learning.head import feature_map
from tacit.fleet.learning.learner import Learner
from tacit.fleet.model import load_fleet_model
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.simulation.fleet import make_fleet
from tacit.fleet.simulation.simulator import simulate
from tacit.guarantee import DpGuarantee

LENGTH = 24


def plan_of(mechanism: str, n_clients: int, **changes: Any) -> FleetPlan:
    options = {"epsilon": 8.0, "n_rounds": 2, "n_kernels": 4, **changes}
    return make_plan(
        classes=("a", "b"),
        n_channels=1,
        length=LENGTH,
        mechanism=mechanism,
        n_clients=n_clients,
        **options,
    )


def simulated(
    plan: FleetPlan, n_clients: int, *, dropout: float = 0.0
) -> tuple[DpGuarantee, list[int]]:
    """What the simulator states, and how many reports every released round had."""
    rng = np.random.default_rng(0)
    rows = feature_map(plan).transform(generated_signals(n_clients, 1, LENGTH, rng))
    labels = np.arange(n_clients) % 2
    fleet = make_fleet(rows, labels, np.arange(n_clients), n_clients=n_clients, n_classes=2)
    run = simulate(fleet, plan, dropout=dropout, rng=rng, source=SeededNoise(0))
    assert isinstance(run.guarantee, DpGuarantee)
    return run.guarantee, [record.n_reports for record in run.history if record.released]


def deployed(plan: FleetPlan, counts: list[int], n_clients: int, folder: Path) -> Analyser:
    """An analyser after rounds of so many reports through both servers."""
    fleet = TwoServers(plan, folder, n=n_clients)
    X = generated_signals(1, 1, LENGTH, np.random.default_rng(1))
    for number, count in enumerate(counts, start=1):
        fleet.shuffler.open_round(number)
        for name in fleet.names[:count]:
            report = fleet.report(name, X, ["a"], round_number=number)
            fleet.send(report, round_number=number)
        fleet.finish_round()
    return fleet.analyser


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("mechanism", "n_clients", "changes", "dropout", "model"),
    [
        pytest.param("privunit", 3, {}, 0.0, "local", id="few clients"),
        pytest.param("privunit", 20, {"n_rounds": 1}, 0.0, "local", id="one round"),
        pytest.param("privunit", 3, {"n_rounds": 7}, 0.0, "shuffle", id="many rounds"),
        pytest.param("privunit", 200, {"epsilon": 2.0}, 0.0, "shuffle", id="many clients"),
        pytest.param("privunit", 9, {"n_min": 4}, 0.3, "local", id="few and missing"),
        pytest.param(
            "privunit", 120, {"n_rounds": 6, "n_min": 90}, 0.2, "shuffle", id="many and missing"
        ),
        pytest.param("distributed", 2, {}, 0.0, "distributed", id="fewest for a sum"),
        pytest.param("distributed", 30, {"n_min": 19}, 0.2, "distributed", id="sum with missing"),
    ],
)
def test_simulator_and_analyser_state_the_same(
    mechanism: str,
    n_clients: int,
    changes: dict[str, Any],
    dropout: float,
    model: str,
    tmp_path: Path,
) -> None:
    plan = plan_of(mechanism, n_clients, **changes)
    stated, counts = simulated(plan, n_clients, dropout=dropout)
    assert (min(counts) < n_clients) == (dropout > 0.0)
    analyser = deployed(plan, counts, n_clients, tmp_path)
    assert [record.n for record in analyser.state.history] == counts
    assert analyser.guarantee() == stated
    assert analyser.status()["guarantee"] == stated.to_dict()
    key = "00" * 32
    described = RunDescription(
        run=RUN, round_seconds=1.0, analyser_key=key, shuffler_key=key, plan=plan
    )
    analyser.state.fleet_model(described).save(tmp_path / "model")
    assert load_fleet_model(tmp_path / "model").guarantee == stated
    assert stated.model == model
    assert stated.epsilon <= plan.epsilon
    assert (stated.delta == 0.0) == (model == "local")
    assert analyser.status()["spent"]["epsilon"] >= stated.epsilon
    if model == "local":
        paid = [Learner(plan).node_cost(i + 1).epsilon for i in range(len(counts))]
        assert stated.epsilon == sum(paid), "what every node debits, nothing less"
    analyser.close()


def test_twenty_clients_in_one_round_are_protected_by_their_own_noise() -> None:
    stated, _ = simulated(plan_of("privunit", 20, n_rounds=1), 20)
    assert (stated.model, stated.epsilon, stated.delta) == ("local", 8.0, 0.0)
    X = generated_signals(20, 1, LENGTH, np.random.default_rng(0))
    classifier = DPTimeFLClassifier(n_clients=20, n_rounds=1, n_kernels=4, random_state=0)
    assert classifier.fit(X, np.arange(20) % 2).guarantee_ == stated


@pytest.mark.parametrize("n_rounds", [1, 2, 3, 7, 49, 320])
@pytest.mark.parametrize("epsilon", [0.3, 3.0, 60.0])
def test_no_number_of_rounds_is_stated_above_the_promised_total(
    n_rounds: int, epsilon: float
) -> None:
    """Also where the sum of the local epsilons passes it and shuffling gains little."""
    plan = plan_of("privunit", 3, n_rounds=n_rounds, epsilon=epsilon)
    learner = Learner(plan)
    stated = [learner.spent([3] * n) for n in {1, n_rounds // 2 + 1, n_rounds - 1, n_rounds} - {0}]
    assert max(found.epsilon for found in stated if found is not None) <= epsilon


def test_a_client_counts_for_the_rounds_in_which_it_can_take_part() -> None:
    plan = plan_of("privunit", 40, n_rounds=6, clients_per_round=20)
    assert plan.client_rounds == 3
    learner = Learner(plan)
    assert learner.spent([20, 19, 18, 20, 20, 17]) == learner.spent([17, 18, 19])
