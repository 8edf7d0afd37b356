"""`tacit attack` as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import assert_refused, tacit

pytestmark = pytest.mark.core


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
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(tacit(capsys, "attack", *arguments), word)
