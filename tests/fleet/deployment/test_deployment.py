"""A real deployment on localhost: Flower's SuperLink and SuperNodes, our shuffler and analyser.

One story, because starting it all is what takes the time: two clean rounds, then a node, the
shuffler and the SuperLink are killed in turn, and the run is resumed and finished.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from field_sources import check_sources
from fleet_localhost import (
    DATA,
    LocalFleet,
    kill_group,
    last_json,
    local_fleet,
    wait_until,
)
from tacit.data import load_dataset
from tacit.disclosure.evidence import read_evidence
from tacit.disclosure.fields import fields_of
from tacit.fleet.deployment.analyser_state import read_fleet_model
from tacit.fleet.deployment.keys import node_identity
from tacit.fleet.deployment.run import flower_environment
from tacit.fleet.learning.learner import Learner
from tacit.guarantee import round_up
from tacit.system.files import write_secret

NODES = ("node-1", "node-2", "node-3")


def wait_for_round(fleet: LocalFleet, round_number: int, *, seconds: float) -> None:
    wait_until(
        lambda: fleet.status()["round"] >= round_number,
        seconds=seconds,
        what=f"the analyser reaches round {round_number}",
    )


@contextlib.contextmanager
def stranger(fleet: LocalFleet) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A SuperNode with a key of its own making that nobody registered, and its log."""
    folder = fleet.folder / "stranger"
    write_secret(folder / "identity", node_identity()[0])
    node = fleet.node("node-1")
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [
                *("flower-supernode", "--superlink", node.server),
                *("--root-certificates", str(node.server_certificate)),
                *("--auth-supernode-private-key", str(folder / "identity")),
                *("--host", "127.0.0.1", "--port", str(node.runtime_port + 5)),
            ],
            env=flower_environment(folder / "flower"),
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process, log
    finally:
        kill_group(process.pid)
        process.wait()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_fleet_learns_through_crashes_and_spends_what_left(tmp_path: Path) -> None:
    with local_fleet(tmp_path / "fleet") as fleet:
        local_epsilon = Learner(fleet.fleet.plan).node_cost(1).epsilon
        fleet.start("analyser", "shuffler", *NODES)
        figures = f"127.0.0.1:{fleet.server.port + 4}"
        fleet.start_server("--metrics", figures)

        # Two clean rounds: TLS everywhere, nodes authenticated, a model that predicts.
        wait_for_round(fleet, 2, seconds=300)
        with stranger(fleet) as (unknown, said):
            wait_for_round(fleet, 3, seconds=240)
            counts = [record["n"] for record in fleet.status()["history"]]
            assert max(counts) == 3
            assert min(counts) >= 2, "a slow machine may miss a deadline, never n_min"
            told = httpx.get(f"http://{figures}/metrics", trust_env=False).text
            assert "tacit_server_rounds 4.0" in told

            # A node dies in the middle of round 3; so does the shuffler while it holds reports,
            # which are sent again, not made again.
            fleet.kill("node-3")
            wait_until(
                lambda: fleet.shuffler_status()["received"] >= 1,
                seconds=240,
                what="a report of round 3",
            )
            fleet.kill("shuffler")
            assert fleet.status()["round"] == 3
            fleet.start("shuffler")
            assert unknown.wait(240) != 0
            assert "Failed to activate SuperNode" in said.read_text()
        for name in NODES:
            log = (fleet.folder / "logs" / f"{name}.log").read_text()
            assert "application is the installed one" in log, "checked before it was run"
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://{fleet.node('node-1').server}/", trust_env=False)
        wait_for_round(fleet, 4, seconds=240)

        # The SuperLink dies in round 4: the server starts another. Then it dies itself.
        fleet.kill_superlink()
        fleet.kill_server()
        fleet.start("node-3")
        refused = fleet.start_server()
        _, sentence = refused.communicate(timeout=240)
        assert refused.returncode == 2
        assert "add --resume" in sentence
        resumed = fleet.start_server("--resume")
        output, sentence = resumed.communicate(timeout=400)
        assert resumed.returncode == 0, sentence

        for name in NODES:
            assert fleet.running[name].wait(240) == 0, "nodes end by themselves with the run"

        # What was spent is what left: one debit per released round, one per report sent.
        final = last_json(output)
        counts = [record["n"] for record in final["history"]]
        assert final["finished"]
        assert len(counts) == 4
        assert all(2 <= n <= 3 for n in counts)
        assert all(record["released"] for record in final["history"])
        assert fleet.analyser_debits() == [pytest.approx(local_epsilon)] * 4
        assert final["spent"]["epsilon"] == pytest.approx(4 * local_epsilon)
        assert final["guarantee"]["epsilon"] == pytest.approx(4 * local_epsilon)
        assert final["guarantee"]["model"] == "local", "three nodes are not amplified"
        assert "no amplification" in final["guarantee"]["assumptions"][0]
        debited = [round(fleet.spent_by(name) / local_epsilon) for name in NODES]
        assert all(2 <= count <= 4 for count in debited)
        # A node may have paid for a report that was under way when it or its round ended.
        assert sum(counts) <= sum(debited) <= sum(counts) + 2
        # 1500 such runs had a median of .935 and at least .737; .6 is six standard deviations off.
        assert fleet.accuracy() > 0.6

        # The analyser's folder classifies without any service.
        data, used = load_dataset(DATA), read_fleet_model(fleet.folder)
        assert np.mean(used.labels(data.X_test) == data.y_test) == fleet.accuracy()
        assert used.guarantee.to_dict() == final["guarantee"]

        # So does a disclosure: the guarantee, and the sum of the analyser's ledger.
        evidence = read_evidence(fleet.folder)
        stated = fields_of(evidence)
        plain = {k: {"value": f.value, "source": f.source} for k, f in stated.items()}
        analyser = fleet.folder / "analyser"
        check_sources(plain, analyser, analyser / "state")
        assert stated["run.reports"].value == counts
        assert stated["training.epsilon"].value == round_up(used.guarantee.epsilon)
        assert stated["ledger.most_epsilon_of_one_subject"].value >= used.guarantee.epsilon
