"""A light node: NumPy, httpx and cryptography, one process, from the first round to the last."""

from __future__ import annotations

import errno
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from environments import Environment, closure, make_environment
from fleet_localhost import LocalFleet, last_json, local_fleet, wait_until
from tacit.errors import TacitError
from tacit.fleet.deployment import light_node
from tacit.fleet.deployment import node as node_module
from tacit.fleet.deployment.light_node import LightNode, main, run_light_node
from tacit.fleet.deployment.node import Acknowledgement, RoundOffer, ShufflerClient
from tacit.fleet.learning.learner import Learner

NODES = ("node-1", "node-2", "node-3")
RUN_AND_TELL = """\
import json, sys
from tacit.fleet.deployment.light_node import main
code = main(sys.argv[1:])
loaded = sorted({name.split(".")[0] for name in sys.modules})
# Not getrusage: its peak is inherited from the process that started this one.
status = open("/proc/self/status").read()
megabytes = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps({"code": code, "loaded": loaded, "megabytes": megabytes}))
"""
HEAVY = {"torch", "flwr", "scipy", "sklearn", "aeon", "numba", "pandas", "fastapi", "pydantic"}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    needed = closure(["numpy", "httpx", "cryptography"])
    assert not HEAVY & needed
    light = make_environment(tmp_path_factory.mktemp("light") / "venv", needed)
    light.compile("tacit.fleet.deployment.light_node")
    return light


