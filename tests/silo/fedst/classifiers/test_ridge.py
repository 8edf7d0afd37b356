"""The ridge classifier: over shares bit for bit the plaintext, and what theory says it is."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from replicated_parties import assert_uniform, one_share_only, shares_of, together
from tacit.errors import TacitError
from tacit.silo.fedst.classifiers.ridge import (
    RIDGE,
    Scales,
    default_doublings,
    ridge_from_arrays,
    ridge_from_opened,
    train_ridge,
)
from tacit.silo.fedst.classifiers.standard import LARGEST, standard_from
from tacit.silo.fedst.settings import Settings
from tacit.silo.secure.jax_x64 import enable_x64


def problem(k: int, m: int, n_classes: int = 3) -> tuple[NDArray[Any], NDArray[Any]]:
    """Standardised features as integers, correlated as those of overlapping shapelets are."""
    rng = np.random.default_rng(k + m)
    codes = np.arange(m) % n_classes
    causes = rng.normal(size=(5, m)) + codes * rng.normal(size=(5, 1))
    table = rng.normal(size=(k, 5)) @ causes + 0.3 * rng.normal(size=(k, m))
    table = np.rint(1024 * table / table.std(axis=1, keepdims=True)).astype(np.int64)
    return np.clip(table, -LARGEST, LARGEST), np.eye(n_classes, dtype=np.int64)[codes]


def in_plaintext(table: NDArray[Any], indicators: NDArray[Any], doublings: int) -> NDArray[Any]:
    with enable_x64():
        run = jax.jit(train_ridge, static_argnames="doublings")
        return np.asarray(run(table, indicators, doublings=doublings))


@pytest.mark.parametrize(
    ("k", "m", "doublings"), [(1, 6, 1), (4, 30, 7), (30, 12, 10), (25, 90, 12)]
)
def test_shares_and_plaintext_end_with_the_same_weights(k: int, m: int, doublings: int) -> None:
    table, indicators = problem(k, m)
    rng = np.random.default_rng(0)
    found, _, _ = together(
        lambda party, *x: RIDGE.replicated(party, *x, doublings=doublings),
        *(shares_of(x, np.uint64, rng) for x in (table, indicators)),
    )
    assert np.array_equal(found.astype(np.int64), in_plaintext(table, indicators, doublings))


@pytest.mark.parametrize(("k", "m"), [(4, 30), (30, 12), (40, 200)])
def test_the_weights_are_those_of_gradient_descent_stopped_early(k: int, m: int) -> None:
    """Against float64 and the spectrum of the features: 2^k steps of size 1 / t."""
    table, indicators = problem(k, m)
    doublings = 10
    scales = Scales(m, k, doublings)
    real = table.T / 1024
    centred = real - real.mean(axis=0)
    left, values, right = np.linalg.svd(centred, full_matrices=False)
    values, left, right = values[values > 1e-9], left[:, values > 1e-9], right[values > 1e-9]
    trace = np.sum(values**2) * m * 2**20 / 2**scales.gram_shift
    bound = next(t for t in scales.thresholds() if trace < t)
    steps = 1 - (1 - values**2 * m * 2**20 / (bound * 2.0**scales.gram_shift)) ** (2**doublings)
    target = indicators - indicators.mean(axis=0)
    expected = right.T @ ((steps / values)[:, None] * (left.T @ target))
    found = in_plaintext(table, indicators, doublings) / 2.0**scales.weight_bits
    np.testing.assert_allclose(found[:-1], expected, atol=2e-5)
    biases = indicators.mean(axis=0) - real.mean(axis=0) @ expected
    np.testing.assert_allclose(found[-1], biases, atol=2e-5)


@pytest.mark.parametrize("kind", ["zeros", "extremes", "one feature moves", "one class"])
@pytest.mark.parametrize(("k", "m"), [(1, 2), (3, 40), (60, 700)])
def test_no_number_leaves_its_range(kind: str, k: int, m: int) -> None:
    """Python's integers, which cannot overflow, agree with the words of 64 bits."""
    table, indicators = problem(k, m, n_classes=2)
    if kind == "zeros":
        table = np.zeros_like(table)
    elif kind == "extremes":
        table = np.where((np.arange(m) % 2 == 0)[None, :], LARGEST, -LARGEST) * np.ones_like(table)
    elif kind == "one feature moves":
        table = np.zeros_like(table)
        table[0, 0] = 1
    else:
        indicators = np.stack([np.ones(m, dtype=np.int64), np.zeros(m, dtype=np.int64)], axis=1)
    found = in_plaintext(table, indicators, 18)
    if k * m < 5000:
        assert np.array_equal(found, unbounded(table, indicators, 18))
    assert np.abs(found[:-1]).max() < 2**31


