"""The two services as real processes over TLS, with the nodes' own code as their client."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from command import tacit
from fleet_localhost import LocalFleet, local_fleet, wait_until
from tacit.errors import TacitError
from tacit.fleet.deployment import run
from tacit.fleet.deployment.batches.signatures import digest_of, sign
from tacit.fleet.deployment.http import analyser_servers
from tacit.fleet.deployment.node import (
    Acknowledgement,
    Outbox,
    ShufflerClient,
    load_series,
    take_part,
)
from tacit.fleet.learning.learner import Learner
from tacit.system.certificates import self_signed, trust_only

NODES = ("node-1", "node-2", "node-3")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LocalFleet]:
    with local_fleet(tmp_path / "fleet", round_seconds=4.0) as fleet:
        fleet.start("analyser", "shuffler")
        yield fleet


def model_of(fleet: LocalFleet) -> bytes:
    tls = trust_only(fleet.server.analyser_certificate)
    return httpx.get(f"{fleet.server.analyser_url}/v1/model", verify=tls, trust_env=False).content


def wait_for_round(fleet: LocalFleet, round_number: int) -> None:
    def reached() -> bool:
        try:
            return bool(fleet.shuffler_status()["round"] == round_number)
        except ValueError:  # it is still starting
            return False

    wait_until(reached, seconds=30, what=f"the shuffler opens round {round_number}")


def ask(fleet: LocalFleet, name: str, round_number: int) -> Acknowledgement:
    return take_part(
        fleet.node(name), run=fleet.fleet.run, round_number=round_number, model=model_of(fleet)
    )


def ask_all(fleet: LocalFleet, round_number: int) -> list[Acknowledgement]:
    return [ask(fleet, name, round_number) for name in NODES]


@pytest.mark.seconds
def test_rounds_crashes_and_restarts(fleet: LocalFleet, capsys: pytest.CaptureFixture[str]) -> None:
    local_epsilon = Learner(fleet.fleet.plan).node_cost(1).epsilon
    wait_for_round(fleet, 1)

    # A whole round, all three at once.
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda name: ask(fleet, name, 1), NODES))
    assert all(answer.accepted for answer in answers)
    wait_for_round(fleet, 2)
    # Whoever runs one of the services asks it alone, and draws the answer.
    shuffler = tacit(capsys, "fleet", "status", fleet.folder / "shuffler", "--json").json
    assert shuffler["shuffler"]["round"] == 2
    assert shuffler["shuffler"]["run"] == fleet.fleet.run
    analyser = tacit(capsys, "fleet", "status", fleet.folder / "analyser", "--json").json
    assert (analyser["round"], analyser["shuffler"]) == (2, None)
    for part, words in (("shuffler", "rounds forwarded"), ("analyser", "not asked")):
        assert words in tacit(capsys, "fleet", "status", fleet.folder / part).out

    # The shuffler dies with reports in memory: the nodes send the same bytes again.
    assert ask(fleet, "node-1", 2).accepted
    outbox = fleet.node("node-1").state / "outbox" / "round-000002.sealed"
    sent = outbox.read_bytes()
    fleet.kill("shuffler")
    assert not ask(fleet, "node-1", 2).accepted, "nobody there to take it"
    fleet.start("shuffler")
    wait_for_round(fleet, 2)
    assert fleet.shuffler_status()["received"] == 0, "it kept nothing"
    # The analyser is away when the batch is due: it waits on the shuffler's disk, also if the
    # shuffler itself dies there, until the analyser is back.
    model = model_of(fleet)
    fleet.kill("analyser")
    for name in NODES:
        answer = take_part(fleet.node(name), run=fleet.fleet.run, round_number=2, model=model)
        assert answer.accepted, answer
    assert outbox.read_bytes() == sent
    kept = fleet.folder / "shuffler" / "state" / "batch.sealed"
    wait_until(
        lambda: fleet.shuffler_status()["forwarded"] == 2, seconds=30, what="the batch is made"
    )
    batch = kept.read_bytes()
    assert sent in batch
    fleet.kill("shuffler")
    fleet.start("shuffler")
    assert kept.read_bytes() == batch
    fleet.start("analyser")
    wait_for_round(fleet, 3)
    assert not kept.exists(), "acknowledged, so it is gone"

    status = fleet.status()
    assert [record["n"] for record in status["history"]] == [3, 3]
    assert fleet.analyser_debits() == [pytest.approx(local_epsilon)] * 2
    assert status["spent"]["epsilon"] == pytest.approx(2 * local_epsilon)
    for name in NODES:
        assert fleet.spent_by(name) == pytest.approx(2 * local_epsilon), "never twice"

    # Too late, too often, not at all.
    late = ask(fleet, "node-1", 2)
    assert not late.accepted
    assert "not open" in late.reason
    assert ask(fleet, "node-1", 3).accepted
    assert ask(fleet, "node-1", 3).reason == (
        "round 3 already holds a report of this node; it counts once."
    )
    assert fleet.spent_by("node-1") == pytest.approx(3 * local_epsilon)

    # One report is too few: after its time it waits for another, and the status says so.
    wait_until(
        lambda: "wait for more" in str(fleet.shuffler_status()["trouble"]),
        seconds=30,
        what="the report waits",
    )
    assert (fleet.shuffler_status()["round"], fleet.shuffler_status()["received"]) == (3, 1)
    assert ask(fleet, "node-2", 3).accepted
    wait_for_round(fleet, 4)
    assert [record["n"] for record in fleet.status()["history"]] == [3, 3, 2]
    assert fleet.spent_by("node-1") == pytest.approx(3 * local_epsilon)
    # How well three nodes learn in three rounds is a matter of luck: one run in 800 had .58.
    assert model_of(fleet) != Learner(fleet.fleet.plan).initial()


@pytest.mark.seconds
def test_strangers_and_wrong_bodies_are_refused(fleet: LocalFleet, tmp_path: Path) -> None:
    wait_for_round(fleet, 1)
    config, run = fleet.node("node-1"), fleet.fleet.run
    tls = trust_only(config.shuffler_certificate)
    learner = Learner(fleet.fleet.plan)
    outbox = Outbox(config, fleet.fleet, learner)
    body = outbox.commit(1, lambda: learner.report(model_of(fleet), *load_series(config.data)))
    outbox.close()
    key = config.signing_key.read_bytes()
    http = httpx.Client(base_url=config.shuffler_url, verify=tls, trust_env=False)

    def post(path: str, content: bytes, *, node: str = "node-1", forged: str = "") -> str:
        signature = sign(
            key,
            run=run,
            round_number=1,
            node=node,
            analyser=digest_of(content),
            helper=digest_of(b""),
        )
        headers = {"x-tacit-node": node, "x-tacit-signature": forged or signature.hex()}
        response = http.post(path, content=content, headers=headers)
        assert response.status_code in (403, 409, 413)
        answer = response.json()
        assert answer["refused"].endswith(".")
        return str(answer["code"])

    here = f"/v1/reports/{run}/1"
    assert post(here, body, forged="0" * 128) == "not-registered"
    assert post(here, body, forged="no hexadecimal digits") == "not-registered"
    assert post(here, body, node="node-9") == "not-registered"
    assert post(here, body, node="node-2") == "not-registered"
    assert post(here, body[:-1]) == "wrong-size"
    assert post(here, body + b"x") == "wrong-size"
    assert post(here, bytes(10_000_000)) == "wrong-size"
    assert post(f"/v1/reports/{run}/2", body) == "wrong-round"
    assert post("/v1/reports/other/1", body) == "wrong-run"
    assert fleet.shuffler_status()["received"] == 0
    client = ShufflerClient(config, fleet.fleet)
    assert client.send(body, round_number=1).accepted
    client.close()
    assert fleet.shuffler_status()["received"] == 1
    http.close()

    # The analyser's ingest port speaks to the shuffler alone, and TLS sees to it.
    url = f"https://127.0.0.1:{fleet.analyser.ingest_port}/v1/status"
    trusting = trust_only(fleet.server.analyser_certificate)
    with pytest.raises(httpx.TransportError):
        httpx.get(url, verify=trusting, trust_env=False)
    self_signed("an impostor").write(
        certificate=tmp_path / "impostor.crt", key=tmp_path / "impostor.key"
    )
    trusting.load_cert_chain(tmp_path / "impostor.crt", tmp_path / "impostor.key")
    with pytest.raises(httpx.TransportError):
        httpx.get(url, verify=trusting, trust_env=False)
    known = trust_only(fleet.server.analyser_certificate)
    shuffler = fleet.folder / "shuffler"
    known.load_cert_chain(shuffler / "client.crt", shuffler / "client.key")
    assert httpx.get(url, verify=known, trust_env=False).json()["round"] == 1
    # The public port shows the model and takes no batches.
    public = f"{fleet.server.analyser_url}/v1/batches/{run}/1?batch_id=x&n_nodes=3"
    assert httpx.post(public, content=b"x", verify=known, trust_env=False).status_code == 404
    # No service speaks anything older than TLS 1.3.
    for service, port in (
        (fleet.server.shuffler_certificate, int(fleet.server.shuffler_url.rpartition(":")[2])),
        (fleet.server.analyser_certificate, fleet.analyser.ingest_port),
        (fleet.server.analyser_certificate, fleet.analyser.public_port),
    ):
        assert handshake(service, port, ssl.TLSVersion.TLSv1_3)
        assert not handshake(service, port, ssl.TLSVersion.TLSv1_2)


def handshake(certificate: Path, port: int, version: ssl.TLSVersion) -> bool:
    tls = trust_only(certificate)
    tls.minimum_version = tls.maximum_version = version
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        try:
            tls.wrap_socket(plain, server_hostname="127.0.0.1").close()
        except ssl.SSLError:
            return False
    return True


@pytest.mark.parametrize("damage", ["missing", "of another certificate"])
def test_a_service_without_its_key_says_so(tmp_path: Path, damage: str) -> None:
    fleet = LocalFleet(tmp_path / "fleet", n_kernels=4)
    key = fleet.analyser.private_key
    if damage == "missing":
        key.unlink()
    else:
        key.write_bytes(fleet.server.private_key.read_bytes())
    with pytest.raises(TacitError, match="cannot use the certificate"):
        analyser_servers(fleet.analyser, None, max_bytes=1)  # type: ignore[arg-type]


def test_a_folder_serves_one_shuffler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_STOP_SECONDS", 0.1)
    with (
        run._only_one(tmp_path / "state", "shuffler"),
        pytest.raises(TacitError, match="another shuffler uses"),
        run._only_one(tmp_path / "state", "shuffler"),
    ):
        pass
    with run._only_one(tmp_path / "state", "shuffler"):
        pass
