from __future__ import annotations

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
