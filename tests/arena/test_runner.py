"""The real runner on real processes: resuming, a killed worker, a killed runner, Ray."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from command import assert_refused, tacit
from tacit.arena import runner
from tacit.arena.grid import Choice
from tacit.arena.record import failure, run_task
from tacit.arena.reuse import copy_records
from tacit.arena.runner import Tally, run_suite, tally
from tacit.arena.store import Store
from tacit.arena.suites import SUITES, suite_tasks
from tacit.arena.task import Task
from tacit.errors import TacitError

SETS = ("ItalyPowerDemand", "GunPoint")


@pytest.fixture(autouse=True)
def _no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)


def small_tasks(method: str = "1-nn") -> list[Task]:
    return [
        Task(suite="t", method=method, data=data, epsilon=epsilon, seed=seed)
        for data in SETS
        for epsilon in (None, 5.0)
        for seed in (0, 1)
    ]


def accuracies(store: Store) -> dict[str, float]:
    return {
        str(record["task"]): record["accuracy"]
        for record in store.records()
        if record["task"]["epsilon"] is None
    }


@dataclass(frozen=True)
class Run:
    """All small tasks on local processes, once for the tests that compare with them."""

    store: Store
    ended: Tally
    said: list[str]


@pytest.fixture(scope="module")
def local_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    said: list[str] = []
    store = Store(tmp_path_factory.mktemp("local"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TACIT_DATA", raising=False)
        ended = run_suite(
            small_tasks(), store, progress=lambda done, total, message: said.append(message)
        )
    return Run(store, ended, said)


@pytest.mark.seconds
def test_a_worker_that_grew_large_starts_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = []
    start = runner._start

    def counted() -> Any:
        began.append(1)
        return start()

    monkeypatch.setattr(runner, "_start", counted)
    tasks = small_tasks()[:3]
    for most, n_workers in ((1e9, 1), (0.0, 3)):
        began.clear()
        monkeypatch.setattr(runner, "_MOST_MEMORY_MB", most)
        assert run_suite(tasks, Store(tmp_path / str(most)), workers=1).done == 3
        assert len(began) == n_workers


@pytest.mark.seconds
def test_records_hold_what_a_reader_needs(local_run: Run) -> None:
    store, ended = local_run.store, local_run.ended
    assert (ended.done, ended.failed, ended.remaining) == (8, 0, 0)
    assert len(local_run.said) == 8
    assert "min left" in local_run.said[0]
    for record in store.records():
        assert {"task", "guarantee", "accuracy", "seconds", "cpu_seconds", "peak_memory_mb",
                "versions", "commit", "leakage"} <= set(record)  # fmt: skip
        assert record["guarantee"]["kind"] == "unprotected"
    gunpoint = [r for r in store.records() if r["task"]["data"] == "GunPoint"]
    clean = [r["accuracy"] for r in gunpoint if r["task"]["epsilon"] is None]
    assert clean == [pytest.approx(0.9133, abs=1e-3)] * 2, "the archive's figure for 1-NN"
    size = store.path.stat().st_size
    run_suite(small_tasks(), store)
    assert store.path.stat().st_size == size, "a second run has nothing to do"


@pytest.mark.seconds
def test_a_failed_task_is_recorded_and_not_retried(tmp_path: Path) -> None:
    bad = Task(suite="t", method="1-nn", data="GunPoint", options=(("views", 0),))
    store = Store(tmp_path)
    assert run_suite([bad], store).failed == 1
    assert "views" in next(iter(store.records()))["reason"]
    assert run_suite([bad], store).failed == 1
    assert len(list(store.records())) == 1


@pytest.mark.seconds
def test_a_killed_worker_costs_one_task_and_says_so(tmp_path: Path) -> None:
    importlib.import_module("torch")  # the slow method's
    store = Store(tmp_path)
    slow = Task(
        suite="t", method="inceptiontime", data="GunPoint", options=(("n_updates", 1000000),)
    )
    killed: list[int] = []

    def kill_the_slow_one(done: int, total: int, message: str) -> None:
        if killed:
            return
        # While the runner is here the other worker idles, so the slow one shows by its CPU time.
        team = [child.pid or 0 for child in active_children()]
        start = {pid: _cpu(pid) for pid in team}
        while max(_cpu(pid) - start[pid] for pid in team) < 1.0:
            time.sleep(0.05)
        busiest = max(team, key=lambda pid: _cpu(pid) - start[pid])
        os.kill(busiest, signal.SIGKILL)
        killed.append(busiest)

    ended = run_suite([slow, *small_tasks()[:3]], store, workers=2, progress=kill_the_slow_one)
    assert killed
    assert ended.remaining == 0
    assert ended.failed >= 1
    reasons = [r["reason"] for r in store.records() if r["status"] == "failed"]
    assert any("worker died with exit code -9" in reason for reason in reasons)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (float(fields[11]) + float(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.seconds
def test_a_killed_runner_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """kill -9 in the middle of a run of the command, then --resume."""
    out = tmp_path / "r"
    words = [
        sys.executable, "-m", "tacit", "arena", "run", "quick", "--out", str(out), "--json",
        "--data", "ItalyPowerDemand", "--data", "GunPoint",
        "--method", "1-nn", "--method", "majority", "--runs", "4",
    ]  # fmt: skip
    total = len(
        suite_tasks("quick", Choice(data=SETS, methods=("1-nn", "majority"), seeds=range(4)))
    )
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _wait_for_lines(out / "results.jsonl", 3)
    first.kill()
    _, said = first.communicate()  # until the workers, which inherit the pipe, are gone as well
    assert "Traceback" not in said
    early = (out / "results.jsonl").read_bytes()
    second = subprocess.run(
        [*words, "--resume"], capture_output=True, text=True, timeout=240, check=True
    )
    assert f'"done": {total}' in second.stdout
    assert (out / "results.jsonl").read_bytes().startswith(early.rsplit(b"\n", 1)[0])
    keys = [str(record["task"]) for record in Store(out).records()]
    assert len(keys) == len(set(keys)) == total


def _wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().count("\n") >= count:
            return
        time.sleep(0.02)
    raise AssertionError("the run never began")


@pytest.mark.seconds
def test_ray_gives_the_same_results(tmp_path: Path, local_run: Run) -> None:
    importlib.import_module("ray")
    tasks = small_tasks()[:6:2]
    there = Store(tmp_path / "ray")
    run_suite(tasks, there, engine="ray")
    found = accuracies(there)
    assert len(found) == 2
    assert found.items() <= accuracies(local_run.store).items()
    assert tally(tasks, there).done == len(tasks)


def test_suites_are_fixed_and_narrowed_by_choice() -> None:
    for name in SUITES:
        tasks = suite_tasks(name)
        assert len({task.key for task in tasks}) == len(tasks)
    table2 = suite_tasks("softshape-table2")
    assert len(table2) == 19 * (9 + 2) * 5 * 3  # nine rivals, and the paper's method by two presets
    few = suite_tasks(
        "softshape-table2", Choice(data=["CBF"], methods=["tsf"], epsilons=[1.0], seeds=[0])
    )
    assert [(t.data, t.method, t.epsilon) for t in few] == [("CBF", "tsf", 1.0)]


@pytest.mark.parametrize(
    ("suite", "choice", "words"),
    [
        ("quik", Choice(), "no suite"),
        ("quick", Choice(methods=["roket"]), "did you mean 'rocket'"),
        ("quick", Choice(methods=["rocket"]), "no task of the suite"),
    ],
)
def test_impossible_choices_are_refused(suite: str, choice: Any, words: str) -> None:
    with pytest.raises(TacitError, match=words):
        suite_tasks(suite, choice)


def test_what_numba_says_of_distances_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any other warning still is."""

    def warn(message: str) -> None:
        def run(_task: Task) -> None:
            warnings.warn(message, UserWarning, stacklevel=2)
            raise TacitError("enough")

        monkeypatch.setattr("tacit.arena.record.run_method", run)

    task = suite_tasks("quick")[0]
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for message in ("unsafe cast from uint64 to int64. Precision may be lost.", "another"):
            warn(message)
            assert run_task(task)["reason"] == "enough"
    assert [str(one.message) for one in shown] == ["another"]


