from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.arena.store import Store, unsuperseded
from tacit.arena.task import Task, task_from_dict
from tacit.errors import TacitError

FIRST = Task(suite="s", method="majority", data="GunPoint")
SECOND = Task(suite="s", method="majority", data="GunPoint", epsilon=1.0, options=(("views", 3),))


def line(task: Task) -> dict[str, object]:
    return {"task": task.to_dict(), "status": "done", "commit": "abc"}


def test_a_task_survives_its_json() -> None:
    for task in (FIRST, SECOND):
        again = task_from_dict(json.loads(json.dumps(task.to_dict())))
        assert again == task
        assert again.key == task.key
    assert FIRST.key != SECOND.key


@pytest.mark.parametrize("bad", [{"epsilon": float("nan")}, {"epsilon": 0.0}, {"seed": -1}])
def test_impossible_tasks_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(TacitError):
        Task(suite="s", method="m", data="d", **bad)  # type: ignore[arg-type]


def test_lines_are_appended_and_remaining_tasks_known(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    assert store.remaining([FIRST, SECOND]) == [FIRST, SECOND]
    store.append(line(FIRST))
    before = store.path.read_bytes()
    store.append(line(SECOND))
    assert store.path.read_bytes().startswith(before)
    assert store.remaining([FIRST, SECOND]) == []


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_a_torn_last_line_is_run_again_and_never_read(tmp_path: Path, cut: int) -> None:
    store = Store(tmp_path)
    store.append(line(FIRST))
    store.append(line(SECOND))
    whole = store.path.read_bytes()
    store.path.write_bytes(whole[: -1 - cut])
    assert store.remaining([FIRST, SECOND]) == [SECOND]
    store.append(line(SECOND))
    assert store.remaining([FIRST, SECOND]) == []
    assert [task_from_dict(r["task"]) for r in store.records()] == [FIRST, SECOND]


def test_an_edited_line_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append(line(FIRST))
    store.path.write_text("edited\n" + store.path.read_text())
    with pytest.raises(TacitError, match="line 1"):
        list(store.records())


def test_a_failure_counts_until_its_task_is_done() -> None:
    failed = {**line(FIRST), "status": "failed"}
    other = {**line(SECOND), "status": "failed"}
    assert unsuperseded([failed, other]) == [failed, other]
    assert unsuperseded([failed, other, line(FIRST)]) == [other, line(FIRST)]


def test_a_failed_task_is_left_over_only_when_asked_for(tmp_path: Path) -> None:
    tasks = [Task(suite="t", method="m", data=data) for data in ("a", "b", "c")]
    store = Store(tmp_path)
    for task, status in ((tasks[0], "done"), (tasks[1], "failed")):
        store.append({"task": task.to_dict(), "status": status})
    assert store.remaining(tasks) == [tasks[2]]
    assert store.remaining(tasks, retry_failed=True) == tasks[1:]
    store.append({"task": tasks[1].to_dict(), "status": "done"})
    assert store.remaining(tasks, retry_failed=True) == [tasks[2]]
