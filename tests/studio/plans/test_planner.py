"""Plans at work: whoever asks, and however often, no process and no file of one is lost."""

from __future__ import annotations

import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.studio.plans import planner
from tacit.studio.plans.planning import Plan
from tacit.studio.workspace import open_workspace

PLAN = Plan(
    data="x", n_classes=2, n_used=9, commonest=0.5, rows=[], fleet=[], fleet_delta=1e-5, silo=[]
)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> planner.Planner:
    """A planner whose processes end at once, with a sentence."""

    def start(_self: planner.Planner, _name: str) -> planner._Work:
        process = subprocess.Popen([sys.executable, "-c", ""])
        process.wait()
        said.append(io.BytesIO(b"first\nno such data set.\n"))
        return planner._Work(process, said[-1])

    said.clear()
    monkeypatch.setattr(planner.Planner, "_started", start)
    return planner.Planner(open_workspace(tmp_path))


said: list[io.BytesIO] = []


def test_a_refusal_leaves_no_file_open(made: planner.Planner) -> None:
    with pytest.raises(TacitError, match=r"no such data set\."):
        made.plan("x")
    assert [one.closed for one in said] == [True]


def test_a_plan_that_is_there_leaves_no_file_open(
    made: planner.Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([None, PLAN])
    monkeypatch.setattr(planner, "kept_plan", lambda *_: next(answers, PLAN))
    assert made.plan("x") == PLAN
    assert [one.closed for one in said] == [True]
    assert made.state("x") == "done"
    assert made.plan("x") == PLAN
    assert len(said) == 1


def test_several_who_ask_get_an_answer(made: planner.Planner) -> None:
    def refused(_: int) -> bool:
        try:
            made.plan("x")
        except TacitError:
            return True
        return False

    with ThreadPoolExecutor(max_workers=4) as threads:
        assert all(threads.map(refused, range(8)))
    assert all(one.closed for one in said)
