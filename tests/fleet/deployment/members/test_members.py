"""Joining by code, signed statements, renewed certificates, and the next run on one fleet."""

from __future__ import annotations

import asyncio
import copy
import secrets
import shutil
import ssl
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from fleet_localhost import DATA, LocalFleet
from tacit.data import load_dataset
from tacit.errors import BudgetExceeded, TacitError
from tacit.fleet.deployment.batches import registry
from tacit.fleet.deployment.batches.registry import Registry, write_registry
from tacit.fleet.deployment.batches.signatures import new_signing_key
from tacit.fleet.deployment.config import NodeConfig, read_config, read_run
from tacit.fleet.deployment.http import _bare_app
from tacit.fleet.deployment.members import join, next_run, renewal, statements
from tacit.fleet.deployment.members.invitations import Code, invite, redeem
from tacit.fleet.deployment.members.planning import NextRun, plan_next, write_next
from tacit.fleet.deployment.members.routes import add_membership
from tacit.fleet.deployment.node import Outbox, person_ledger
from tacit.fleet.deployment.seal import public_of
from tacit.fleet.deployment.serving.upkeep import Upkeep
from tacit.fleet.learning.learner import Learner
from tacit.system import certificates
from tacit.system.certificates import fingerprint, self_signed


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> LocalFleet:
    changes: dict[str, Any] = {"rounds": 2, "n_kernels": 4, "n_min": 3, "most_nodes": 4}
    folder = tmp_path_factory.mktemp("members") / "fleet"
    return LocalFleet(folder, mechanism="distributed", **changes)


@pytest.fixture
def fleet(written: LocalFleet, tmp_path: Path) -> LocalFleet:
    """A copy of the fleet, because writing one takes most of a second."""
    own = copy.copy(written)
    own.folder = Path(shutil.copytree(written.folder, tmp_path / "fleet"))
    return own


def nodes(folder: Path) -> dict[str, bytes]:
    return Registry.read(folder / "nodes.txt").nodes()


def test_a_code_lets_one_key_in_once(fleet: LocalFleet) -> None:
    shuffler = fleet.folder / "shuffler"
    code = Code.read(invite(shuffler, "node-9").text())
    assert code.fingerprint == fingerprint(shuffler / "tls.crt")
    assert code.url == fleet.server.shuffler_url.replace("127.0.0.1", "localhost")
    assert code.secret.hex() not in (shuffler / "invitations.json").read_text()
    mine, other = (new_signing_key()[1].hex() for _ in range(2))
    with pytest.raises(TacitError, match="was never made"):
        redeem(shuffler, secrets.token_bytes(16), mine)
    assert redeem(shuffler, code.secret, mine) == "node-9"
    assert redeem(shuffler, code.secret, mine) == "node-9", "an answer may get lost"
    with pytest.raises(TacitError, match="was used"):
        redeem(shuffler, code.secret, other)
    assert nodes(shuffler)["node-9"].hex() == mine
    assert "node-9" not in nodes(fleet.folder / "analyser"), "it admits for itself alone"


def test_a_struck_off_node_cannot_use_its_code_again(fleet: LocalFleet) -> None:
    shuffler, key = fleet.folder / "shuffler", new_signing_key()[1].hex()
    code = invite(shuffler, "node-9")
    redeem(shuffler, code.secret, key)
    known = nodes(shuffler)
    del known["node-9"]
    write_registry(shuffler / "nodes.txt", known)
    with pytest.raises(TacitError, match="revoked"):
        redeem(shuffler, code.secret, key)


def test_codes_expire_and_a_newer_one_voids_the_older(
    fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    shuffler, key = fleet.folder / "shuffler", new_signing_key()[1].hex()
    older, newer = (invite(shuffler, "node-9", days=2.0) for _ in range(2))
    with pytest.raises(TacitError, match="was never made"):
        redeem(shuffler, older.secret, key)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3 * 86400.0)
    with pytest.raises(TacitError, match="has expired"):
        redeem(shuffler, newer.secret, key)


def test_no_more_are_invited_than_the_plan_allows(fleet: LocalFleet) -> None:
    shuffler = fleet.folder / "shuffler"
    invite(shuffler, "node-9")
    with pytest.raises(TacitError, match="calibrated for 4 nodes"):
        invite(shuffler, "node-10")
    with pytest.raises(TacitError, match="already knows"):
        invite(shuffler, "node-1")


def test_a_blind_shufflers_analyser_invites_nobody(tmp_path: Path) -> None:
    blind = LocalFleet(tmp_path / "blind", rounds=2, n_kernels=4)
    with pytest.raises(TacitError, match="must not know the nodes"):
        invite(blind.folder / "analyser", "node-9")
    assert not blind.node("node-1").analyser_url


