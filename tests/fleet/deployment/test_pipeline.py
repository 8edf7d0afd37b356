"""Both mechanisms from series to model: randomize, seal, sign, shuffle or add, debit, learn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fleet_servers import TwoServers
from tacit.data import load_dataset, split_clients
from tacit.fleet.deployment.analyser import Analyser
from tacit.fleet.learning.learner import Learner, model_from_bytes, model_to_bytes
from tacit.fleet.reports.calibration import make_plan

N_NODES = 22
EPSILON = 60.0


def run_fleet(
    folder: Path, mechanism: str, *, rounds: int, drop: int = 0, bad: int = 0, n_min: int = 20
) -> tuple[Analyser, Learner, float]:
    data = load_dataset("ItalyPowerDemand")
    plan = make_plan(
        classes=tuple(data.classes),
        n_channels=1,
        length=data.X_train.shape[2],
        mechanism=mechanism,
        n_clients=N_NODES,
        n_min=n_min,
        epsilon=EPSILON,
        n_rounds=rounds,
        n_kernels=8,
    )
    learner = Learner(plan)
    owner = split_clients(data.y_train, n_clients=N_NODES, rng=np.random.default_rng(0))
    fleet = TwoServers(plan, folder, n=N_NODES)
    analyser = fleet.analyser
    for round_number in range(1, rounds + 1):
        fleet.shuffler.open_round(round_number)
        for i, name in enumerate(fleet.names[drop:]):
            mine = owner == i
            parts = learner.report(
                analyser.state.model, data.X_train[mine], data.y_train[mine].astype(str)
            )
            if i < bad:
                parts = parts._replace(analyser=unusable(learner))
            fleet.send(
                fleet.signed(name, parts, round_number=round_number), round_number=round_number
            )
        fleet.finish_round()
    labels = learner.predict(analyser.state.model, data.X_test)
    return analyser, learner, float(np.mean(labels == data.y_test.astype(str)))


def unusable(learner: Learner) -> bytes:
    """A report that no randomizer can have produced."""
    return np.full(learner.message_bytes // 4, np.inf, dtype="<f4").tobytes()


@pytest.fixture(scope="module", params=["privunit", "distributed"])
def two_rounds(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Analyser, Learner, float]]:
    done = run_fleet(tmp_path_factory.mktemp("fleet"), request.param, rounds=2)
    yield done
    done[0].close()


@pytest.mark.seconds
def test_a_fleet_learns_within_its_budget(two_rounds: tuple[Analyser, Learner, float]) -> None:
    analyser, learner, accuracy = two_rounds
    assert accuracy > 0.8
    status = analyser.status()
    assert status["finished"]
    assert [record["n"] for record in status["history"]] == [N_NODES] * 2
    assert all(record["released"] for record in status["history"])
    guarantee = analyser.guarantee()
    assert guarantee is not None
    assert guarantee.epsilon <= status["spent"]["epsilon"] <= EPSILON
    paid = learner.spent([N_NODES, 20])  # the last round for n_min, before it was opened
    assert paid is not None
    assert status["spent"]["epsilon"] == pytest.approx(paid.epsilon, abs=1e-9)
    few = "local" if learner.plan.mechanism == "privunit" else "distributed"
    assert guarantee.model == few


@pytest.mark.seconds
def test_too_few_valid_reports_of_a_shuffled_batch_were_seen_and_are_charged(
    tmp_path: Path,
) -> None:
    analyser, learner, _ = run_fleet(tmp_path, "privunit", rounds=1, bad=5)
    status = analyser.status()
    own = learner.spent([17])
    assert own is not None
    assert status["history"][0]["n"] == 17
    assert not status["history"][0]["released"]
    assert status["spent"]["epsilon"] == pytest.approx(own.epsilon)
    assert analyser.state.model == learner.initial()
    analyser.close()


@pytest.mark.seconds
def test_fewer_reports_cost_more_and_are_counted_as_they_came(tmp_path: Path) -> None:
    analyser, learner, _ = run_fleet(tmp_path, "distributed", rounds=1, drop=2)
    assert [record.n for record in analyser.state.history] == [20]
    of_all, of_twenty = learner.spent([N_NODES]), learner.spent([20])
    assert of_all is not None
    assert of_twenty is not None
    spent = analyser.status()["spent"]["epsilon"]
    assert spent == pytest.approx(of_twenty.epsilon)
    assert spent > of_all.epsilon
    analyser.close()


def test_a_model_survives_the_wire(two_rounds: tuple[Analyser, Learner, float]) -> None:
    analyser, learner, _ = two_rounds
    content = analyser.state.model
    head = model_from_bytes(content, learner.plan)
    assert model_to_bytes(head) == content
    assert head.round_number == 2
