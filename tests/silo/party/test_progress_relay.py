"""Every terminal shows how far the run is, whether its party computes or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from silo_parties import federation
from tacit.silo.party.links.frames import Header
from tacit.silo.party.progress_relay import ProgressRelay, Step

OWN: Header = {
    "t": "progress", "done": 3, "total": 9, "message": "3 candidates", "seconds_left": 1.5,
    "bytes_sent": 2_000_000,
}  # fmt: skip


def relay_of(rank: int) -> tuple[ProgressRelay, list[Step], list[tuple[int, Header]]]:
    shown: list[Step] = []
    sent: list[tuple[int, Header]] = []
    made = ProgressRelay(
        rank=rank,
        n_parties=5,
        n_computing=3,
        send=lambda to, header: sent.append((to, header)),
        show=shown.append,
    )
    return made, shown, sent


def test_the_initiator_shows_its_own_steps_and_tells_those_who_do_not_compute() -> None:
    relay, shown, sent = relay_of(0)
    relay.heard_engine(OWN)
    assert [step.words for step in shown] == ["3 candidates, 2.0 MB sent"]
    assert [to for to, _ in sent] == [3, 4]
    for _, header in sent:
        assert "bytes_sent" not in header
        assert (header["done"], header["total"], header["seconds_left"]) == (3, 9, 1.5)


def test_another_computing_party_tells_nobody_and_believes_nobody() -> None:
    relay, shown, sent = relay_of(1)
    relay.heard_engine(OWN)
    relay.heard_peer(0, OWN | {"done": 9})
    assert [step.done for step in shown] == [3]
    assert sent == []


def test_an_owner_that_does_not_compute_shows_what_the_initiator_says() -> None:
    relay, shown, sent = relay_of(3)
    relay.heard_engine(OWN | {"done": 9, "message": "training"})  # through in a moment
    assert shown == []
    relay.heard_peer(1, OWN)
    assert shown == []
    relay.heard_peer(0, OWN | {"message": "3\x1b[2J candidates", "bytes_sent": 7})
    assert shown[0].words == "3[2J candidates, 2.0 MB sent"  # its own bytes, no control characters
    assert sent == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"done": "many"},
        {"total": None},
        {"seconds_left": []},
        {"seconds_left": float("nan")},
        {"done": float("inf")},
        {"done": 10},  # of 9
        {"total": 10**400},
        {"message": 5},
    ],
)
def test_what_is_no_step_does_no_harm(wrong: dict[str, Any]) -> None:
    relay, shown, _ = relay_of(4)
    relay.heard_peer(0, OWN | wrong)
    relay.heard_peer(0, {"t": "progress"})
    assert [step.message for step in shown] == (["5"] if "message" in wrong else [])


@pytest.mark.slow
def test_a_fourth_owner_is_as_far_as_the_initiator(tmp_path: Path) -> None:
    params: dict[str, Any] = {"k": 3, "length": 5, "repeats": 4}
    with federation(tmp_path, program="distances_program", n_parties=4, **params) as f:
        for name in "abcd":
            f.start(name, more=["--log-format", "json"])
        steps = {}
        for name in "abcd":
            code, _, err = f.end(name, within=180.0)
            assert code == 0, err
            lines = [json.loads(line) for line in err.splitlines()]
            steps[name] = [line for line in lines if line["event"] == "progress"]
        seen = {
            name: [(step["done"], step["total"], step["seconds_left"]) for step in found]
            for name, found in steps.items()
        }
        assert len(seen["a"]) == 4
        assert seen["d"] == seen["a"]
        for ours, theirs in zip(steps["d"], steps["a"], strict=True):
            assert ours["time"] >= theirs["time"]  # both clocks are this machine's
            assert ours["bytes_sent"] > 0
        assert steps["d"][0]["engine_bytes_sent"] == 0 < steps["a"][-1]["engine_bytes_sent"]
