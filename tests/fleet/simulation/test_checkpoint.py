"""Checkpoints: complete, atomic, and refused when they are damaged."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import BundleError
from tacit.fleet.learning.head import HeadModel
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.simulation.checkpoint import (
    Schedule,
    SimulationCheckpoint,
    deal_digest,
    fresh,
    load_checkpoint,
    resume_checkpoint,
    save_checkpoint,
)

SCHEDULE = Schedule(
    order=tuple(int(c) for c in np.random.default_rng(7).permutation(30)),
    clients_per_round=30,
    local_epsilon=tuple(0.1 + 0.01 * c for c in range(30)),
    deal="a digest",
)


@pytest.fixture(scope="module")
def state() -> SimulationCheckpoint:
    plan = make_plan(
        classes=("a", "b", "c"),
        n_channels=1,
        length=16,
        mechanism="distributed",
        n_clients=30,
        n_rounds=5,
        n_kernels=10,
    )
    shape = (2, plan.n_features)
    rng = np.random.default_rng(0)
    weights, velocity, average = (rng.standard_normal(shape) for _ in range(3))
    model = HeadModel(weights, velocity, average, 2, 3)
    return SimulationCheckpoint(plan, SCHEDULE, model, (30, 29, 30))


def test_a_state_comes_back_to_the_last_bit(state: SimulationCheckpoint, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "run.npz"
    save_checkpoint(file, state)
    back = load_checkpoint(file, state.plan)
    assert back.plan == state.plan
    assert back.schedule == SCHEDULE
    assert back.received == state.received
    for name in ("weights", "velocity", "average"):
        np.testing.assert_array_equal(getattr(back.model, name), getattr(state.model, name))
    assert (back.model.n_averaged, back.model.round_number) == (2, 3)
    assert [path.name for path in file.parent.iterdir()] == ["run.npz"]


def test_the_fresh_state_survives_too(state: SimulationCheckpoint, tmp_path: Path) -> None:
    schedule = replace(SCHEDULE, local_epsilon=None)
    save_checkpoint(tmp_path / "a.npz", fresh(state.plan, schedule))
    back = load_checkpoint(tmp_path / "a.npz")
    assert (back.received, back.schedule) == ((), schedule)


@pytest.mark.parametrize("where", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(
    state: SimulationCheckpoint, tmp_path: Path, where: float
) -> None:
    file = tmp_path / "run.npz"
    save_checkpoint(file, state)
    content = file.read_bytes()
    file.write_bytes(content[: int(where * len(content))])
    with pytest.raises(BundleError):
        load_checkpoint(file)


def test_a_flipped_byte_is_refused(state: SimulationCheckpoint, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    save_checkpoint(file, state)
    content = file.read_bytes()
    for place in range(0, len(content), len(content) // 40):
        changed = bytearray(content)
        changed[place] ^= 0x01
        file.write_bytes(changed)
        with pytest.raises(BundleError, match="damaged"):
            load_checkpoint(file, state.plan)


def test_impossible_counts_are_refused(state: SimulationCheckpoint, tmp_path: Path) -> None:
    for received in ((30, 29), (30,) * 6, (30, 0, 30)):
        save_checkpoint(tmp_path / "run.npz", replace(state, received=received))
        with pytest.raises(BundleError, match="cannot have been"):
            load_checkpoint(tmp_path / "run.npz")


@pytest.mark.parametrize("order", [(0, 0, 1), (1, 2, 3), ()])
def test_an_impossible_order_is_refused(
    state: SimulationCheckpoint, tmp_path: Path, order: tuple[int, ...]
) -> None:
    broken = replace(SCHEDULE, order=order, clients_per_round=3)
    save_checkpoint(tmp_path / "run.npz", replace(state, schedule=broken))
    with pytest.raises(BundleError, match="no order of all clients"):
        load_checkpoint(tmp_path / "run.npz")


def test_a_resumption_takes_the_order_of_the_file(
    state: SimulationCheckpoint, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path / "run.npz", state)
    other = replace(SCHEDULE, order=tuple(range(30)))
    assert resume_checkpoint(tmp_path / "run.npz", state.plan, other).schedule == SCHEDULE


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"deal": "another"}, "dealt to clients in another way"),
        ({"order": tuple(range(29))}, "dealt to clients in another way"),
        ({"clients_per_round": 10}, "asks 30 clients per round, not 10"),
        ({"local_epsilon": None}, "gives client 0 the local epsilon 0.1, not the plan's"),
        (
            {"local_epsilon": (0.1,) * 30},
            "gives client 1 the local epsilon 0.11, not the local epsilon 0.1;",
        ),
    ],
)
def test_a_resumption_with_another_schedule_is_refused(
    state: SimulationCheckpoint, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    save_checkpoint(tmp_path / "run.npz", state)
    with pytest.raises(BundleError, match=sentence):
        resume_checkpoint(tmp_path / "run.npz", state.plan, replace(SCHEDULE, **changes))


def test_a_checkpoint_without_a_schedule_is_refused(
    state: SimulationCheckpoint, tmp_path: Path
) -> None:
    file = tmp_path / "run.npz"
    save_checkpoint(file, state)
    file.write_bytes(file.read_bytes().replace(b"fleet run 2", b"fleet run 1", 1))
    with pytest.raises(BundleError, match="earlier version"):
        load_checkpoint(file)


def test_the_digest_of_a_deal_knows_owners_and_sizes() -> None:
    sizes = {"n_clients": 3, "n_features": 5, "n_classes": 2}
    owners = np.array([0, 1, 2, 0])
    same = deal_digest(owners, **sizes)
    assert deal_digest(owners.astype(np.int32), **sizes) == same
    others = [deal_digest(owners[::-1], **sizes), deal_digest(owners[:3], **sizes)]
    others += [deal_digest(owners, **{**sizes, name: 9}) for name in sizes]
    assert same not in others


def test_a_failed_write_leaves_the_old_file(
    state: SimulationCheckpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x"
    save_checkpoint(file, state)
    old = file.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(file, fresh(state.plan, state.schedule))
    assert file.read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_checkpoint_is_for_its_owner_alone(state: SimulationCheckpoint, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "run.npz", state)
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == 0o600
