"""Explanations: shares of the decision, places, and P0's own data only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from drawn import lines
from tacit import load_dataset
from tacit.errors import TacitError
from tacit.guarantee import Unprotected
from tacit.report.charts import title_of
from tacit.report.silo_charts import (
    absence_sentence,
    growth_figure,
    match_figure,
    write_explanation,
)
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
        own_values=model.model_.natural(model.own_features_),
        own_codes=model.own_codes_,
        classes=[str(c) for c in model.classes_],
        guarantee=model.guarantee_,
    )
    text = page.read_text()
    assert model.guarantee_.sentence.split(":")[0] in text
    assert f"shapelet {found.matches[0].shapelet + 1}" in text


@pytest.mark.seconds
def test_a_page_shows_channels_intervals_and_words_by_name(tmp_path: Path) -> None:
    """The class lies in channel 1; a word that the series does not hold is drawn nowhere."""
    y = np.array(["a", "b"] * 15)
    X = np.random.default_rng(5).normal(size=(30, 2, 40))
    X[:, 1] += np.where(y == "a", 3.0, 0.0)[:, None] * (np.arange(40) > 25)
    fitted = FedSTClassifier(scope="global", features="all", n_candidates=30, n_shapelets=200)
    fitted.set_params(random_state=0).fit(X, y)
    assert (fitted.predict(X) == y).mean() > 0.8
    found = fitted.explain(X[0], n_shapelets=300)
    by_channel = [sum(m.influence for m in found.matches if m.channel == c) for c in (0, 1)]
    assert by_channel[1] > by_channel[0]
    assert {m.kind for m in found.matches} == {"shapelet", "interval", "word"}
    for match in found.matches:
        assert match.description.endswith(f", channel {match.channel}")
        there = found.compared[match.channel, match.position :][: len(match.values)]
        assert match.kind == "shapelet" or np.array_equal(there, match.values)
    present = [match for match in found.matches if match.position >= 0]
    absent = [match for match in found.matches if match.position < 0]
    assert absent
    panels = match_figure(found).vconcat
    assert len(panels) == 6
    for panel, match in zip(panels, present, strict=False):
        assert f"channel {match.channel}: {match.influence:.0%} of the decision" in title_of(panel)
        assert lines(panel)["series"][1] == found.compared[match.channel].tolist()
        assert "feature" in lines(panel)
        if match.kind != "shapelet":
            assert match.description in title_of(panel)
    assert f"word {absent[0].shapelet + 1} (" in absence_sentence(found.matches)
    assert absence_sentence(present) == ""
    gone = match_figure(replace(found, matches=tuple(absent))).vconcat
    assert [title_of(panel) for panel in gone] == ["The series, which holds none of them"]
    page = write_explanation(
        tmp_path / "why.html",
        found,
        own_values=fitted.model_.natural(fitted.own_features_),
        own_codes=fitted.own_codes_,
        classes=["a", "b"],
        guarantee=fitted.guarantee_,
    )
    text = page.read_text()
    for match in found.matches[:2]:
        assert match.description in text
    for words in ("nowhere", "does not hold", "An interval is", "A word is"):
        assert words in text, words
    for wrong in (X[0, :1], X[0, :, :30]):
        with pytest.raises(TacitError, match=r"channels and length \(2, 40\)"):
            fitted.explain(wrong)


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
