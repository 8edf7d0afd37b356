"""A studio that is killed in the middle of a job: the job goes on, and the next studio shows it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from studio_browser import Page, open_browser
from studio_server import ended, running_studio, state_of
from system_packages import needed

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("studio")]
TRAINING = {
    "method": "timefl", "data": "BasicMotions", "epsilon": "8", "clients": "20", "delta": "1e-5",
}  # fmt: skip


def test_a_job_outlives_its_studio(tmp_path: Path) -> None:
    with running_studio(tmp_path) as first, first.client() as client:
        job = client.post("/train", json=TRAINING).json()["job"]
        assert state_of(client, job) == "running"
    # running_studio ends with kill -9; the job has a session of its own.
    with running_studio(tmp_path) as second, second.client() as client:
        assert second.token != first.token
        assert state_of(client, job) in ("running", "done")
        assert ended(client, job) == "done"
        assert "of the test series get the right label" in client.get(f"/jobs/{job}").text
        model = tmp_path / "models" / "BasicMotions-timefl"
        assert client.get(f"/models/{model.name}").content == model.read_bytes()


def test_an_open_page_says_what_to_do_and_the_next_one_follows_the_job(tmp_path: Path) -> None:
    needed("chromium")
    with open_browser() as driver:
        page = Page(driver)
        with running_studio(tmp_path) as first, first.client() as client:
            job = client.post("/attack", json={"data": "GunPoint"}).json()["job"]
            group = int((tmp_path / "jobs" / job / "pid").read_text())
            os.killpg(group, signal.SIGSTOP)  # however slow the browser is, it has not ended
            place = f"{first.address}/jobs/{job}"
            driver.get(first.url)
            driver.get(place)
            page.wait_for_text("Cancel")
        page.wait_for_text("The studio does not answer")
        port = int(urlsplit(place).port or 0)
        with running_studio(tmp_path, port=port) as second, second.client() as client:
            page.wait_for_text("The studio was started again")
            driver.get(second.url)
            driver.get(place)
            page.wait_for_text("Cancel")
            client.post(f"/jobs/{job}/cancel")
            os.killpg(group, signal.SIGCONT)
            page.wait_for_text("It was cancelled")


def test_cancelled_and_run_again_over_the_page(tmp_path: Path) -> None:
    with running_studio(tmp_path) as studio, studio.client() as client:
        job = client.post("/train", json=TRAINING).json()["job"]
        assert client.post(f"/jobs/{job}/cancel").json() == {"state": "cancelled"}
        assert "was cancelled" in client.get(f"/jobs/{job}").text
        assert not list((tmp_path / "models").iterdir())
        assert client.post(f"/jobs/{job}/resume").json() == {"state": "running"}
        assert ended(client, job) == "done"
        assert "nothing to resume" in client.post(f"/jobs/{job}/resume").json()["error"]
