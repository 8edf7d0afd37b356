"""Receipts read back, list what was opened, and claim no channel that a run did not have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from silo_parties import plan_of
from tacit.errors import BundleError
from tacit.guarantee import from_dict
from tacit.silo.party.receipts import Receipt, read_receipt, receipt_from_dict, write_receipt
from tacit.silo.secure.openings import Opening, summarise


def test_openings_are_listed_once_each_with_their_owner() -> None:
    opened = [
        Opening(what="indices", to=0),
        Opening(what="splits", to=0),
        Opening(what="splits", to=0),
        Opening(what="stop", to=-1),
    ]
    assert summarise(opened, ("a", "b")) == ("indices -> a", "splits -> a", "stop -> all parties")


def _receipt() -> Receipt:
    plan, _ = plan_of("distances_program", 3, k=3, length=5)
    return Receipt(
        party="b",
        plan=plan,
        info={"n": 1},
        opened=(Opening(what="indices", to=0),),
        bytes_sent=10,
        rounds=2,
        seconds=0.5,
    )


def test_receipts_read_back_and_carry_their_guarantee(tmp_path: Path) -> None:
    write_receipt(tmp_path, _receipt())
    assert read_receipt(tmp_path) == _receipt()
    plain = json.loads((tmp_path / "receipt.json").read_text())
    assert from_dict(plain["guarantee"]) == _receipt().guarantee
    assert plain["guarantee"]["opened"] == ["indices -> a"]
    assert plain["fingerprint"] == _receipt().plan.fingerprint
    assert not (tmp_path / "model.safetensors").exists()


def test_a_receipt_assumes_no_firewall_and_no_honest_names() -> None:
    claimed = _receipt().guarantee.assumptions
    assert any("TLS 1.3" in text for text in claimed)
    assert not any("firewall" in text or "impersonates" in text for text in claimed)


def test_damaged_receipts_are_refused(tmp_path: Path) -> None:
    write_receipt(tmp_path, _receipt())
    (tmp_path / "receipt.json").write_text("{")
    with pytest.raises(BundleError):
        read_receipt(tmp_path)
    with pytest.raises(BundleError, match="not a receipt"):
        receipt_from_dict({"party": "a"})


def test_a_folder_without_a_receipt_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"there is no receipt\.json in [^;]+; give the folder"):
        read_receipt(tmp_path)
    (tmp_path / "receipt.json.previous").write_text("{}")
    with pytest.raises(BundleError, match=r"earlier run, receipt\.json\.previous; give"):
        read_receipt(tmp_path)
