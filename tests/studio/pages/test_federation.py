"""Federations in the studio: what a real silo run opened and why, and a fleet that is asleep."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from studio_server import ended, running_studio
from tacit.data import load_dataset
from tacit.errors import TacitError
from tacit.fleet.deployment.analyser_state import AnalyserRound, AnalyserState, analyser_config
from tacit.fleet.deployment.config import ServerConfig, read_run
from tacit.silo.fedst.settings import Settings
from tacit.silo.party.localhost import run_federation
from tacit.silo.party.model_file import bind_to_series, write_model
from tacit.silo.party.receipts import write_receipt
from tacit.silo.plan import Plan
from tacit.silo.secure.session import LocalInputs
from tacit.silo.stored_model import load_stored
from tacit.studio.federations.fleet import analyser_role, fleet_run, shuffler_role

pytestmark = [pytest.mark.seconds, pytest.mark.xdist_group("studio")]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("workspace")
    (root / "federations").mkdir()
    return root


@pytest.fixture(scope="module")
def client(workspace: Path) -> Iterator[httpx.Client]:
    with running_studio(workspace) as studio, studio.client() as opened:
        yield opened


@pytest.fixture(scope="module")
def north(workspace: Path) -> str:
    """The initiator's output of a real run of three parties."""
    pytest.importorskip("spu")
    safetensors = pytest.importorskip("safetensors.numpy")
    data = load_dataset("ItalyPowerDemand")
    codes = (data.y_train == data.classes[1]).astype(np.intp)
    inputs = [LocalInputs(X=data.X_train[p::3], y=codes[p::3]) for p in range(3)]
    plan = Plan(
        program="fedst",
        parties=("north", "east", "south"),
        protocol="ABY3",
        classes=tuple(data.classes),
        series_length=data.length,
        counts=tuple(len(own.X) for own in inputs),
        params=Settings(n_candidates=20, n_shapelets=5).to_params(),
    )
    outcome = run_federation(plan, inputs)
    folder = workspace / "federations" / "north"
    folder.mkdir()
    own = inputs[0].X
    write_model(folder, bind_to_series(safetensors.save(dict(outcome.arrays)), own))
    write_receipt(folder, outcome.receipts[0])
    np.savez(folder / "own.npz", X=own, y=data.y_train[0::3])
    return folder.name


@pytest.mark.silo
def test_what_a_run_opened_and_why(client: httpx.Client, north: str) -> None:
    assert "/federation/north" in client.get("/federation").text
    page = client.get("/federation/north").text
    for words in ("shapelet", "north", "east", "ABY3", "Why this class?", "of the decision"):
        assert words in page, words
    assert 'guarantee protected"' in page
    other = client.get("/federation/north?index=3").text
    assert "Series 3 of the initiator" in other
    assert "is not there" in client.get("/federation/north?index=999").json()["error"]


@pytest.mark.silo
def test_a_trained_silo_is_explained_and_taken_along(client: httpx.Client, tmp_path: Path) -> None:
    pytest.importorskip("spu")
    said = {"method": "fedst", "data": "ItalyPowerDemand", "parties": "3", "candidates": "15",
            "shapelets": "5"}  # fmt: skip
    job = client.post("/train", json=said).json()["job"]
    assert ended(client, job) == "done", client.get(f"/jobs/{job}").text
    done = client.get(f"/jobs/{job}").text
    (run,) = re.findall(r'href="(/federation/[^"/]+)"', done)
    assert f'href="{run}/model"' in done
    assert "Why this class?" in client.get(run).text
    with zipfile.ZipFile(io.BytesIO(client.get(f"{run}/model").content)) as archive:
        archive.extractall(tmp_path)
    name = run.rsplit("/", 1)[1]
    packed = {file.name for file in (tmp_path / name).iterdir()}
    assert packed == {"model.safetensors", "receipt.json", "own.npz", "training.json"}
    model = load_stored(tmp_path / name, own=np.load(tmp_path / name / "own.npz")["X"])
    assert model.receipt.plan.n_parties == 3