@pytest.mark.parametrize("text", ["", "tacit-", "tacit-!!", "tacit-" + "A" * 80, "hello"])
def test_half_a_code_is_refused(text: str) -> None:
    with pytest.raises(TacitError, match="not a whole code"):
        Code.read(text)


def _to_shuffler(private: bytes, kind: statements.Kind, **said: Any) -> str:
    return statements.signed(private, kind, part="shuffler", **said)


def test_only_its_own_key_speaks_for_a_node(fleet: LocalFleet) -> None:
    shuffler, run = fleet.folder / "shuffler", fleet.fleet.run
    mine = fleet.node("node-1").signing_key.read_bytes()
    others = fleet.node("node-2").signing_key.read_bytes()
    private, new = new_signing_key()
    client = Client(app_of(shuffler, "shuffler"))
    for key in (others, private):
        for kind in get_args(statements.Kind):
            said = _to_shuffler(key, kind, run=run, node="node-1", key=new)
            body = {"node": "node-1", "signature": said, "key": new.hex()}
            assert client.post(f"/v1/{kind}", json=body).status_code == 403
    elsewhere = _to_shuffler(mine, "leave", run="another", node="node-1")
    body = {"node": "node-1", "signature": elsewhere}
    assert client.post("/v1/leave", json=body).status_code == 403
    for nonsense in (b"", b"[]", b'{"node": 1}', b"{", b"x" * 5000):
        assert client.post("/v1/leave", content=nonsense).status_code in (403, 409, 413)
    here = _to_shuffler(mine, "member", run=run, node="node-1")
    assert client.post("/v1/member", json={"node": "node-1", "signature": here}).status_code == 200
    assert client.post("/v1/anything", json={}).status_code == 404
    said = _to_shuffler(mine, "rekey", run=run, node="node-1", key=new)
    body = {"node": "node-1", "signature": said, "key": new.hex()}
    assert client.post("/v1/rekey", json=body).status_code == 403, "the new key must agree"
    assert client.post("/v1/rekey", json={**body, "proof": said}).status_code == 403
    assert nodes(shuffler)["node-1"] != new
    body["proof"] = _to_shuffler(private, "rekey", run=run, node="node-1", key=new)
    assert client.post("/v1/rekey", json=body).json() == {"node": "node-1", "done": "rekey"}
    assert client.post("/v1/rekey", json=body).status_code == 200, "an answer may get lost"
    assert nodes(shuffler)["node-1"] == new
    old = _to_shuffler(mine, "leave", run=run, node="node-1")
    assert client.post("/v1/leave", json={"node": "node-1", "signature": old}).status_code == 403
    now = _to_shuffler(private, "leave", run=run, node="node-1")
    assert client.post("/v1/leave", json={"node": "node-1", "signature": now}).status_code == 200
    assert "node-1" not in nodes(shuffler), "also where too few are left: it may always go"


def test_what_a_node_said_to_one_service_is_nothing_to_the_other(fleet: LocalFleet) -> None:
    """Else it could be revoked there, by the first, when it is admitted again."""
    shuffler, analyser = fleet.folder / "shuffler", fleet.folder / "analyser"
    key = fleet.node("node-1").signing_key.read_bytes()
    for kind in ("leave", "member"):
        said = _to_shuffler(key, kind, run=fleet.fleet.run, node="node-1")
        with pytest.raises(TacitError, match="is not signed by a node"):
            statements.apply(analyser, kind, node="node-1", signature=said)
        assert "node-1" in nodes(analyser)
    statements.apply(
        shuffler,
        "leave",
        node="node-1",
        signature=_to_shuffler(key, "leave", run=fleet.fleet.run, node="node-1"),
    )
    assert "node-1" not in nodes(shuffler)


def test_a_strangers_request_does_not_cost_the_reading_of_the_list(
    fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may send these, and the list may hold ten thousand keys."""
    shuffler, read = fleet.folder / "shuffler", []
    parsed = registry._parsed

    def counted(text: str, path: Path) -> dict[str, bytes]:
        read.append(path)
        return parsed(text, path)

    monkeypatch.setattr(registry, "_parsed", counted)
    client, guess = Client(app_of(shuffler, "shuffler")), new_signing_key()[1].hex()
    for kind in ("join", *get_args(statements.Kind)):
        body = {"node": "node-1", "signature": "0" * 128, "key": guess, "secret": "0" * 32}
        for _ in range(5):
            assert client.post(f"/v1/{kind}", json=body).status_code == 403
    assert len(read) == 1, "and it stays as it is"
    private, public = new_signing_key()
    write_registry(shuffler / "nodes.txt", {**nodes(shuffler), "node-1": public})
    said = _to_shuffler(private, "member", run=fleet.fleet.run, node="node-1")
    body = {"node": "node-1", "signature": said}
    assert client.post("/v1/member", json=body).status_code == 200, "a change counts at once"


class Client:
    """Asks an app without a network."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def post(self, path: str, **body: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://fleet") as client:
                return await client.post(path, **body)

        return asyncio.run(ask())


