"""Jobs are commands in processes of their own: they end, fail, can be cancelled and found again."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.studio.jobs import (
    CHECKPOINT,
    FOLDER,
    Job,
    cancel_job,
    list_jobs,
    load_job,
    resume_job,
    start_job,
)
from tacit.studio.workspace import Workspace, open_workspace

pytestmark = pytest.mark.seconds
LONG = ["attack", "softshape", "--data", "GunPoint"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return open_workspace(tmp_path)


def ended(workspace: Workspace, job: Job, *, within: float = 240.0) -> Job:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        now = load_job(workspace, job.id)
        if now.state != "running":
            return now
        time.sleep(0.05)
    raise AssertionError(f"{job.title} still runs")


def test_a_job_ends_with_what_the_command_prints(workspace: Workspace) -> None:
    job = start_job(workspace, "Show", ["data", "show", "GunPoint"], kind="other")
    done = ended(workspace, job)
    assert done.state == "done", done.trouble()
    result = done.result()
    assert result is not None
    assert result["n_train"] == 50
    assert done.command == "tacit data show GunPoint"
    assert [found.id for found in list_jobs(workspace)] == [job.id]


def test_a_refusal_is_the_sentence_of_the_command(workspace: Workspace) -> None:
    failed = ended(workspace, start_job(workspace, "Show", ["data", "show", "GunPiont"]))
    assert failed.state == "failed"
    assert "did you mean 'GunPoint'" in failed.trouble()
    assert failed.result() is None


def test_a_job_can_be_cancelled_and_run_again(workspace: Workspace) -> None:
    job = start_job(workspace, "Attack", LONG)
    assert job.state == "running"
    pid = int((job.folder / "pid").read_text())
    assert cancel_job(workspace, job.id).state == "cancelled"
    _wait_until_gone(pid)
    assert load_job(workspace, job.id).state == "cancelled"
    again = resume_job(workspace, job.id)
    assert again.state == "running"
    with pytest.raises(TacitError, match="nothing to resume"):
        resume_job(workspace, job.id)
    cancel_job(workspace, job.id)


def test_a_job_with_a_checkpoint_goes_on_from_there(workspace: Workspace) -> None:
    """Continuing is `--resume` with the same file; without a checkpoint it would be refused."""
    train = ["train", "timefl", "--data", "GunPiont", "--checkpoint", f"{FOLDER}/{CHECKPOINT}"]
    failed = ended(workspace, start_job(workspace, "Fleet", train))
    assert failed.arguments[-2] == str(failed.folder / CHECKPOINT)
    assert not failed.can_continue
    again = ended(workspace, resume_job(workspace, failed.id))
    assert "--resume" not in again.arguments
    (failed.folder / CHECKPOINT).touch()
    for _ in range(2):
        again = ended(workspace, resume_job(workspace, failed.id))
        assert again.can_continue
        assert again.arguments[-2:] == ("--resume", "--json")
        assert again.arguments.count("--resume") == 1


def test_a_killed_job_is_interrupted_and_known_after_a_restart(workspace: Workspace) -> None:
    job = start_job(workspace, "Attack", LONG)
    pid = int((job.folder / "pid").read_text())
    reopened = open_workspace(workspace.root)
    assert load_job(reopened, job.id).state == "running", "another studio sees that it runs"
    os.killpg(pid, signal.SIGKILL)
    _wait_until_gone(pid)
    assert load_job(reopened, job.id).state == "interrupted"


def test_no_more_jobs_than_there_is_room_for(workspace: Workspace) -> None:
    first = [start_job(workspace, f"Attack {n}", LONG) for n in range(2)]
    with pytest.raises(TacitError, match=r"2 jobs are running \(Attack"):
        start_job(workspace, "One more", LONG)
    assert len(list_jobs(workspace)) == 2, "a refused job leaves no folder"
    for job in first:
        cancel_job(workspace, job.id)


def test_two_at_once_do_not_take_one_place(workspace: Workspace) -> None:
    def start(n: int) -> bool:
        try:
            start_job(workspace, f"Attack {n}", LONG)
        except TacitError:
            return False
        return True

    with ThreadPoolExecutor(max_workers=5) as threads:
        started = sum(threads.map(start, range(5)))
    jobs = list_jobs(workspace)
    for job in jobs:
        cancel_job(workspace, job.id)
    assert started == len(jobs) == 2


def test_a_job_that_ends_while_it_is_cancelled_keeps_its_result(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(workspace, start_job(workspace, "Show", ["data", "show", "GunPoint"]))
    as_it_was = replace(job, state="running")
    with monkeypatch.context() as patched:
        patched.setattr("tacit.studio.jobs.load_job", lambda *_: as_it_was)
        cancel_job(workspace, job.id)
        (job.folder / "exit").unlink()  # and one whose process died before it could say so
        cancel_job(workspace, job.id)
    assert load_job(workspace, job.id).state == "cancelled"
    (job.folder / "exit").write_text("0")
    assert load_job(workspace, job.id).result() is not None


def test_other_things_in_the_room_hide_no_job(workspace: Workspace) -> None:
    job = ended(workspace, start_job(workspace, "Show", ["data", "show", "GunPoint"]))
    for name, content in (("odd", "[]"), ("other", "{}"), ("broken", "{")):
        folder = workspace.place("jobs", name)
        folder.mkdir()
        (folder / "job.json").write_text(content)
    assert [found.id for found in list_jobs(workspace)] == [job.id]
    with pytest.raises(TacitError, match="is not a job of the studio"):
        load_job(workspace, "odd")


def _wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline:
        try:
            done, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return
        if done:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")
