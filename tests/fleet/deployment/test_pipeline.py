"""Both mechanisms from series to model: randomize, seal, token, shuffle, open, debit, learn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tacit.data import load_dataset, split_clients
from tacit.fleet.deployment.analyser import Analyser
from tacit.fleet.deployment.seal import Sealer, new_key, sealed_size
from tacit.fleet.deployment.shuffler import Shuffler
from tacit.fleet.deployment.tokens import make_token, new_secret, node_key
from tacit.fleet.learning.learner import Learner, model_from_bytes, model_to_bytes
from tacit.fleet.reports.calibration import make_plan

RUN = "run1"
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
    private, public = new_key()
    names, secret = [f"node-{i}" for i in range(N_NODES)], new_secret()
    sealer = Sealer(public, run=RUN, report_bytes=learner.message_bytes)
    shuffler = Shuffler(
        run=RUN,
        secret=secret,
        nodes=names,
        sealed_bytes=sealed_size(learner.message_bytes),
        messages_per_node=learner.messages_per_node,
        n_min=n_min,
        round_seconds=100.0,
        folder=folder / "shuffler",
    )
    analyser = Analyser(
        run=RUN,
        rounds=rounds,
        n_min=n_min,
        epsilon=EPSILON,
        delta=plan.delta,
        private_key=private,
        rule=learner,
        folder=folder,
    )
    for round_number in range(1, rounds + 1):
        shuffler.open_round(round_number)
        for i, name in enumerate(names[drop:]):
            mine = owner == i
            messages = learner.report(
                analyser.state.model, data.X_train[mine], data.y_train[mine].astype(str)
            )
            body = b"".join(sealer.seal(m, round_number=round_number) for m in messages)
            body = os.urandom(len(body)) if i < bad else body
            token = make_token(
                node_key(secret, run=RUN, node=name),
                run=RUN,
                round_number=round_number,
                sealed=body,
            )
            shuffler.accept(node=name, token=token, run=RUN, round_number=round_number, body=body)
        batch = shuffler.release()
        assert batch is not None
        analyser.receive(batch)
        shuffler.acknowledge()
    labels = learner.predict(analyser.state.model, data.X_test)
    return analyser, learner, float(np.mean(labels == data.y_test.astype(str)))


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
def test_a_sum_of_too_few_valid_reports_is_charged_as_no_sum_and_stops_the_run(
    tmp_path: Path,
) -> None:
    """17 of 22 open: below the 19 of the theorem, so every client has its own noise alone."""
    analyser, learner, _ = run_fleet(tmp_path, "distributed", rounds=1, bad=5)
    status = analyser.status()
    own = learner.spent([17])
    assert own is not None
    assert own.epsilon > EPSILON
    assert status["history"][0]["n"] == 17
    assert not status["history"][0]["released"]
    assert status["spent"]["epsilon"] == pytest.approx(own.epsilon)
    assert "held 17 valid reports" in status["stopped"]
    assert "no secure sum is proven" in status["guarantee"]["assumptions"][0]
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
