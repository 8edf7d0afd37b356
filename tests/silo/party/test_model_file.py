"""The initiator's model file reads back and knows the series that it was made with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BundleError
from tacit.silo.party.model_file import bind_to_series, is_bound_to, read_model, write_model


def test_a_model_knows_its_series_by_a_salted_hash(tmp_path: Path) -> None:
    from safetensors.numpy import save

    X = np.random.default_rng(0).normal(size=(3, 1, 5))
    model = save({"series": np.arange(4)})
    first, second = bind_to_series(model, X), bind_to_series(model, X)
    assert first != second  # nobody can compare two runs, or look a hash up
    write_model(tmp_path, first)
    assert read_model(tmp_path)["series"].tolist() == [0, 1, 2, 3]
    assert is_bound_to(tmp_path / "model.safetensors", X)
    assert not is_bound_to(tmp_path / "model.safetensors", X.reshape(3, 5, 1))
    assert not is_bound_to(tmp_path / "model.safetensors", np.nextafter(X, 9.0))
    write_model(tmp_path, model)  # no hash at all
    assert not is_bound_to(tmp_path / "model.safetensors", X)


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, b"not a model")
    with pytest.raises(BundleError):
        read_model(tmp_path)
