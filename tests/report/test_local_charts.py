"""The charts of the local family from plain arrays."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from drawn import caption, layers, lines, rows
from tacit.errors import TacitError
from tacit.guarantee import Unprotected
from tacit.report.charts import with_guarantee
from tacit.report.local_charts import (
    allocation_figure,
    budget_figure,
    latent_figure,
    per_step,
    places_figure,
    principal_plane,
    routing_figure,
)
from tacit.report.render import to_svg

STARTS, LENGTH = [0, 4, 8], 6


def test_the_allocation_shows_series_scores_and_noise() -> None:
    series = np.sin(np.arange(14.0))
    alpha, scale = np.array([0.1, 0.9, 0.5]), np.array([9.0, 1.0, 5.0])
    figure = allocation_figure(
        series, patch_starts=STARTS, patch_length=LENGTH, alpha=alpha, noise_scale=scale
    )
    assert [mark for mark, _ in layers(figure)] == ["line", "rect", "bar"]
    steps, values = lines(figure)["channel 0"]
    np.testing.assert_array_equal(steps, np.arange(14))
    np.testing.assert_array_equal(values, series)
    shade, bars = rows(figure, "rect"), rows(figure, "bar")
    np.testing.assert_array_equal([bar["scale"] for bar in bars], scale)
    np.testing.assert_array_equal([bar["centre"] for bar in bars], [3.0, 7.0, 11.0])
    assert shade[0]["score"] == pytest.approx(0.1)
    assert shade[5]["score"] == pytest.approx(0.5)  # covered by the first two patches


def test_places_shade_the_steps_of_the_series() -> None:
    figure = places_figure(
        np.sin(np.arange(10.0)), edges=[0, 2, 5, 10], probability=np.array([0.1, 0.6, 0.3])
    )
    assert [mark for mark, _ in layers(figure)] == ["rect", "line", "text"]
    places = rows(figure, "rect")
    assert [(at["from"], at["to"]) for at in places] == [(-0.5, 1.5), (1.5, 4.5), (4.5, 9.5)]
    np.testing.assert_array_equal([at["probability"] for at in places], [0.1, 0.6, 0.3])
    assert [at["shown"] for at in rows(figure, "text")] == ["10%", "60%", "30%"]
    many = np.full(10, 0.05)
    many[3] = 0.55
    said = rows(places_figure(np.zeros(10), edges=list(range(11)), probability=many), "text")
    assert [at["shown"] for at in said] == ["55%" if n == 3 else "" for n in range(10)]
    assert to_svg(figure).startswith("<svg")
    with pytest.raises(TacitError, match="2 places and 4 edges"):
        places_figure(np.zeros(10), edges=[0, 2, 5, 10], probability=np.array([0.4, 0.6]))


def test_several_channels_are_drawn() -> None:
    figure = allocation_figure(
        np.zeros((3, 14)),
        patch_starts=STARTS,
        patch_length=LENGTH,
        alpha=np.zeros(3),
        noise_scale=np.ones(3),
    )
    assert list(lines(figure)) == ["channel 0", "channel 1", "channel 2"]
    assert len(layers(figure)) == 3


def test_steps_that_no_patch_covers_are_empty() -> None:
    cover = per_step(np.array([1.0]), [0], 3, 5)
    np.testing.assert_array_equal(cover, [1, 1, 1, np.nan, np.nan])


def test_the_latent_map_has_one_cloud_per_class_and_panel() -> None:
    rng = np.random.default_rng(0)
    clean = rng.normal(size=(30, 5))
    figure = latent_figure({"clean": clean, "noisy": clean + 1}, ["a", "b", "c"] * 10)
    panels = [found for _, found in layers(figure)]
    assert [len(found) for found in panels] == [30, 30]
    for found in panels:
        assert Counter(row["series"] for row in found) == {"a": 10, "b": 10, "c": 10}
    assert to_svg(figure).count(">a</text>") == 1, "both panels share one legend"


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
    cells = rows(figure, "rect")
    assert list(dict.fromkeys(c["expert"] for c in cells)) == ["expert 1", "expert 2", "expert 3"]
    np.testing.assert_array_equal(np.reshape([c["weight"] for c in cells], (3, 3)), routing)


def test_the_budget_curve_draws_the_ceiling() -> None:
    figure = budget_figure([0.1, 1.0], {"published": [0.8, 0.9]}, ceiling=[0.4, 0.6], floor=0.3)
    assert list(lines(figure)) == ["published", "ceiling at this total epsilon"]
    assert lines(figure)["ceiling at this total epsilon"] == ([0.1, 1.0], [0.4, 0.6])
    assert rows(figure, "rule") == [{"level": 0.3, "text": "always the commonest class"}]
    encoding = figure.to_dict()["layer"][0]["encoding"]
    assert encoding["x"]["scale"]["type"] == "log"
    captioned = with_guarantee(figure, Unprotected(reason="published", nominal_epsilon=1.0))
    assert "No privacy guarantee" in caption(captioned)


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
