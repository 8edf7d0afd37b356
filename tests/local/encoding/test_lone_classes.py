"""A class with one training series is accepted, measured by nobody, and said to be so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from command import tacit
from contract import toy_problem
from local_problems import place_head
from tacit.arrays import Codes
from tacit.local import DPSoftShapeClassifier
from tacit.local.encoding.lone_classes import assume_unmeasured, held_out_accuracy, is_measured
from tacit.local.encoding.ridge import best_temperature, fit_ridge
from tacit.local.release import Kind
from tacit.local.softshape.settings import SoftShapeSettings

LONE = np.array([0, 0, 1, 1, 2], dtype=np.intp)


def one_of_the_first_class(y: NDArray[np.str_]) -> Codes:
    """The first series, and all of the other classes."""
    return np.array([0, *np.flatnonzero(y != y[0])])


def test_a_single_series_is_not_measured() -> None:
    assert is_measured(LONE).tolist() == [True, True, True, True, False]


def test_it_is_assumed_to_be_recognised_as_the_others_are() -> None:
    held_out = np.array(
        [[0.8, 0.1, 0.1], [0.6, 0.2, 0.2], [0.3, 0.7, 0.0], [0.0, 0.9, 0.1], [1.0, 0.0, 0.0]]
    )
    rows = assume_unmeasured(held_out, LONE)
    assert np.array_equal(rows[:4], held_out[:4])
    assert rows[4] == pytest.approx([0.125, 0.125, 0.75])  # the mean of .8, .6, .7 and .9
    assert held_out_accuracy(held_out, LONE) == 1.0  # the last row would have been a mistake


def test_it_has_no_say_in_the_temperature() -> None:
    scores = np.array([[1.0, 0.0, 0.0]] * 2 + [[0.0, 1.0, 0.0]] * 2 + [[1.0, 0.0, 0.0]])
    loss, temperature = best_temperature(scores, LONE)
    assert (loss, temperature) == best_temperature(scores[:4], LONE[:4])
    surer = np.array([0, 0, 1, 1, 0], dtype=np.intp)  # the same scores, now measured and right
    doubting = np.array([0, 0, 1, 1, 1], dtype=np.intp)  # and measured and wrong
    assert best_temperature(scores, surer)[1] == temperature
    assert best_temperature(scores, doubting)[1] < temperature


def test_where_every_class_has_two_nothing_is_assumed() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(12, 6)).astype(np.float32)
    y = np.arange(12, dtype=np.intp) % 3
    fit = fit_ridge(features, y, n_classes=3, block_sizes=(6,))
    assert np.array_equal(assume_unmeasured(fit.held_out, y), fit.held_out)


@pytest.mark.seconds
@pytest.mark.parametrize("release", ["label", "place", "vector"])
def test_every_release_accepts_it_and_says_so(release: Kind) -> None:
    X, y = toy_problem(n_classes=3, n_series=30)
    rows = one_of_the_first_class(y)
    classifier = DPSoftShapeClassifier(4.0, release=release, random_state=0).fit(X[rows], y[rows])
    (note,) = classifier.history_["notes"]
    assert repr(str(y[0])) in note
    assert "cannot be measured" in note
    assert set(classifier.predict(X)) <= set(y)


def test_a_lone_class_has_even_places() -> None:
    X, y = toy_problem(n_classes=3, n_series=30)
    rows = one_of_the_first_class(y)
    classifier = DPSoftShapeClassifier(4.0, release="place", random_state=0).fit(X[rows], y[rows])
    code = int(np.flatnonzero(classifier.classes_ == y[0])[0])
    called = place_head(classifier).place_shares[code]
    assert called == pytest.approx(np.full(4, 0.25))


@pytest.mark.seconds
def test_the_network_as_an_encoder_and_as_published_accept_it() -> None:
    X, y = toy_problem(n_classes=3, n_series=12)
    rows = one_of_the_first_class(y)
    settings = SoftShapeSettings(steps=3)
    sound = DPSoftShapeClassifier(4.0, encoder="softshape", settings=settings, random_state=0)
    assert len(sound.fit(X[rows], y[rows]).history_["notes"]) == 1
    published = DPSoftShapeClassifier(4.0, "published", settings=settings, random_state=0)
    assert published.fit(X[rows], y[rows]).leakage_ is not None


@pytest.mark.parametrize("release", ["label", "place"])
def test_the_command_warns_and_trains(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = toy_problem(n_classes=3, n_series=60)
    lone = one_of_the_first_class(y[:30])
    path = tmp_path / "lone.npz"
    np.savez(path, X_train=X[lone], y_train=y[lone], X_test=X[30:], y_test=y[30:])
    words = ("train", "softshape", "--data", path, "--epsilon", "16", "--release", release)
    result = tacit(capsys, *words, "--json").json
    assert any("class 'a' has one training series" in line for line in result["warnings"])
    assert result["accuracy"] > 0.6  # the commonest class has a third
