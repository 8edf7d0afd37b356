"""The label channel: never above epsilon, never above the ceiling, and as good as promised."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.releases.channel import (
    accuracy_ceiling,
    check_channel,
    choose_channel,
    design_channel,
    label_gain,
)
from tacit.local.releases.confusion import class_shares, design_gain, with_class_shares
from tacit.mechanisms import channel_epsilon, krr_matrix

EPSILONS = [1e-3, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0, 40.0]


def random_gain(rng: np.random.Generator, n_classes: int) -> Floats:
    gain = rng.dirichlet(np.full(n_classes**2, 0.3)).reshape(n_classes, n_classes)
    return gain + np.diag(rng.dirichlet(np.ones(n_classes)))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 9),
    epsilon=st.floats(0.01, 12.0),
)
def test_designed_channels_keep_epsilon_exactly(seed: int, n_classes: int, epsilon: float) -> None:
    channel = design_channel(random_gain(np.random.default_rng(seed), n_classes), epsilon=epsilon)
    assert channel_epsilon(channel) <= epsilon
    np.testing.assert_allclose(channel.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, *EPSILONS, 11.17542583795073, 60.0, 800.0])
@pytest.mark.parametrize("n_classes", [2, 5, 25])
def test_k_rr_keeps_epsilon_to_the_last_bit(epsilon: float, n_classes: int) -> None:
    gain = np.full((n_classes, n_classes), 1.0)
    assert channel_epsilon(design_channel(gain, epsilon=epsilon, kind="krr")) <= epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_optimum_is_at_least_k_rr(epsilon: float) -> None:
    gain = random_gain(np.random.default_rng(5), 6)
    best = (design_channel(gain, epsilon=epsilon) * gain).sum()
    assert best >= (krr_matrix(6, epsilon) * gain).sum() - 1e-9


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_three_classes_agree_with_a_search_over_patterns(epsilon: float) -> None:
    """Two routes to one number: channels with every entry at a bound, against the program.

    Entries are m_y or e**epsilon m_y; each pattern with a solvable floor m is a feasible channel,
    so the program must reach the best of them.
    """
    gain = random_gain(np.random.default_rng(11), 3)
    e, best = math.exp(epsilon), 0.0
    rows = [np.where(pattern, e, 1.0) for pattern in itertools.product([False, True], repeat=3)]
    for chosen in itertools.product(rows, repeat=3):
        system = np.array(chosen)
        if abs(np.linalg.det(system)) < 1e-12:
            continue
        floor = np.linalg.solve(system, np.ones(3))
        if floor.min() >= 0.0:
            best = max(best, float((system * floor * gain).sum()))
    found = float((design_channel(gain, epsilon=epsilon) * gain).sum())
    assert found >= best - 1e-6
    assert best > 0.0


def test_a_channel_above_epsilon_is_refused() -> None:
    with pytest.raises(TacitError, match="above"):
        check_channel(krr_matrix(3, 1.01), epsilon=1.0)


def test_no_channel_beats_the_ceiling() -> None:
    rng = np.random.default_rng(3)
    for epsilon in EPSILONS:
        prior = rng.dirichlet(np.ones(5))
        ceiling = accuracy_ceiling(prior, epsilon=epsilon)
        for _ in range(5):
            confusion = rng.dirichlet(np.full(5, 0.2), size=5)  # given the class, the device label
            gain = (confusion * prior[:, None]).T
            assert (design_channel(gain, epsilon=epsilon) * gain).sum() <= ceiling + 1e-6


def test_ceiling_of_balanced_classes_is_k_rr_in_closed_form() -> None:
    for k, epsilon in [(2, 1.0), (4, 0.5), (7, 3.0)]:
        expected = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
        assert accuracy_ceiling(np.ones(k), epsilon=epsilon) == pytest.approx(expected, abs=1e-7)


def held_out_of(counts: list[int]) -> tuple[Floats, Codes]:
    y = np.repeat(np.arange(len(counts)), counts)
    return 0.97 * np.eye(len(counts))[y] + 0.03 / len(counts), y


def test_rare_classes_are_left_out_only_with_enough_evidence() -> None:
    """Shares of 8:8:3:5 among 24 series are no surprise from equal shares; among 2,400 they are."""
    few = choose_channel(*held_out_of([8, 8, 3, 5]), epsilon=1.0)
    many = choose_channel(*held_out_of([800, 800, 300, 500]), epsilon=1.0)
    np.testing.assert_allclose(few, krr_matrix(4, 1.0), atol=1e-12)
    assert np.count_nonzero(many.max(axis=0)) < 4


def test_the_channel_is_the_best_one_for_the_shares_that_are_expected() -> None:
    """Trained on equal classes, released where nine in ten are of one class."""
    held_out, y = held_out_of([50, 50, 50])
    shares = np.array([0.9, 0.05, 0.05])
    there = with_class_shares(design_gain(held_out, y), shares)
    np.testing.assert_allclose(there.sum(axis=0), shares)
    as_trained = choose_channel(held_out, y, epsilon=1.0)
    expected = choose_channel(held_out, y, epsilon=1.0, shares=shares)
    np.testing.assert_allclose(as_trained, krr_matrix(3, 1.0), atol=1e-12)
    assert (there * expected).sum() == pytest.approx(0.9, abs=1e-6)  # it always says the first
    assert (there * as_trained).sum() < 0.6


def test_a_class_that_is_never_recognised_is_left_out_with_enough_evidence() -> None:
    """Class 2 looks like class 0: with 600 series its label is not sent, with 6 it still is."""

    def alike(n: int) -> tuple[Floats, Codes]:
        held_out, y = held_out_of([n, n, n])
        held_out[y == 2] = [0.6, 0.02, 0.38]
        return held_out, y

    many, few = (choose_channel(*alike(n), epsilon=2.0) for n in (200, 2))
    assert many[:, 2].max() == 0.0
    assert few[:, 2].max() > 0.0


def test_shares_are_shrunk_as_far_as_the_counts_allow() -> None:
    np.testing.assert_allclose(class_shares(np.array([10.0, 10.0, 10.0])), 1 / 3)
    counts: Floats = np.array([8.0, 8.0, 3.0, 5.0])
    few, many = (class_shares(counts * times) for times in (1.0, 100.0))
    for shares in (few, many):
        assert shares.sum() == pytest.approx(1.0)
    assert np.ptp(few) < 0.1  # counts: 3/24 to 8/24
    np.testing.assert_allclose(many, np.array([8, 8, 3, 5]) / 24, atol=0.005)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_design_gain_is_a_joint_distribution_with_the_shrunken_shares(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=40)
    held_out = rng.dirichlet(np.ones(n_classes), size=40)
    gain = design_gain(held_out, y)
    assert gain.min() >= 0.0
    counts = np.bincount(y, minlength=n_classes).astype(float)
    np.testing.assert_allclose(gain.sum(axis=0), class_shares(counts.astype(np.float64)))


def test_gain_is_a_joint_distribution() -> None:
    y = np.array([0, 0, 1, 1, 2])
    gain = label_gain(np.eye(3)[[0, 1, 1, 1, 2]] * 0.9 + 0.1 / 3, y)
    assert gain.sum() == pytest.approx(1.0)
    assert gain[0, 0] > gain[0, 1]
    assert gain[1, 0] > gain[2, 0]  # one series of class 0 was called 1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(TacitError, match="epsilon"):
        design_channel(np.eye(3) / 3, epsilon=epsilon)
    with pytest.raises(TacitError, match="epsilon"):
        accuracy_ceiling(np.ones(3), epsilon=epsilon)
