"""What a party brings, and what it tells the others."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.silo.party.own_data import OwnData, read_data


def test_facts_say_counts_and_nothing_of_the_values() -> None:
    X = np.full((3, 1, 5), 123456.789)
    facts = OwnData(X=X, labels=np.array(["b", "a", "b"])).facts()
    assert (facts.count, facts.series_length, facts.classes) == (3, 5, ("a", "b"))
    assert "123456" not in json.dumps(facts.to_dict())


def test_a_missing_data_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TacitError, match="no data file"):
        read_data(tmp_path / "none.npz")
