"""`tacit audit` as a user runs it."""

from __future__ import annotations

import pytest

from command import assert_refused, tacit

pytestmark = pytest.mark.core


def test_json_holds_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = tacit(capsys, "audit", "krr", "--trials", 200_000, "--json")
    assert outcome.code == 0
    assert outcome.json["verdict"] == "consistent"
    assert outcome.json["claimed_epsilon"] == 1.0
    assert 0.5 < outcome.json["lower_bound"] <= 1.0
    assert outcome.json["trials"] == 200_000
    assert outcome.json["confidence"] == 0.999999


def test_a_false_claim_is_refuted(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ("--epsilon", 2, "--claim", 1, "--trials", 200_000)
    assert tacit(capsys, "audit", "laplace", *settings, "--json").json["verdict"] == "refuted"


def test_people_get_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = tacit(capsys, "audit", "krr", "--trials", 4000)
    assert outcome.code == 0
    assert "lower bound" in outcome.out
    assert "verdict" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nonsense"], "nonsense"),
        (["krr", "--trials", "10"], "trials"),
        (["krr", "--epsilon", "nan"], "epsilon"),
        (["krr", "--epsilon", "0"], "epsilon"),
        (["krr", "--claim", "-1"], "claim"),
        (["krr", "--delta", "1"], "delta"),
        (["krr", "--confidence", "1"], "confidence"),
        (["privunit-training", "--confidence", "1"], "confidence"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(tacit(capsys, "audit", *arguments), word)
