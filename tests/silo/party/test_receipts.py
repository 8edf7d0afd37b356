"""Receipts read back, list what was opened, and claim no channel that a run did not have."""

from __future__ import annotations

import json
from dataclasses import replace
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


def test_a_receipt_claims_no_channels_that_a_run_did_not_have() -> None:
    claimed = _receipt().guarantee.assumptions
    assert any("TLS 1.3" in text for text in claimed)
    assert any("firewall" in text for text in claimed)
    plain = replace(_receipt(), tls=False).guarantee.assumptions
    assert not any("TLS" in text for text in plain)
    assert any("no channel is protected" in text for text in plain)


def test_damaged_receipts_are_refused(tmp_path: Path) -> None:
    write_receipt(tmp_path, _receipt())
    (tmp_path / "receipt.json").write_text("{")
    with pytest.raises(BundleError):
        read_receipt(tmp_path)
    with pytest.raises(BundleError, match="not a receipt"):
        receipt_from_dict({"party": "a"})
