"""The data page: files that belong together, a dry run of the importer, and all data at hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from studio_server import Studio, running_studio
from tacit.studio.datasets import data_argument, data_names, near_names, trainable_names
from tacit.studio.dry_runs import MOST_BYTES, dry_run, in_fields
from tacit.studio.workspace import open_workspace

pytestmark = [pytest.mark.seconds, pytest.mark.xdist_group("studio")]


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running_studio(tmp_path_factory.mktemp("workspace")) as running:
        yield running


@pytest.fixture(scope="module")
def client(studio: Studio) -> Iterator[httpx.Client]:
    with studio.client() as opened:
        yield opened


def test_what_has_no_labels_is_not_offered_for_training(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    np.savez(workspace.place("data", "plain.npz"), X=np.zeros((4, 1, 9)))
    np.savez(workspace.place("data", "own.npz"), X=np.zeros((4, 1, 9)), y=np.array(list("abab")))
    workspace.place("data", "broken.npz").write_bytes(b"not a zip")
    assert {"plain", "own", "broken"} <= set(near_names(workspace))
    offered = trainable_names(workspace)
    assert "plain" not in offered
    assert {"own", "broken", "GunPoint"} <= set(offered)


def record() -> dict[str, bytes]:
    """One channel of 1,000 samples at 100 a second, as a WFDB header and its samples."""
    samples = np.random.default_rng(0).integers(-500, 500, 1000).astype("<i2")
    return {
        "rec1.hea": b"rec1 1 100 1000\nrec1.dat 16 200 16 0 0 0 0 ECG\n",
        "rec1.dat": samples.tobytes(),
    }


def figures(said: dict[str, Any]) -> dict[str, str]:
    return {word: value for value, word in said["figures"]}


def test_files_that_belong_together_are_tried_as_one(client: httpx.Client, studio: Studio) -> None:
    folder = client.post("/data/uploads", json={"name": "rec1.hea"}).json()["name"]
    assert folder == "rec1"
    for name, content in record().items():
        assert client.put(f"/data/upload/{folder}/{name}", content=content).status_code == 200
    assert "rec1.dat, rec1.hea" in client.get("/data/import/rec1").text
    before = sorted(path.name for path in studio.workspace.rglob("*"))
    said = client.get("/data/import/rec1/tried?label=none&window=100").json()
    assert figures(said)["series"] == "10"
    assert figures(said)["samples each"] == "100"
    assert sorted(path.name for path in studio.workspace.rglob("*")) == before, "nothing is left"
    refused = client.get("/data/import/rec1/tried").json()
    assert refused["refused"]
    assert refused["figures"] == []
    assert "--" not in refused["sentences"][0], refused
    assert client.post("/data/uploads", json={"name": "rec1.hea"}).json()["name"] == "rec1-2"
    assert client.put("/data/upload/nowhere/x.dat", content=b"1").status_code == 422
    assert client.put("/data/upload/rec1/..%2fx.dat", content=b"1").status_code in (404, 422)


def test_a_dry_run_says_what_windows_come_out(tmp_path: Path) -> None:
    rows = [f"{n},{'ab'[n // 300 % 2]},{n % 7}" for n in range(1200)]
    table = tmp_path / "long.csv"
    table.write_text("\n".join(["t,kind,x", *rows]))
    said = {"form": "long", "label": "kind", "time": "t", "time-unit": "s", "window": "50"}
    assert figures(dry_run(table, said))["series"] == "24"
    assert "Window" in dry_run(table, {**said, "window": "x"})["sentences"][0]
    big = tmp_path / "big.edf"
    with big.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert dry_run(big, {})["figures"] == []


def test_refusals_use_the_words_of_the_page() -> None:
    assert in_fields("pass --label or --source-rate; not --unknown") == (
        "pass 'Label' or 'Rate of the source'; not --unknown"
    )


def test_data_without_labels_are_shown(client: httpx.Client, studio: Studio) -> None:
    np.savez(studio.workspace / "data" / "plain.npz", X=np.zeros((4, 2, 30)))
    page = client.get("/data/plain?channel=1").text
    assert "imported without labels" in page
    assert "<b>30</b><span>steps" in page
    assert client.get("/data/plain?channel=2").status_code == 422


def test_an_imported_file_is_no_longer_waiting(client: httpx.Client, studio: Studio) -> None:
    for name in ("done.csv", "waiting.csv"):
        (studio.workspace / "uploads" / name).write_text("1,2\n")
    job = studio.workspace / "jobs" / "20300101-000000-000000"
    job.mkdir()
    about = {"kind": "import", "source": "done.csv", "data": "done", "said": ""}
    described = {"title": "Import", "arguments": ["--json"], "about": about, "started": 4e9}
    (job / "job.json").write_text(json.dumps(described))
    (job / "exit").write_text("0")
    waiting = client.get("/data").text.split("Dropped, not yet imported")[1].split("</ul>")[0]
    assert "waiting.csv" in waiting
    assert "done.csv" not in waiting


def test_every_set_that_commands_know_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sets" / "ucr").mkdir(parents=True)
    np.savez(tmp_path / "sets" / "ucr" / "Mine.npz", X=np.zeros(1))
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "sets"))
    workspace = open_workspace(tmp_path / "w")
    assert data_names(workspace)[-1] == "Mine"
    assert "Mine" not in near_names(workspace)
    assert data_argument(workspace, "Mine") == "Mine"
