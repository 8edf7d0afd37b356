"""`tacit train fedst`: the contract of its JSON, on real processes, and its refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command import assert_refused, tacit
from silo_parties import shared_cache
from tacit.disclosure.training_record import read_training_record

pytestmark = pytest.mark.silo

SMALL = ("--candidates", 15, "--shapelets", 5, "--trees", 3, "--depth", 2)


@pytest.fixture(autouse=True)
def _one_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache(tmp_path_factory)))


@pytest.fixture(autouse=True)
def _no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)


@pytest.mark.seconds
def test_federated_run_keeps_the_contract(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "why.html"
    done = tacit(
        capsys, "train", "fedst", "--data", "ItalyPowerDemand", "--classifier", "forest", *SMALL,
        "--page", page, "--out", tmp_path / "out", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    result = done.json
    assert result["guarantee"]["opened"] == [
        "shapelet indices -> P0",
        "forest splits -> P0",
        "forest leaf labels -> P0",
    ]
    assert set(result["seconds"]) == {"search", "transform", "classifier"}
    assert result["bytes_sent"] > 0
    assert len(result["shapelets"]) == 5
    assert result["accuracy"] > 0.7
    assert page.exists()
    _assert_the_folder_classifies(capsys, tmp_path / "out", result)


def _assert_the_folder_classifies(
    capsys: pytest.CaptureFixture[str], out: Path, result: dict[str, Any]
) -> None:
    """As a party's own folder does, with the same guarantee and accuracy."""
    given = (out, "--own", out / "own.npz", "--data", "ItalyPowerDemand", "--json")
    found = tacit(capsys, "silo", "classify", *given)
    assert found.code == 0, found.err
    assert found.json["accuracy"] == result["accuracy"]
    assert found.json["guarantee"] == result["guarantee"]
    why = tacit(capsys, "silo", "explain", *given)
    assert why.code == 0, why.err
    assert len(why.json["shapelets"]) == 5
    record = read_training_record(out)
    assert record is not None
    assert record["accuracy"] == result["accuracy"]
    for secret in ("own.npz", "model.safetensors"):
        assert (out / secret).stat().st_mode & 0o077 == 0
    other = tacit(capsys, "silo", "classify", out, "--own", "GunPoint", *given[3:])
    assert_refused(other, "own")


def test_people_see_the_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    shown = tacit(capsys, "train", "fedst", "--data", "GunPoint", *SMALL, "--scope", "global")
    assert shown.code == 0, shown.err
    assert "No privacy guarantee" in " ".join(shown.out.split())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--scope", "world"), "scope"),
        (("--parties", 1), "n_parties"),
        (("--time-contract", "nan"), "time_contract"),
        (("--shapelets", 0), "n_shapelets"),
        (("--quality", "x"), "quality"),
        (("--epsilon", 1), "local-search"),
        (("--scope", "global", "--out", "nowhere"), "receipt"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: tuple[object, ...], word: str
) -> None:
    assert_refused(tacit(capsys, "train", "fedst", "--data", "GunPoint", *arguments), word)


@pytest.mark.seconds
def test_several_channels_are_searched_each_for_itself(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    few = ("--candidates", 60, "--shapelets", 20, "--page", tmp_path / "why.html")
    found = tacit(
        capsys, "train", "fedst", "--data", "BasicMotions", "--scope", "global", *few, "--json"
    )
    assert found.code == 0, found.err
    result = found.json
    assert result["accuracy"] > 0.8
    assert len({shapelet["channel"] for shapelet in result["shapelets"]}) > 1
    assert "channel" in (tmp_path / "why.html").read_text()
