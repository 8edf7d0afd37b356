"""Checkpoints: complete, atomic, and refused when they are damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BundleError
from tacit.fleet.checkpoint import (
    Checkpoint,
    fresh,
    load_checkpoint,
    save_checkpoint,
    write_atomically,
)
from tacit.fleet.clients import HeadModel
from tacit.fleet.config import make_plan


@pytest.fixture(scope="module")
def state() -> Checkpoint:
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
    return Checkpoint(plan, HeadModel(weights, velocity, average, 2, 3), (30, 29, 30))


def test_a_state_comes_back_to_the_last_bit(state: Checkpoint, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "run.npz"
    save_checkpoint(file, state)
    back = load_checkpoint(file, state.plan)
    assert back.plan == state.plan
    assert back.received == state.received
    for name in ("weights", "velocity", "average"):
        np.testing.assert_array_equal(getattr(back.model, name), getattr(state.model, name))
    assert (back.model.n_averaged, back.model.round_number) == (2, 3)
    assert [path.name for path in file.parent.iterdir()] == ["run.npz"]


def test_the_fresh_state_survives_too(state: Checkpoint, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.npz", fresh(state.plan))
    assert load_checkpoint(tmp_path / "a.npz").received == ()


@pytest.mark.parametrize("where", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(state: Checkpoint, tmp_path: Path, where: float) -> None:
    file = tmp_path / "run.npz"
    save_checkpoint(file, state)
    content = file.read_bytes()
    file.write_bytes(content[: int(where * len(content))])
    with pytest.raises(BundleError):
        load_checkpoint(file)


def test_a_flipped_byte_is_refused(state: Checkpoint, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    save_checkpoint(file, state)
    content = file.read_bytes()
    for place in range(0, len(content), len(content) // 40):
        changed = bytearray(content)
        changed[place] ^= 0x01
        file.write_bytes(changed)
        with pytest.raises(BundleError, match="damaged"):
            load_checkpoint(file, state.plan)


def test_impossible_counts_are_refused(state: Checkpoint, tmp_path: Path) -> None:
    for received in ((30, 29), (30,) * 6, (30, 0, 30)):
        save_checkpoint(tmp_path / "run.npz", Checkpoint(state.plan, state.model, received))
        with pytest.raises(BundleError, match="cannot be"):
            load_checkpoint(tmp_path / "run.npz")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_atomically(file, b"old")
    with pytest.raises(TypeError):
        write_atomically(file, "not bytes")  # type: ignore[arg-type]
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
