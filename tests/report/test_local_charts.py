"""The pictures of the local family from plain arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.guarantee import Unprotected
from tacit.report.figure import with_guarantee
from tacit.report.local_charts import (
    allocation_figure,
    budget_figure,
    latent_figure,
    per_step,
    principal_plane,
    routing_figure,
)

STARTS, LENGTH = [0, 4, 8], 6


def test_the_allocation_shows_series_scores_and_noise() -> None:
    series = np.sin(np.arange(14.0))
    alpha, scale = np.array([0.1, 0.9, 0.5]), np.array([9.0, 1.0, 5.0])
    figure = allocation_figure(
        series, patch_starts=STARTS, patch_length=LENGTH, alpha=alpha, noise_scale=scale
    )
    line, shade, bars = figure.data
    np.testing.assert_array_equal(line.y, series)
    np.testing.assert_array_equal(bars.y, scale)
    np.testing.assert_array_equal(bars.x, [3.0, 7.0, 11.0])
    assert shade.z[0][0] == pytest.approx(0.1)
    assert shade.z[0][5] == pytest.approx(0.5)  # covered by the first two patches


def test_several_channels_are_drawn() -> None:
    figure = allocation_figure(
        np.zeros((3, 14)),
        patch_starts=STARTS,
        patch_length=LENGTH,
        alpha=np.zeros(3),
        noise_scale=np.ones(3),
    )
    assert len(figure.data) == 5


def test_steps_that_no_patch_covers_are_empty() -> None:
    cover = per_step(np.array([1.0]), [0], 3, 5)
    np.testing.assert_array_equal(cover, [1, 1, 1, np.nan, np.nan])


def test_the_latent_map_has_one_cloud_per_class_and_panel() -> None:
    rng = np.random.default_rng(0)
    clean = rng.normal(size=(30, 5))
    figure = latent_figure({"clean": clean, "noisy": clean + 1}, ["a", "b", "c"] * 10)
    assert len(figure.data) == 6
    assert [t.showlegend for t in figure.data] == [True] * 3 + [False] * 3


def test_the_principal_plane_keeps_the_largest_variance() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 4)) * np.array([0.1, 5.0, 0.1, 2.0])
    plane = principal_plane(points)
    assert np.var(plane[:, 0]) == pytest.approx(np.var(points[:, 1]), rel=0.05)
    assert np.var(plane[:, 1]) == pytest.approx(np.var(points[:, 3]), rel=0.05)
    assert principal_plane(points[:1]).shape == (1, 2)


def test_the_routing_map_has_a_row_per_expert() -> None:
    routing = np.eye(3)
    figure = routing_figure(np.zeros(14), routing, patch_centres=[3.0, 7.0, 11.0])
    heat = figure.data[1]
    assert list(heat.y) == ["expert 1", "expert 2", "expert 3"]
    np.testing.assert_array_equal(heat.z, routing)


def test_the_budget_curve_draws_the_ceiling() -> None:
    figure = budget_figure([0.1, 1.0], {"published": [0.8, 0.9]}, ceiling=[0.4, 0.6], floor=0.3)
    assert [t.name for t in figure.data] == ["published", "ceiling at this total epsilon"]
    assert figure.layout.xaxis.type == "log"
    captioned = with_guarantee(figure, Unprotected(reason="published", nominal_epsilon=1.0))
    assert "No privacy guarantee" in captioned.layout.annotations[-1].text


def test_lengths_that_do_not_match_are_refused() -> None:
    with pytest.raises(TacitError, match="alpha"):
        allocation_figure(
            np.zeros(14),
            patch_starts=STARTS,
            patch_length=LENGTH,
            alpha=np.zeros(2),
            noise_scale=np.ones(3),
        )
    with pytest.raises(TacitError, match="points"):
        latent_figure({"x": np.zeros((3, 2))}, ["a"])
    with pytest.raises(TacitError, match="panel"):
        latent_figure({}, [])
    with pytest.raises(TacitError, match="routing"):
        routing_figure(np.zeros(14), np.zeros((2, 2)), patch_centres=[1.0])
    with pytest.raises(TacitError, match="epsilons"):
        budget_figure([1.0], {"x": [0.1, 0.2]})
