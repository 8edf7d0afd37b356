"""Parties on real processes: what each of them ends with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from silo_parties import federation
from tacit.silo.party.model_file import read_model
from tacit.silo.party.receipts import read_receipt


@pytest.mark.slow
def test_the_initiator_ends_with_the_model_and_the_others_with_a_receipt(tmp_path: Path) -> None:
    with federation(tmp_path, program="distances_program", k=3, length=5) as f:
        f.start_all()
        results = {}
        for name in ("a", "b", "c"):
            code, out, err = f.end(name, within=60.0)
            assert code == 0, err
            results[name] = json.loads(out)
        assert read_model(f.configs["a"].parent / "out")["distances"].shape == (15, 3)
        assert [results[name]["model"] is not None for name in "abc"] == [True, False, False]
        assert len({results[name]["fingerprint"] for name in "abc"}) == 1
        for name in "abc":
            out_folder = f.configs[name].parent / "out"
            assert read_receipt(out_folder).guarantee.to_dict() == results[name]["guarantee"]
            assert "own_series" not in (out_folder / "receipt.json").read_text()
            assert (out_folder / "model.safetensors").exists() == (name == "a")
            assert (out_folder / "receipt.json").stat().st_mode & 0o777 == 0o600
