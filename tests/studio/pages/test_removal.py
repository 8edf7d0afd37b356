"""What is in a workspace can be removed, and raw recordings do not stay for good."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from studio_server import Studio, running_studio
from tacit.studio.jobs import cancel_job, start_job
from tacit.studio.pages.removal import DAYS_KEPT, remove_old_uploads, remove_place
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


def test_each_kind_can_be_removed_where_it_is_shown(client: httpx.Client, studio: Studio) -> None:
    root = studio.workspace
    (root / "uploads" / "record").mkdir()
    (root / "uploads" / "record" / "rec.dat").write_bytes(b"raw")
    np.savez(root / "data" / "own.npz", X=np.zeros((2, 1, 9)))
    (root / "models" / "old").write_bytes(b"model")
    job = root / "jobs" / "20260101-000000-00aa"
    job.mkdir()
    (job / "job.json").write_text('{"title": "t", "arguments": [], "about": {}, "started": 0}')
    (job / "exit").write_text("1")
    places = [("uploads", "record", "/data"), ("data", "own.npz", "/data/own"),
              ("models", "old", "/train"), ("jobs", job.name, f"/jobs/{job.name}")]  # fmt: skip
    for room, name, page in places:
        path = f"/remove/{room}/{name}"
        assert f'data-act="{path}" data-name="{name}"' in client.get(page).text
        assert client.post(path, json={}).status_code == 422, "its name is the confirmation"
        assert (root / room / name).exists()
        assert client.post(path, json={"name": name}).json() == {"removed": name}
        assert not list((root / room).glob(f"*{name}*")), "nothing is left, hidden or not"
        assert "there is no" in client.post(path, json={"name": name}).json()["error"]


@pytest.mark.parametrize("path", ["ledgers/x.db", "stores/x.db", "uploads/..", "data/..%2fx.db"])
def test_nothing_else_is_removed(client: httpx.Client, studio: Studio, path: str) -> None:
    kept = studio.workspace / "ledgers" / "x.db"
    kept.touch()
    answer = client.post(f"/remove/{path}", json={"name": path.partition("/")[2]})
    assert answer.status_code in (404, 405, 422)
    assert kept.exists()


def test_what_a_running_job_uses_stays(client: httpx.Client, studio: Studio) -> None:
    workspace = open_workspace(studio.workspace)
    (workspace.root / "models" / "used").touch()
    old = workspace.root / "uploads" / "old.csv"
    old.touch()
    os.utime(old, (0, 0))
    words = ["attack", "softshape", "--data", "GunPoint"]
    job = start_job(workspace, "Attack", words, model="used")
    try:
        for room, name in (("models", "used"), ("jobs", job.id)):
            answer = client.post(f"/remove/{room}/{name}", json={"name": name})
            assert "is running and uses" in answer.json()["error"]
        assert remove_old_uploads(workspace) == []
    finally:
        cancel_job(workspace, job.id)
    assert "old.csv" not in client.get("/data").text
    assert not old.exists()


def test_two_who_remove_one_thing_do_not_collide(tmp_path: Path) -> None:
    remove_place(tmp_path / "gone")
    link = tmp_path / "uploads"
    link.mkdir()
    (link / "half").symlink_to(tmp_path / "written-a-moment-ago")
    workspace = open_workspace(tmp_path / "work")
    link.rename(workspace.root / "uploads" / "record")
    (workspace.root / "uploads" / ".removed.raw.csv.00ff").touch()
    assert remove_old_uploads(workspace, now=1e12) == []
    assert [path.name for path in (workspace.root / "uploads").iterdir()] == ["record"]


def test_dropped_files_go_after_some_days(client: httpx.Client, studio: Studio) -> None:
    workspace = open_workspace(studio.workspace)
    assert client.put("/data/upload/new.csv", content=b"1,2\n").status_code == 200
    assert remove_old_uploads(workspace) == []
    later = time.time() + (DAYS_KEPT + 1) * 86_400
    assert remove_old_uploads(workspace, now=later) == ["new.csv"]
    assert not (workspace.root / "uploads" / "new.csv").exists()
