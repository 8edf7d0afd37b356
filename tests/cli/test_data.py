from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from command import assert_refused, tacit


@pytest.fixture(autouse=True)
def _no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)


def test_show_prints_shapes_as_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    shown = tacit(capsys, "data", "show", "GunPoint", "--json")
    assert shown.code == 0
    assert (shown.json["n_train"], shown.json["n_test"], shown.json["length"]) == (50, 150, 150)
    assert shown.json["n_classes"] == 2


def test_list_names_the_embedded_sets(capsys: pytest.CaptureFixture[str]) -> None:
    listed = tacit(capsys, "data", "list", "--json")
    names = {row["name"] for row in listed.json["datasets"]}
    assert names == {
        "ACSF1", "ArrowHead", "BasicMotions", "GunPoint", "ItalyPowerDemand", "OSULeaf",
    }  # fmt: skip


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    shown = tacit(capsys, "data", "show", "GunPoint")
    assert "150" in shown.out
    assert shown.code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dta"], ["did you mean 'data'", "--help"]),
        (["data", "shw"], ["did you mean 'show'"]),
        (["data", "show"], ["Missing argument"]),
        (["data", "show", "GunPont"], ["did you mean 'GunPoint'"]),
        (["data", "show", "GunPoint", "--frob"], ["--frob"]),
    ],
)
def test_mistakes_get_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    assert_refused(tacit(capsys, *arguments), *words)


def test_import_writes_what_show_reads(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez(
        "a.npz", X=rng.normal(size=(20, 2, 30)), y=np.arange(20) % 2, subject=np.arange(20) // 4
    )
    made = tacit(capsys, "data", "import", "a.npz", "--out", "sub/b.npz", "--json")
    assert made.code == 0
    keys = {"series", "channels", "length", "classes", "subjects", "dropped", "out"}
    assert keys <= set(made.json)
    assert made.json["out"] == "sub/b.npz"
    shown = tacit(capsys, "data", "show", "sub/b.npz", "--json").json
    assert (shown["channels"], shown["length"], shown["classes"]) == (2, 30, ["0", "1"])
    assert shown["subjects"] == {"train": 3, "test": 2, "in_both": 0}
    assert "split by subject" in tacit(capsys, "data", "show", "sub/b.npz").out.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.edf", "--out", "x.npz"], ["no file or folder", "nowhere.edf"]),
        (["here", "--out", "x.npz"], ["here", "known endings"]),
        (["here", "--out", "x.csv"], [".npz"]),
        (["here", "--out", "here"], ["folder"]),
        (["here", "--out", "x.npz", "--window", "0"], ["--window", "'0'"]),
        (["here", "--out", "x.npz", "--stride", "5"], ["--window too"]),
        (["here", "--out", "x.npz", "--max-gap", "5"], ["--missing interpolate"]),
        (["here", "--out", "x.npz", "--cut", "maybe"], ["labels", "grid"]),
    ],
)
def test_a_mistaken_import_writes_nothing(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    told: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("here").mkdir()
    assert_refused(tacit(capsys, "data", "import", *words), *told)
    assert list(tmp_path.iterdir()) == [tmp_path / "here"]