def test_a_failed_task_is_run_again_when_asked_and_its_last_line_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("arena", "run", "quick", "--data", "GunPoint", "--method", "majority", "--epsilon", 1,
             "--out", tmp_path, "--json")  # fmt: skip
    choice = Choice(data=["GunPoint"], methods=["majority"], epsilons=[1.0])
    (task,) = suite_tasks("quick", choice)
    Store(tmp_path).append(failure(task, "the worker died with exit code -15", seconds=1.0))
    assert tacit(capsys, *words, "--resume").json["failed"] == 1
    assert_refused(tacit(capsys, *words, "--retry-failed"), "add --resume")
    again = tacit(capsys, *words, "--resume", "--retry-failed").json
    assert (again["done"], again["failed"], again["remaining"]) == (1, 0, 0)
    assert [r["status"] for r in Store(tmp_path).records()] == ["failed", "done"]


@pytest.mark.seconds
def test_a_finished_task_is_run_again_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("arena", "run", "quick", "--data", "GunPoint", "--method", "majority", "--epsilon", 1,
             "--out", tmp_path, "--json")  # fmt: skip
    assert tacit(capsys, *words).json["done"] == 1
    assert_refused(tacit(capsys, *words, "--again"), "add --resume")
    assert_refused(tacit(capsys, *words, "--resume", "--again", "--reuse", tmp_path), "choose one")
    assert tacit(capsys, *words, "--resume", "--again").json["done"] == 1
    assert len(list(Store(tmp_path).records())) == 2


