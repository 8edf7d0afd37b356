"""`tacit attack` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import assert_refused, tacit


@pytest.mark.seconds
def test_pidp_recovers_exactly_and_writes_a_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "pidp.html"
    outcome = tacit(capsys, "attack", "pidp", "--length", 20, "--out", page, "--json")
    assert outcome.code == 0
    assert outcome.json["succeeded"] is True
    assert outcome.json["rate"] == 1.0
    assert outcome.json["chance"] < 1e-90
    assert outcome.json["seconds"] < 10
    assert outcome.json["sound"]["within"] is True
    assert outcome.json["guarantee"]["kind"] == "unprotected"
    text = page.read_text(encoding="utf-8")
    assert "No privacy guarantee" in text
    assert "recovered" in text


@pytest.mark.seconds
def test_softshape_holds_the_contract(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "softshape.html"
    arguments = ("--data", "ItalyPowerDemand", "--no-trick", "--out", page)
    outcome = tacit(capsys, "attack", "softshape", *arguments, "--json")
    assert outcome.code == 0
    assert outcome.json["succeeded"] is True
    assert outcome.json["rate"] > 0.8
    assert outcome.json["chance"] == 0.01
    details = outcome.json["details"]
    assert details["realised_loss_median"] > 10 * details["claimed_total"]
    assert outcome.json["sound"]["within"] is True
    assert outcome.json["sound"]["rate"] < 0.02
    assert outcome.json["guarantee"]["nominal_epsilon"] == 0.1
    assert "Privacy loss of one release" in page.read_text(encoding="utf-8")


@pytest.mark.seconds
def test_a_model_on_disk_is_attacked_at_its_own_epsilon(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bundle = tmp_path / "model"
    data = ("--data", "ItalyPowerDemand")
    made = tacit(capsys, "train", "softshape", *data, "--epsilon", 3, "--out", bundle, "--json")
    assert made.code == 0, made.err
    arguments = (*data, "--no-trick", "--candidates", 20)
    open_one = (*arguments, "--bundle", bundle)
    outcome = tacit(capsys, "attack", "softshape", *open_one, "--first", 7, "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.json
    assert found["guarantee"]["nominal_epsilon"] == 3.0
    assert found["sound"]["guarantee"]["epsilon"] == made.json["guarantee"]["epsilon"]
    assert found["sound"]["within"] is True
    assert found["chance"] == 0.05
    assert found["chance"] < found["sound"]["rate"] <= found["sound"]["bound"] * 1.2
    assert_refused(tacit(capsys, "attack", "softshape", *open_one, "--first", 5000), "5000")
    assert_refused(
        tacit(capsys, "attack", "softshape", *arguments, "--bundle", tmp_path / "none"), "none"
    )


@pytest.mark.seconds
def test_timefl_holds_the_contract(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "timefl.html"
    outcome = tacit(capsys, "attack", "timefl", "--rounds", 1, "--out", page, "--json")
    assert outcome.code == 0
    assert outcome.json["succeeded"] is True
    assert outcome.json["rate"] > 0.9
    assert outcome.json["chance"] == 0.025
    assert outcome.json["sound"]["within"] is True
    assert outcome.json["sound"]["rate"] < 0.2
    assert outcome.json["guarantee"]["nominal_epsilon"] == 8.0
    assert page.exists()


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = tacit(capsys, "attack", "pidp", "--length", 10, "--runs", 1)
    assert outcome.code == 0
    assert "succeeded" in outcome.out
    assert "100.0%" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["pidp", "--length", "0"], "length"),
        (["pidp", "--runs", "0"], "runs"),
        (["pidp", "--data", "NoSuchSet"], "NoSuchSet"),
        (["pidp", "--length", "10", "--out", "page.pdf"], "html"),
        (["pidb"], "pidp"),
        (["softshape", "--epsilon", "nan"], "epsilon"),
        (["softshape", "--candidates", "1"], "n_candidates"),
        (["softshape", "--preset", "best"], "tuned"),
        (["timefl", "--epsilon", "0"], "epsilon"),
        (["timefl", "--clients", "1"], "n_clients"),
        (["timefl", "--delta", "2"], "delta"),
        (["timefl", "--rounds", "0"], "n_rounds"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(tacit(capsys, "attack", *arguments), word)
