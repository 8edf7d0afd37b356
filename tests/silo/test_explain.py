"""Explanations: shares of the decision, places, and P0's own data only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drawn import lines
from tacit import load_dataset
from tacit.guarantee import Unprotected
from tacit.report.silo_charts import growth_figure, write_explanation
from tacit.silo import FedSTClassifier
from tacit.silo.explain import Explanation


@pytest.fixture(scope="module", params=["forest", "logistic", "ridge"])
def model(request: pytest.FixtureRequest) -> FedSTClassifier:
    data = load_dataset("GunPoint")
    fitted = FedSTClassifier(
        scope="local",
        classifier=request.param,
        n_candidates=40,
        n_shapelets=10,
        n_trees=8,
        depth=3,
        random_state=1,
    )
    fitted.fit(data.X_train, data.y_train)
    return fitted


@pytest.mark.seconds
def test_influences_are_shares_and_places_fit(model: FedSTClassifier) -> None:
    x = load_dataset("GunPoint").X_test[3, 0]
    found: Explanation = model.explain(x, n_shapelets=10)
    assert found.prediction == model.predict(x[None, :])[0]
    assert sum(m.influence for m in found.matches) == pytest.approx(1.0)
    order = [m.influence for m in found.matches]
    assert order == sorted(order, reverse=True)
    compared = (x - x.mean()) / x.std()
    for match in found.matches:
        window = compared[match.position : match.position + len(match.values)]
        direct = float(((window - match.values) ** 2).sum())
        assert match.distance == pytest.approx(direct, rel=1e-3, abs=1e-3)
        assert set(match.class_distances) == {str(c) for c in model.classes_}


def test_a_series_of_its_own_matches_itself(model: FedSTClassifier) -> None:
    shapelet = model.shapelets_[0]
    found = model.explain(model.own_series_[shapelet.series], n_shapelets=10)
    match = next(m for m in found.matches if m.shapelet == 0)
    assert match.distance == 0.0
    assert match.position == shapelet.start


@pytest.mark.seconds
def test_the_page_carries_the_guarantee(model: FedSTClassifier, tmp_path: Path) -> None:
    found = model.explain(model.own_series_[0])
    page = write_explanation(
        tmp_path / "why.html",
        found,
        own_features=model.own_features_,
        own_codes=model.own_codes_,
        classes=[str(c) for c in model.classes_],
        units=model.model_.units(),
        guarantee=model.guarantee_,
    )
    text = page.read_text()
    assert model.guarantee_.sentence.split(":")[0] in text
    assert f"shapelet {found.matches[0].shapelet + 1}" in text


def test_growth_is_drawn_per_variant() -> None:
    points = [{"variant": "f", "M": m, "seconds": m / 100} for m in (128, 64)]
    figure = growth_figure(points, along="M", guarantee=Unprotected(reason="a test"))
    assert lines(figure) == {"f": ([64, 128], [0.64, 1.28])}


def test_influence_follows_the_trees_that_voted() -> None:
    from tacit.silo.explain import influence
    from tacit.silo.fedst.classifiers.forest import Forest

    forest = Forest(
        features=(np.array([[0], [1]]),),
        thresholds=(np.array([[5], [5]]),),
        labels=np.array([[0, 1], [1, 1]]),
        n_classes=2,
    )
    shares = influence(forest, np.array([[9], [0], [3]]), 1)
    assert shares.tolist() == [0.5, 0.5, 0.0]
    assert influence(forest, np.array([[1], [0], [3]]), 1).tolist() == [0.0, 1.0, 0.0]