@pytest.fixture(scope="module")
def fleet(workspace: Path) -> Path:
    """A fleet of five nodes after three of six rounds, with its services stopped."""
    folder = workspace / "federations" / "fleet"
    made = subprocess.run(
        [sys.executable, "-m", "tacit", "fleet", "init", str(folder), "--data", "GunPoint",
         "--nodes", "5", "--rounds", "6", "--epsilon", "8", "--n-min", "2", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    config = analyser_config(folder)
    config.state.mkdir(exist_ok=True)
    history = tuple(
        AnalyserRound(round_number=n, batch_id=f"b{n}", n=reports, left_out=0, released=True,
                      epsilon=1.25 * n)
        for n, reports in enumerate((5, 5, 4), start=1)
    )  # fmt: skip
    state = AnalyserState(model=b"", next_round=4, history=history)
    (config.state / "checkpoint.npz").write_bytes(state.to_bytes(read_run(config.plan).run))
    return folder


def test_a_fleet_is_a_table_of_rounds_and_the_health_of_its_parts(
    client: httpx.Client, fleet: Path
) -> None:
    page = client.get("/federation/fleet").text
    assert "holds no model" in client.get("/federation/fleet/model").json()["error"]
    (rows,) = re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows.split("<tr>")[1:]]
    assert cells == [
        ["1", "5", "0", "1.25", "yes"],
        ["2", "5", "0", "2.5", "yes"],
        ["3", "4", "0", "3.75", "yes"],
    ]
    assert "<h1>Round 4 of 6, epsilon 3.75 of 8 spent</h1>" in page
    assert page.count('<figure class="chart"') == 2
    assert page.count("does not answer") == 2, "the services sleep, and the page says so"
    assert "4 of 5 reported in round 3, 1 did not." in page
    assert "batch_id" not in page
    for raw in ("True", "False", "None"):
        assert f">{raw}<" not in page


def test_a_fleets_page_follows_its_run(client: httpx.Client, fleet: Path) -> None:
    page = client.get("/federation/fleet").text
    (state,) = re.findall(r'data-state="(.*?)"', page)
    with client.stream("GET", "/federation/fleet/events") as events:
        first = next(events.iter_lines())
    assert json.loads(first.removeprefix("data: "))["state"] == state, "nothing new, no new page"


def test_the_services_are_asked_at_the_same_time(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits until the other has been asked: one after the other they would wait in vain."""
    both = threading.Barrier(2, timeout=60.0)

    def ask(config: ServerConfig, *, timeout_seconds: float) -> dict[str, object]:
        assert timeout_seconds <= 3.0
        both.wait()
        raise TacitError("is asleep.")

    for name in ("analyser_status", "shuffler_status"):
        monkeypatch.setattr(f"tacit.fleet.deployment.run.{name}", ask)
    for role in fleet_run(fleet).roles[:2]:
        assert role.sentence.startswith("is asleep.")


def test_the_health_of_services_that_answer() -> None:
    said = {"trouble": None, "stopped": None, "processing": True}
    busy = analyser_role(said, "", stored=False, finished=False)
    assert (busy.health, busy.sentence) == ("busy", "is opening a batch.")
    bad = analyser_role({**said, "trouble": "no room"}, "", stored=False, finished=False)
    assert (bad.health, bad.sentence) == ("bad", "no room")
    shuffler = {"trouble": None, "finished": False, "round": 7, "received": 0}
    assert shuffler_role(shuffler, "", 6).sentence == "has forwarded the last round."
    assert shuffler_role(shuffler, "", 9).sentence == "collects round 7 of 9."


def test_a_silo_before_and_during_its_run(client: httpx.Client, workspace: Path) -> None:
    folder = workspace / "federations" / "three"
    made = subprocess.run(
        [sys.executable, "-m", "tacit", "silo", "init", str(folder),
         "--parties", "north,east,south", "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    page = client.get("/federation/three").text
    for words in ("3 parties, no receipt yet", "127.0.0.1:9100", "tacit silo party", "ABY3"):
        assert words in page, words
    assert page.count("not started") == 3
    lines = [
        {"event": "waiting", "parties": ["south"]},
        {"event": "progress", "done": 3, "total": 9, "message": "distances"},
    ]
    log = "".join(json.dumps(line) + "\n" for line in lines) + '{"event": "prog'
    (folder / "north" / "run.jsonl").write_text(log)
    with client.stream("GET", "/federation/three/events") as events:
        said = json.loads(next(events.iter_lines()).removeprefix("data: "))["values"]
    assert said["state-north"] == "distances"
    assert said["bar-north"] == [3, 9]
    assert said["state-east"] == "not started"


def test_a_strange_folder_gets_a_sentence(client: httpx.Client, workspace: Path) -> None:
    (workspace / "federations" / "empty").mkdir()
    assert "receipt.json" in client.get("/federation/empty").json()["error"]
