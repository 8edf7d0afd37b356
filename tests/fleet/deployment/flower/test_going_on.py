"""A Flower run that ends early is begun again, and a shuffler that forgot is noticed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet_localhost import LocalFleet
from tacit.errors import TacitError
from tacit.fleet.deployment.flower import superlink
from tacit.fleet.deployment.flower.app import ShufflerWatch
from tacit.fleet.deployment.run import start_seconds


class _Config:
    state = Path("state")


def test_it_is_begun_again_as_long_as_rounds_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(*_: object) -> str:
        started.append("run")
        return str(len(started))

    monkeypatch.setattr(superlink, "_start_run", start)
    config: Any = _Config()
    run = superlink._FlowerRun(Path("server.toml"), config, {})
    for round_number in range(1, 20):
        run.go_on(round_number, "finished:failed")
    assert len(started) == 20
    for _ in range(4):
        run.go_on(19, "finished:failed")
    assert len(started) == 24
    with pytest.raises(TacitError, match="6 times in round 19"):
        run.go_on(19, "finished:failed")
    assert len(started) == 24, "then it is left"


class _SuperLink:
    """A process that has ended, or goes on."""

    def __init__(self, code: int | None) -> None:
        self.code = code

    def poll(self) -> int | None:
        return self.code


def status(round_number: int, *, finished: bool = False) -> dict[str, Any]:
    return {"round": round_number, "finished": finished, "spent": {"epsilon": 1.0}}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server's configuration, with everything of Flower's left out."""
    fleet = LocalFleet(tmp_path / "fleet", rounds=3, n_kernels=4)
    for left_out in ("stop_on_sigterm", "_write_connection", "_register_nodes", "_let_finish"):
        monkeypatch.setattr(superlink, left_out, lambda *_: None)
    monkeypatch.setattr(superlink, "server_environment", lambda _: {})
    monkeypatch.setattr(superlink, "_start_run", lambda *_: "1")
    monkeypatch.setattr(superlink, "_ended", lambda *_: None)
    for name in ("_POLL_SECONDS", "_AWAY_SECONDS"):
        monkeypatch.setattr(superlink, name, 0.0, raising=False)
    return fleet.folder / "server" / "server.toml"


def play(
    monkeypatch: pytest.MonkeyPatch, answers: list[dict[str, Any] | TacitError], codes: list[Any]
) -> list[Any]:
    """An analyser's answers and SuperLinks; returns the codes of those that were started."""
    left = iter(answers)
    started: list[Any] = []

    def answer(_: object, *, wait_seconds: float) -> dict[str, Any]:
        found = next(left)
        if isinstance(found, TacitError):
            raise found
        return found

    @contextlib.contextmanager
    def one(*_: object) -> Iterator[_SuperLink]:
        started.append(codes[len(started)])
        yield _SuperLink(started[-1])

    monkeypatch.setattr(superlink, "analyser_status", answer)
    monkeypatch.setattr(superlink, "_superlink", one)
    return started


def test_an_analyser_that_is_away_is_waited_for(
    server: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once the server ended after a minute, while shuffler and nodes wait for ever."""
    away = TacitError("the analyser at https://x does not answer (ConnectError)")
    answers: list[dict[str, Any] | TacitError] = [status(1), status(1)]
    answers += [*[away] * 50, status(2), status(4, finished=True)]
    started = play(monkeypatch, answers, [None])
    assert superlink.run_server(server, resume=False)["finished"]
    assert started == [None]
    said = [record.message for record in caplog.records if "does not answer" in record.message]
    assert len(said) == 1, "once, not at every question"


def test_a_superlink_that_dies_is_started_again_but_not_for_ever(
    server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [status(1), status(1), status(2), status(4, finished=True)]
    started = play(monkeypatch, [*answers], [1, -9, None])
    assert superlink.run_server(server, resume=False)["finished"]
    assert started == [1, -9, None]
    started = play(monkeypatch, [status(1)] * 20, [1] * 20)
    with pytest.raises(TacitError, match="the SuperLink ended 6 times at round 1 of 3"):
        superlink.run_server(server, resume=False)
    assert started == [1] * 6


def test_another_shuffler_process_is_noticed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["a", "a", None, "b", "b"])

    def ask(_: ShufflerWatch) -> str:
        found = next(answers)
        if found is None:
            raise httpx.ConnectError("it is away")
        return found

    monkeypatch.setattr(ShufflerWatch, "_ask", ask)
    monkeypatch.setattr("tacit.fleet.deployment.flower.app._LOOK_SECONDS", 0.0)
    config: Any = _Config()
    watch = ShufflerWatch(config)
    assert [watch.restarted() for _ in range(5)] == [False, False, False, True, False]


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_time_to_start_is_a_number_above_zero(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start_seconds() == 60.0
    monkeypatch.setenv("TACIT_START_SECONDS", text)
    with pytest.raises(TacitError, match="TACIT_START_SECONDS"):
        start_seconds()