def test_a_cell_of_another_suite_is_copied_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (there,) = suite_tasks(
        "softshape-table2",
        Choice(data=["CBF"], methods=["softshape-published"], epsilons=[0.1], seeds=[0],
               options=["preset=paper"]),
    )  # fmt: skip
    record = {"task": there.to_dict(), "status": "done", "commit": "abc", "accuracy": 0.5}
    old = tmp_path / "current"
    changed: tuple[dict[str, Any], ...] = ({}, {"accuracy": 0.6}, {"commit": "abc-dirty"})
    for number, changes in enumerate(changed):
        Store(old / f"part-{number}").append({**record, **changes})
    words = ("arena", "run", "softshape-table3", "--data", "CBF", "--epsilon", 0.1, "--runs", 1,
             "--option", "preset=paper", "--json", "--reuse")  # fmt: skip
    refused = tacit(capsys, *words, tmp_path / "none", "--out", tmp_path / "a")
    assert_refused(refused, "is not a folder")
    store = Store(tmp_path / "b")
    tasks = suite_tasks(
        "softshape-table3",
        Choice(data=["CBF"], epsilons=[0.1], seeds=[0], options=["preset=paper"]),
    )
    assert copy_records(tasks, store, source=old) == 1
    (copy,) = store.records()
    assert copy == {
        **record,
        "accuracy": 0.6,
        "task": {**there.to_dict(), "suite": "softshape-table3"},
        "copied_from": "softshape-table2",
    }
    left = store.remaining(tasks)
    assert len(left) == len(tasks) - 1
    assert copy_records(left, store, source=old) == 0
    twins = suite_tasks("fedst-secure", Choice(data=["CBF"]))
    full = {**record, "task": {**twins[1].to_dict(), "suite": "fedst"}}
    Store(old / "fedst").append(full)
    assert copy_records(twins, store, source=old) == 0  # it has no shapelets to compare
