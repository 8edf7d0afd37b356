"""A run's files appear all at once, and an earlier run's are neither lost nor mistaken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from silo_parties import plan_of
from tacit.silo.party.receipts import Receipt, read_receipt
from tacit.silo.party.results import Outcome, Results


def outcome(party: str) -> Outcome:
    plan, _ = plan_of("distances_program", 3, k=3, length=5)
    receipt = Receipt(
        party=party, plan=plan, info={}, opened=(), bytes_sent=1, rounds=1, seconds=0.1
    )
    return Outcome(receipt=receipt, model=b"model")


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def test_files_appear_when_they_are_published(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.begin()
    results.stage(outcome("a"))
    assert visible(tmp_path) == set()
    results.publish()
    assert visible(tmp_path) == {"model.safetensors", "receipt.json"}
    assert {path.name for path in tmp_path.iterdir()} == visible(tmp_path)
    assert read_receipt(tmp_path).party == "a"


def test_an_earlier_result_stays_until_there_is_a_later_one(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.stage(outcome("a"))
    results.publish()
    results.begin()
    results.stage(outcome("b"))
    results.drop()
    assert visible(tmp_path) == {"model.safetensors", "receipt.json"}
    assert read_receipt(tmp_path).party == "a"


def test_a_later_result_puts_all_of_the_earlier_one_aside(tmp_path: Path) -> None:
    """Also a model that the later run does not replace: it is not that run's."""
    results = Results(tmp_path)
    results.stage(outcome("a"))
    results.publish()
    results.stage(replace(outcome("b"), model=None))
    results.publish()
    aside = {"model.safetensors.previous", "receipt.json.previous"}
    assert visible(tmp_path) == {"receipt.json", *aside}
    assert read_receipt(tmp_path).party == "b"


def test_a_folder_that_cannot_be_written_to_is_noticed_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="directory"):
        Results(tmp_path / "file" / "out").begin()
