"""Names and paths are accepted alike by every --data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from tacit.data import load_dataset
from tacit.data.load import load_part
from tacit.silo.party.hello import Refusal
from tacit.silo.party.own_data import read_data

NAME = "ItalyPowerDemand"


@pytest.fixture
def lone_file(tmp_path: Path) -> Path:
    data = load_dataset(NAME)
    np.savez(tmp_path / "new.npz", X=data.X_test, y=data.y_test)
    return tmp_path / "new.npz"


def test_a_part_is_chosen_where_there_are_two(lone_file: Path) -> None:
    data = load_dataset(NAME)
    for part, otherwise, rows in ((None, "test", "test"), (None, "train", "train"),
                                  ("train", "test", "train")):  # fmt: skip
        X, y = load_part(NAME, part=part, otherwise=otherwise)
        assert np.array_equal(X, getattr(data, f"X_{rows}"))
        assert y is not None
        assert np.array_equal(y, getattr(data, f"y_{rows}"))
    assert len(load_part(lone_file)[0]) == len(data.X_test)  # whole, whatever is asked elsewhere


@pytest.mark.seconds
def test_fleet_classify_takes_names_and_paths(capsys: Any, tmp_path: Path, lone_file: Path) -> None:
    model = tmp_path / "model"
    few = ("--clients", 20, "--rounds", 1)
    made = tacit(capsys, "train", "timefl", "--data", NAME, *few, "--out", model)
    assert made.code == 0, made.err
    by_name = tacit(capsys, "fleet", "classify", model, "--data", NAME, "--json").json
    by_path = tacit(capsys, "fleet", "classify", model, "--data", lone_file, "--json").json
    assert by_name == by_path
    assert by_name["accuracy"] is not None
    train = tacit(capsys, "fleet", "classify", model, "--data", NAME, "--part", "train", "--json")
    assert len(train.json["labels"]) == len(load_dataset(NAME).X_train)
    for wrong in ("ItalyPowerDemnd", "nowhere.npz"):
        assert_refused(tacit(capsys, "fleet", "classify", model, "--data", wrong), wrong)


def test_a_party_takes_names_and_paths(lone_file: Path) -> None:
    data = load_dataset(NAME)
    assert np.array_equal(read_data(NAME).X, data.X_train)
    assert np.array_equal(read_data(str(lone_file)).X, data.X_test)
    assert np.array_equal(read_data(NAME).labels, data.y_train.astype(str))
    for nothing in (None, "ItalyPowerDemnd", lone_file.parent / "gone.npz"):
        with pytest.raises(Refusal, match="give --data"):
            read_data(nothing)