def start(bare: Environment, fleet: LocalFleet, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(bare.python), "-I", "-c", RUN_AND_TELL, str(fleet.path(name)), "0.5"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(params=["privunit", "distributed"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalFleet]:
    changes: dict[str, Any] = {"mechanism": request.param, "rounds": 2, "n_min": 3}
    with local_fleet(tmp_path / "fleet", n_kernels=8, **changes) as running:
        yield running


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_light_nodes_take_part_and_end_with_the_run(bare: Environment, fleet: LocalFleet) -> None:
    fleet.start("analyser", "shuffler")
    wait_until(lambda: reached(fleet, 1), seconds=120, what="the services")
    nodes = [start(bare, fleet, name) for name in NODES]
    try:
        wait_until(lambda: reached(fleet, 2), seconds=120, what="round 2")
        # A power cut and a shuffler that forgets: both go on with what is on disk.
        nodes[0].kill()
        nodes[0].communicate()
        nodes[0] = start(bare, fleet, NODES[0])
        fleet.kill("shuffler")
        fleet.start("shuffler")
        told = [json.loads(node.communicate(timeout=150)[0]) for node in nodes]
    finally:
        for node in nodes:
            node.kill()
            node.communicate()
    for found in told:
        assert found["code"] == 0, "it ends by itself"
        assert not HEAVY & set(found["loaded"])
        assert found["megabytes"] <= 80.0
    status = fleet.status()
    assert [record["n"] for record in status["history"]] == [3, 3]
    assert all(record["released"] for record in status["history"])
    stated = Learner(fleet.fleet.plan).spent([3, 3])
    assert stated is not None
    assert status["guarantee"] == stated.to_dict()
    for name in NODES:
        assert fleet.spent_by(name) == pytest.approx(stated.epsilon), "spent is what left"


def reached(fleet: LocalFleet, round_number: int) -> bool:
    try:
        fleet.shuffler_status()
        return bool(fleet.status()["round"] >= round_number)
    except TacitError:  # it is still starting
        return False


def test_the_costs_in_the_plan_are_the_accountants(fleet: LocalFleet) -> None:
    learner = Learner(fleet.fleet.plan)
    if fleet.fleet.plan.mechanism == "privunit":
        assert fleet.fleet.node_costs == ()
        return
    costs = [learner.node_cost(index) for index in (1, 2)]
    stated = [learner.stated_cost(epsilon=e, delta=d) for e, d in fleet.fleet.node_costs]
    assert stated == costs


class Script:
    """A shuffler's answers, one after the other; the last one says that the run is over."""

    def __init__(self, *answers: RoundOffer | Exception) -> None:
        self.answers = iter(answers)
        self.waits: list[float] = []

    def offer(self) -> RoundOffer:
        answer = next(self.answers, RoundOffer(round_number=None, instance="x", finished=True))
        if isinstance(answer, Exception):
            raise answer
        return answer


def opened(number: int | None, instance: str = "x") -> RoundOffer:
    return RoundOffer(round_number=number, instance=instance, finished=False)


def reports(
    monkeypatch: pytest.MonkeyPatch,
    fleet: LocalFleet,
    script: Script,
    answer: Callable[[int], Acknowledgement] = lambda _: Acknowledgement(accepted=True),
) -> list[int]:
    """The rounds for which a light node reports under a script, one entry per attempt."""
    made: list[int] = []

    def take(*_: object, round_number: int, **__: object) -> Acknowledgement:
        made.append(round_number)
        return answer(round_number)

    monkeypatch.setattr(ShufflerClient, "offer", lambda self: script.offer())
    monkeypatch.setattr(ShufflerClient, "model", lambda self, number: b"model")
    monkeypatch.setattr(light_node, "take_part", take)
    LightNode(fleet.node("node-1"), poll_seconds=1.0, sleep=script.waits.append).run()
    return made


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> LocalFleet:
    return LocalFleet(tmp_path_factory.mktemp("quiet") / "fleet", rounds=2, n_kernels=8)


def test_it_reports_once_a_round_and_again_to_a_shuffler_that_forgot(
    quiet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(
        opened(None), opened(1), opened(1), opened(None), opened(1, "new"), opened(2, "new")
    )
    assert reports(monkeypatch, quiet, script) == [1, 1, 2]


def test_a_refused_report_is_tried_again(
    quiet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([False, False, True])

    def answer(_: int) -> Acknowledgement:
        return Acknowledgement(accepted=next(answers), reason="busy")

    script = Script(*[opened(1)] * 5)
    assert reports(monkeypatch, quiet, script, answer) == [1, 1, 1]


def test_days_without_a_network_make_it_patient_not_dead(
    quiet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = [httpx.ConnectError("no route")] * 20
    script = Script(*away, opened(1))
    assert reports(monkeypatch, quiet, script) == [1]
    assert max(script.waits) <= 1.5 * light_node._LONGEST_WAIT
    assert script.waits[0] <= 3.0 < 30.0 <= script.waits[15]


def test_what_it_needs_is_checked_before_it_starts(
    quiet: LocalFleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TacitError, match="poll-seconds"):
        run_light_node(quiet.path("node-2"), poll_seconds=0.0)
    quiet.node("node-2").signing_key.unlink()
    assert main([str(quiet.path("node-2"))]) == 2
    assert "cannot read the key" in capsys.readouterr().err
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
    assert main([str(quiet.path("node-1")), "--metrics", "9445"]) == 2
    assert "--metrics must look like 127.0.0.1:9444, got '9445'" in capsys.readouterr().err


def test_figures_say_whether_the_shuffler_answers_and_nothing_of_the_node(
    quiet: LocalFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(opened(1), httpx.ConnectError("no route"))
    seen: list[dict[str, float]] = []
    monkeypatch.setattr(ShufflerClient, "offer", lambda self: script.offer())
    monkeypatch.setattr(ShufflerClient, "model", lambda self, number: None)
    node = LightNode(quiet.node("node-1"), sleep=lambda _: seen.append(dict(node.figures)))
    node.run()
    assert seen == [
        {"shuffler_answers": 1, "round": 1, "trouble": 0},
        {"shuffler_answers": 0, "round": 1, "trouble": 0},
    ]


@pytest.mark.parametrize("where", ["the report", "the state's folder", "the certificate", "a key"])
def test_a_full_or_broken_disk_makes_it_wait_and_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Once the process ended, and a device without a supervisor was lost for the run."""
    fleet = LocalFleet(tmp_path / "fleet", rounds=2, n_kernels=4, mechanism="distributed")
    model = Learner(fleet.fleet.plan).initial()
    config = fleet.node("node-1")
    broken = 3  # attempts
    seen: list[dict[str, float]] = []
    moved = {"the certificate": config.shuffler_certificate, "a key": config.signing_key}.get(where)
    aside = tmp_path / "aside"

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def offer(_: ShufflerClient) -> RoundOffer:
        if moved is not None and not seen and not aside.exists():
            moved.rename(aside)
            raise httpx.ConnectError("no route")  # so that it begins a new connection
        return RoundOffer(round_number=1, instance="x", finished=bool(sent))

    def sleep(_: float) -> None:
        seen.append(dict(node.figures))
        if len(seen) == broken:
            patch.undo()
            if moved is not None:
                aside.rename(moved)

    sent: list[bytes] = []

    def send(_: ShufflerClient, body: bytes, *, round_number: int) -> Acknowledgement:
        sent.append(body)
        return Acknowledgement(accepted=True)

    monkeypatch.setattr(ShufflerClient, "offer", offer)
    monkeypatch.setattr(ShufflerClient, "open_round", lambda _: 1)
    monkeypatch.setattr(ShufflerClient, "model", lambda _, number: model)
    monkeypatch.setattr(ShufflerClient, "send", send)
    patch = pytest.MonkeyPatch()
    if where == "the report":
        patch.setattr(node_module, "write_once", full)
    elif where == "the state's folder":
        patch.setattr(Path, "mkdir", full)
    node = LightNode(config, poll_seconds=1.0, sleep=sleep)
    try:
        assert node.run() == 1
    finally:
        patch.undo()
    assert len(sent) == 1
    assert all(figures.get("trouble", 0) or not figures["shuffler_answers"] for figures in
               seen[:broken])  # fmt: skip
    assert node.figures["trouble"] == 0
    assert fleet.spent_by("node-1") > 0.0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_both_transports_serve_one_fleet_under_one_guarantee(
    bare: Environment, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {"mechanism": "distributed", "rounds": 2, "n_min": 3}
    with local_fleet(tmp_path / "fleet", n_kernels=8, **changes) as fleet:
        fleet.start("analyser", "shuffler", "node-1")
        light = [start(bare, fleet, name) for name in NODES[1:]]
        server = fleet.start_server()
        try:
            output, sentence = server.communicate(timeout=240)
            assert server.returncode == 0, sentence
            told = [json.loads(node.communicate(timeout=60)[0]) for node in light]
        finally:
            for node in light:
                node.kill()
                node.communicate()
        assert [found["code"] for found in told] == [0, 0]
        final = last_json(output)
        assert [record["n"] for record in final["history"]] == [3, 3]
        stated = Learner(fleet.fleet.plan).spent([3, 3])
        assert stated is not None
        assert final["guarantee"] == stated.to_dict()
        for name in NODES:
            assert fleet.spent_by(name) == pytest.approx(stated.epsilon), "whatever its transport"