def app_of(folder: Path, part: str) -> FastAPI:
    """The routes with the services' own answers to what is refused."""
    app = _bare_app(None)
    add_membership(app, folder=folder, part=part)
    return app


def test_a_node_takes_no_plan_from_one_server_alone(
    fleet: LocalFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The services' own answers, handed over without the network; one of them may be a cheat's."""
    codes = {part: invite(fleet.folder / part, "node-9") for part in ("shuffler", "analyser")}
    apps = {code.url: Client(app_of(fleet.folder / part, part)) for part, code in codes.items()}
    altered = {"": ""}

    def redeemed(_: Path, code: Code, public: bytes) -> dict[str, str]:
        body = {"secret": code.secret.hex(), "key": public.hex()}
        answer: dict[str, str] = apps[code.url].post("/v1/join", json=body).json()
        old, new = next(iter(altered.items()))
        if answer["part"] == "shuffler" and old:
            answer["plan"] = answer["plan"].replace(old, new)
        return answer

    monkeypatch.setattr(join, "_redeem", redeemed)
    folder, texts = tmp_path / "node-9", [code.text() for code in codes.values()]
    with pytest.raises(TacitError, match="with the analyser's code too"):
        join.join(folder, texts[:1])
    with pytest.raises(TacitError, match="the shuffler's code is missing"):
        join.join(folder, texts[1:])
    altered.clear()
    altered[fleet.fleet.analyser_key] = "0" * 64
    with pytest.raises(TacitError, match="gave different plans"):
        join.join(folder, texts)
    assert not (folder / "node.toml").exists()
    altered.clear()
    altered[""] = ""
    joined = join.join(folder, texts, person="ann")
    assert (joined.name, joined.run) == ("node-9", fleet.fleet.run)
    config = read_config(folder / "node.toml", NodeConfig)
    assert read_run(config.plan) == fleet.fleet
    assert (config.person, config.server) == ("ann", "")
    with pytest.raises(TacitError, match="is a node already"):
        join.join(folder, texts)


def seen(upkeep: Upkeep) -> tuple[str | None, str | None]:
    return upkeep.trouble, upkeep.announced


def test_certificates_change_in_two_steps_and_a_running_service_follows(
    fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fleet.folder / "shuffler"
    with pytest.raises(TacitError, match="no next certificate"):
        renewal.switch(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    upkeep = Upkeep(folder / "tls.crt", folder / "tls-next.crt")
    upkeep.follow_own(context, folder / "tls.crt", folder / "tls.key")
    upkeep.follow_trusted(context, folder / "analyser.crt")
    upkeep.look()
    assert seen(upkeep) == (None, None)

    before = fingerprint(folder / "tls.crt")
    made = renewal.prepare(folder)
    assert made == renewal.prepare(folder), "what was announced stays"
    upkeep.look()
    assert seen(upkeep) == (None, fingerprint(folder / "tls-next.crt"))
    assert fingerprint(folder / "tls-next.crt") != before
    assert renewal.trust(fleet.folder / "server", of="shuffler", certificate=made[0])
    assert not renewal.trust(fleet.folder / "server", of="shuffler", certificate=made[0])
    assert (fleet.folder / "server" / "shuffler.crt").read_text().count("BEGIN") == 2
    with pytest.raises(TacitError, match="trusts certificates of analyser"):
        renewal.trust(folder, of="server", certificate=made[0])

    # A key without its certificate is not loaded, shows, and heals.
    (folder / "tls-next.key").replace(folder / "tls.key")
    upkeep.look()
    assert "cannot be used" in str(seen(upkeep)[0])
    renewal.switch(folder)
    upkeep.look()
    assert seen(upkeep) == (None, None)
    assert certificates.host_names(folder / "tls.crt") == ("localhost", "127.0.0.1")

    # An expired certificate shows until it is renewed, and is dropped when another is trusted.
    monkeypatch.setattr(certificates, "VALID_DAYS", 0)
    old = self_signed("shuffler", hosts=("localhost",))
    old.write(certificate=folder / "tls.crt", key=folder / "tls.key")
    upkeep.look()
    assert "has expired" in str(seen(upkeep)[0])
    trusted = fleet.folder / "nodes" / "node-1" / "shuffler.crt"
    trusted.write_bytes(old.certificate)
    monkeypatch.setattr(certificates, "VALID_DAYS", 825)
    renewal.prepare(folder)
    renewal.switch(folder)
    upkeep.look()
    assert seen(upkeep) == (None, None)
    renewal.trust(trusted.parent, of="shuffler", certificate=folder / "tls.crt")
    assert trusted.read_text().count("BEGIN") == 1


def test_the_next_run_goes_on_with_the_persons_ledgers(fleet: LocalFleet, tmp_path: Path) -> None:
    config = fleet.node("node-1")
    learner = Learner(fleet.fleet.plan)
    model = learner.initial()
    series = load_dataset(DATA)
    X, y = series.X_train[:4], series.y_train[:4].astype(np.str_)
    outbox = Outbox(config, fleet.fleet, learner)
    for number in (1, 2):
        outbox.commit(number, lambda: learner.report(model, X, y))
    outbox.close()
    spent = fleet.spent_by("node-1")
    assert spent > 0.0

    folder = fleet.folder
    keys = {part: renewal.new_sealing_key(folder / part) for part in ("shuffler", "analyser")}
    asked = NextRun(
        rounds=1, analyser_key=keys["analyser"].hex(), shuffler_key=keys["shuffler"].hex()
    )
    fresh = plan_next(folder, asked)
    assert fresh.run != fleet.fleet.run
    assert (fresh.plan.n_rounds, fresh.plan.epsilon) == (1, fleet.fleet.plan.epsilon)
    plan = tmp_path / "next.toml"
    write_next(plan, fresh)
    with pytest.raises(TacitError, match="is there already"):
        write_next(plan, fresh)
    taken = next_run.take_plan(folder, plan)
    assert set(taken) == {"shuffler", "analyser", "server", "node-1", "node-2", "node-3"}
    assert next_run.take_plan(folder, plan) == [], "asked twice, done once"
    for part, key in keys.items():
        assert public_of((folder / part / "sealing.key").read_bytes()) == key
        assert read_run(folder / part / "plan.toml") == fresh
    kept = folder / "nodes" / "node-1" / "runs" / fleet.fleet.run
    assert (kept / "outbox").exists(), "a sealed report of the last run is never sent in this one"
    assert not (folder / "nodes" / "node-1" / "state").exists()

    now = person_ledger(fleet.node("node-1"), fresh, Learner(fresh.plan))
    assert now.spent() == pytest.approx(spent), "what was spent stays spent"
    with pytest.raises(BudgetExceeded, match="tacit ledger budget"):
        now.check_room(Learner(fresh.plan).node_cost)
    now.close()


def test_a_plan_for_others_or_an_unfinished_run_is_refused(
    fleet: LocalFleet, tmp_path: Path
) -> None:
    plan = tmp_path / "next.toml"
    other = renewal.new_sealing_key(fleet.folder / "analyser").hex()
    (fleet.folder / "analyser" / "sealing-next.key").unlink()
    write_next(plan, plan_next(fleet.folder, NextRun(analyser_key=other)))
    before = {path: path.read_bytes() for path in fleet.folder.rglob("plan.toml")}
    with pytest.raises(TacitError, match="names a sealing key"):
        next_run.take_plan(fleet.folder, plan)
    with pytest.raises(TacitError, match="no part of a fleet"):
        next_run.take_plan(tmp_path / "nowhere", plan)
    assert {path: path.read_bytes() for path in before} == before, "all or none"
    assert next_run.main([str(fleet.folder), str(plan)]) == 2
    assert next_run.main([]) == 2


def test_a_run_is_not_served_twice(fleet: LocalFleet, tmp_path: Path) -> None:
    """Seen to succeed at 873851c: another plan under the run's name, and a former run again."""
    first, plan = tmp_path / "first.toml", tmp_path / "next.toml"
    node = fleet.folder / "nodes" / "node-1"
    first.write_bytes((node / "plan.toml").read_bytes())
    longer = plan_next(fleet.folder, NextRun(rounds=3))
    write_next(plan, replace(longer, run=fleet.fleet.run))
    with pytest.raises(TacitError, match="names a new run"):
        next_run.take_plan(node, plan)
    plan.unlink()
    write_next(plan, longer)
    (node / "state").mkdir(exist_ok=True)
    assert next_run.take_plan(node, plan) == ["node-1"]
    with pytest.raises(TacitError, match="has served run"):
        next_run.take_plan(node, first)
    assert read_run(node / "plan.toml") == longer
