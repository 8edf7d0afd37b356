"""A saved fleet model predicts like the classifier that saved it, and refuses to be another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contract import toy_problem
from tacit.errors import BundleError, TacitError
from tacit.fleet import DPTimeFLClassifier
from tacit.fleet.model import load_fleet_model


@pytest.fixture(scope="module")
def classifier() -> DPTimeFLClassifier:
    X, y = toy_problem()
    classifier = DPTimeFLClassifier(n_clients=4, n_rounds=3, n_kernels=20, random_state=0)
    classifier.fit(X, y)
    return classifier


def test_a_model_predicts_from_its_file(classifier: DPTimeFLClassifier, tmp_path: Path) -> None:
    X, _ = toy_problem()
    classifier.save(tmp_path / "model")
    model = load_fleet_model(tmp_path / "model")
    assert model.labels(X).tolist() == [str(label) for label in classifier.predict(X)]
    assert model.guarantee == classifier.guarantee_
    assert model.rounds == 3


def test_a_damaged_or_foreign_file_is_refused(
    classifier: DPTimeFLClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    with pytest.raises(BundleError, match="cannot read"):
        load_fleet_model(path)
    classifier.save(path)
    whole = path.read_bytes()
    for content in (b"", whole[:-1], whole[:200] + b"x" + whole[201:], b"tacit" + whole[5:-9]):
        path.write_bytes(content)
        with pytest.raises(BundleError, match="not a fleet model"):
            load_fleet_model(path)


def test_series_of_another_shape_are_refused(
    classifier: DPTimeFLClassifier, tmp_path: Path
) -> None:
    classifier.save(tmp_path / "model")
    with pytest.raises(TacitError, match="channels and length"):
        load_fleet_model(tmp_path / "model").labels(np.zeros((2, 1, 3)))


def test_a_published_model_is_not_saved(tmp_path: Path) -> None:
    X, y = toy_problem()
    published = DPTimeFLClassifier(
        n_clients=4, n_rounds=1, clients_per_round=2, mode="published", random_state=0
    )
    published.fit(X, y)
    with pytest.raises(TacitError, match="only a model with a guarantee"):
        published.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