def unbounded(table: NDArray[Any], indicators: NDArray[Any], doublings: int) -> NDArray[Any]:
    """The same arithmetic on Python's integers, and every step within 2^62."""
    x, y = table.astype(object), indicators.astype(object)
    k, m = x.shape
    scales = Scales(m, k, doublings)

    def held(value: NDArray[Any]) -> NDArray[Any]:
        assert all(abs(v) < 2**62 for v in np.ravel(value))
        return value

    sums, sizes = x.sum(axis=1), y.sum(axis=0)
    gram = held(m * x.dot(x.T) - np.outer(sums, sums)) >> scales.gram_shift
    cross = held(m * x.dot(y) - np.outer(sums, sizes)) >> scales.cross_shift
    bound = next(t for t in scales.thresholds() if np.trace(gram) < t)
    factor = 2**60 // bound
    rest = 2**30 * np.eye(k, dtype=np.int64).astype(object) - (held(gram * factor) >> 30)
    weights = held(cross * factor) >> scales.start_shift
    for j in range(doublings):
        weights = held(2**30 * weights + rest.dot(weights)) >> (30 + j % 2)
        rest = held(rest.dot(rest)) >> 30
    means = held(sums * (2**36 // m)) >> 24
    share = 2 ** (scales.weight_bits + 22) // m
    biases = held(sizes * share - means.dot(weights)) >> 22
    found: NDArray[Any] = np.concatenate([weights, biases[None, :]]).astype(np.int64)
    return found


def test_a_trace_beyond_the_first_and_last_thresholds_is_bounded() -> None:
    for k, m in ((1, 2), (200, 512), (600, 60_000)):
        scales = Scales(m, k, 12)
        limits = scales.thresholds()
        assert limits == sorted(limits)
        assert limits[-1] > (k * m**2 * LARGEST**2) >> scales.gram_shift
        assert all(f * t <= 2**60 for f, t in zip(scales.factors(), limits, strict=True))


def test_every_message_is_uniform() -> None:
    """Constant secrets; a sound run is called uneven about once in 10^8 runs."""
    table, indicators = np.full((24, 64), LARGEST), np.ones((64, 2), dtype=np.int64)
    _, wire, _ = together(
        lambda party, *x: RIDGE.replicated(party, *x, doublings=3),
        *(one_share_only(x) for x in (table, indicators)),
    )
    assert_uniform(wire)


def test_the_model_reads_back_and_gives_shares_of_one() -> None:
    rng = np.random.default_rng(2)
    features = rng.integers(0, 2**20, (4, 30))
    standard = standard_from(features)
    opened = rng.integers(-(2**24), 2**24, (5, 3))
    # As after training: estimates of indicators that sum to 1 sum to 1.
    opened[:, 2] = -opened[:, :2].sum(axis=1)
    opened[4, 2] += 2 ** Scales(30, 4, 4).weight_bits
    model = ridge_from_opened(opened, standard, n_series=30, doublings=4)
    again = ridge_from_arrays(model.to_arrays())
    shares = again.probabilities(features)
    assert np.array_equal(shares, model.probabilities(features))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.array_equal(shares.argmax(axis=1), model.scores(features).argmax(axis=1))


def test_doublings_follow_from_public_counts_or_are_refused() -> None:
    assert default_doublings(n_series=512, n_features=200) == 12
    assert default_doublings(n_series=2, n_features=1) == 4
    assert default_doublings(n_series=2**30, n_features=200) == 18
    assert Settings(doublings=7).ridge_doublings(n_series=512, n_features=200) == 7
    for wrong in (0, 19):
        with pytest.raises(TacitError, match="doublings must"):
            Settings(doublings=wrong)
