"""The shapes release: a public allocation that sums to the budget, each patch noised once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from local_problems import italy, shapes_head, trained, trained_multivariate
from tacit.errors import TacitError
from tacit.local.releases.shapes import ShapesHead, patches_of
from tacit.noise import SYSTEM_NOISE

FALSE_ALARM = 1e-6


def head() -> ShapesHead:
    return shapes_head(trained("shapes"))


@pytest.mark.seconds
def test_the_allocation_sums_to_the_budget() -> None:
    for classifier in (trained("shapes"), trained_multivariate("shapes")[0]):
        allocation = classifier.allocation()
        assert allocation.epsilon.sum() <= classifier.epsilon
        assert allocation.epsilon.sum() == pytest.approx(classifier.epsilon)
        kept = allocation.epsilon > 0.0
        np.testing.assert_allclose(allocation.noise_scale[kept], 2.0 / allocation.epsilon[kept])
        assert np.all(np.isinf(allocation.noise_scale[~kept]))


def test_the_allocation_covers_every_channel_and_step() -> None:
    classifier, X = trained_multivariate("shapes")
    allocation = classifier.allocation()
    assert allocation.epsilon.shape == (3, len(allocation.starts))
    covered = {
        step for start in allocation.starts for step in range(start, start + allocation.length)
    }
    assert covered == set(range(X.shape[2]))


@pytest.mark.parametrize("length", [1, 2, 3, 8, 24, 150, 151])
def test_patches_lie_inside_the_series(length: int) -> None:
    starts, size = patches_of(length)
    assert starts.min() == 0
    assert starts.max() + size == length


def noise_fits(used: ShapesHead, claimed: ShapesHead) -> bool:
    """Each kept patch of a far-away series: Laplace around a clipped centre, 100,000 draws."""
    X = np.repeat(1e6 * italy().X_test[:1], 100_000, axis=0)
    summary = used.summarise(X)
    assert np.abs(summary).sum(axis=2).max() <= 1.0
    values = used.randomize(summary, source=SYSTEM_NOISE).reshape(summary.shape)
    scales = 2.0 / (claimed.epsilon * claimed.shares[claimed.shares > 0.0])
    residual = (values - summary) / scales[:, None]
    columns = residual.reshape(len(X), -1).T
    worst = min(stats.kstest(column, stats.laplace.cdf).pvalue for column in columns)
    return bool(worst * len(columns) > FALSE_ALARM)


@pytest.mark.seconds
def test_patches_are_noised_as_allocated() -> None:
    assert noise_fits(head(), head())


def test_the_check_notices_ten_percent_less_noise() -> None:
    assert not noise_fits(replace(head(), epsilon=2.2), head())


def test_an_allocation_above_the_budget_cannot_be_made() -> None:
    for shares in (head().shares * 1.01, -head().shares, np.zeros_like(head().shares)):
        with pytest.raises(TacitError, match="add up"):
            replace(head(), shares=shares)


def test_other_releases_have_no_allocation() -> None:
    with pytest.raises(TacitError, match="use 'shapes'"):
        trained("label").allocation()
