"""The page of `tacit train softshape --page`: charts with their guarantee, in every mode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from local_problems import italy, trained
from tacit.data.dataset import Dataset
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.report.local_page import _sound_curve, write_softshape_page


def small(data: Dataset) -> Dataset:
    return replace(data, X_test=data.X_test[:60], y_test=data.y_test[:60])


@pytest.mark.parametrize(
    ("release", "pictures"), [("label", 1), ("place", 2), ("vector", 2), ("shapes", 2)]
)
def test_a_sound_page_carries_its_guarantee(release: str, pictures: int, tmp_path: Path) -> None:
    page = write_softshape_page(
        tmp_path / "page.html", classifier=trained(release), dataset=small(italy()), accuracy=0.8
    )
    text = page.read_text(encoding="utf-8")
    assert text.count('<figure class="chart"') == pictures
    # Once on top of the page, and in the data of every picture.
    assert text.count("Local differential privacy with epsilon = 2 in total") >= 1 + pictures
    assert "ceiling at this total epsilon" in text


def test_a_published_page_shows_three_figures_and_no_guarantee(tmp_path: Path) -> None:
    data = small(italy())
    classifier = DPSoftShapeClassifier(
        0.1, mode="published", settings=SoftShapeSettings(steps=3), random_state=0
    ).fit(data.X_train, data.y_train)
    page = write_softshape_page(
        tmp_path / "page.html", classifier=classifier, dataset=data, accuracy=0.7
    )
    text = page.read_text(encoding="utf-8")
    assert text.count('<figure class="chart"') == 4
    assert "reidentification" in text
    assert "Local differential privacy with" not in text


def test_the_drawn_label_curve_rises_to_the_clean_accuracy() -> None:
    curve = _sound_curve(trained("label"), italy(), [0.1, 1.0, 3.0, 8.0, 25.0], 0.0)
    expected, clean = curve["label release, expected"], curve["before the noise"]
    assert np.all(np.diff(expected) > 0.0)
    assert expected[-1] == pytest.approx(clean[0], abs=1e-6)
