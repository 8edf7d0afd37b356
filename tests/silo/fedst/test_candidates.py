"""Encoding, lengths and candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.fedst.candidates import (
    choose_encoding,
    counts_per_length,
    draw_candidates,
    encode,
    length_grid,
    plan_batches,
)


def walks(n: int, length: int, seed: int = 0) -> NDArray[Any]:
    return np.cumsum(np.random.default_rng(seed).normal(size=(n, length)), axis=1)


def test_grid_runs_from_the_papers_shortest_to_the_whole_series() -> None:
    assert length_grid(100)[0] == 3
    assert length_grid(100)[-1] == 100
    assert length_grid(8)[0] == 2  # N/4 below 3
    assert length_grid(1) == (1,)
    assert len(length_grid(1000)) == 17


@pytest.mark.parametrize("length", [1, 2, 24, 150, 3000])
def test_normalised_series_fit_their_declared_energy(length: int) -> None:
    encoding = choose_encoding(series_length=length, normalise=True)
    ints = encode(walks(9, length), encoding)
    scale = 4.0**encoding.fraction_bits
    assert np.abs(ints).max() <= encoding.limit
    assert ((ints / 2.0**encoding.fraction_bits) ** 2).sum(axis=1).max() <= encoding.energy * 1.001
    # Every distance, and every sum on the way to it, is exact in float64.
    assert 4 * encoding.energy * scale * 1.01 < 2**53


def test_constant_and_huge_series_are_harmless() -> None:
    encoding = choose_encoding(series_length=5, normalise=True)
    X = np.array([[7.1] * 5, [1e-300, 2e-300, 0, 0, 0], [1e200, -1e200, 0, 0, 0]])
    ints = encode(X, encoding)
    assert not ints[0].any()
    assert np.abs(ints[1:]).max(axis=1).min() > 2 ** (encoding.fraction_bits - 1)


@pytest.mark.parametrize(
    ("length", "bound", "bits", "narrow"),
    [
        (100, None, 11, True),
        (500, None, 10, True),
        (3000, None, 8, True),
        (9000, None, 16, False),
        (100, 8.0, 8, True),
        (100, 1000.0, 11, False),
    ],
)
def test_distances_fit_31_bits_where_that_leaves_8_for_the_fraction(
    length: int, bound: float | None, bits: int, narrow: bool
) -> None:
    encoding = choose_encoding(series_length=length, normalise=bound is None, value_bound=bound)
    assert (encoding.fraction_bits, encoding.narrow) == (bits, narrow)
    # The worst case: a series and its negative, all the energy in one value or in all of them.
    spike = np.zeros((2, length))
    spike[0, 0], spike[1, 0] = 1.0, -1.0
    alternating = np.where(np.arange(length) % 2, 1.0, -1.0)
    for X in (spike, np.stack([alternating, -alternating])):
        ints = encode(X * (bound or 1.0), encoding)
        assert (((ints[0] - ints[1]) ** 2).sum() < 2**31) or not narrow


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_unusable_values_are_refused(bad: float) -> None:
    X = walks(3, 10)
    X[1, 4] = bad
    with pytest.raises(TacitError, match="NaN or infinity"):
        encode(X, choose_encoding(series_length=10, normalise=True))


def test_raw_values_need_a_bound_and_stay_within_it() -> None:
    with pytest.raises(TacitError, match="value_bound"):
        choose_encoding(series_length=10, normalise=False)
    encoding = choose_encoding(series_length=10, normalise=False, value_bound=2.0)
    encode(np.full((1, 10), -2.0), encoding)
    with pytest.raises(TacitError, match="exceeds the agreed value_bound"):
        encode(np.full((1, 10), 2.01), encoding)
    with pytest.raises(TacitError, match="do not fit"):
        choose_encoding(series_length=10, normalise=False, value_bound=1e9)


def test_counts_use_every_length_and_no_window_twice() -> None:
    lengths = length_grid(20)
    counts = counts_per_length(n_candidates=100, lengths=lengths, series_length=20, n_series=3)
    assert sum(counts) == 100
    assert min(counts) >= 3
    assert counts[-1] == 3  # only three windows have the full length
    few = counts_per_length(n_candidates=10**6, lengths=(20, 19), series_length=20, n_series=3)
    assert few == (3, 6)


@pytest.mark.parametrize("n_channels", [1, 4])
def test_candidates_are_windows_of_the_initiator_without_repeats(n_channels: int) -> None:
    walked = walks(4 * n_channels, 20).reshape(4, n_channels, 20)
    encoded = encode(walked, choose_encoding(series_length=20, normalise=True))
    batches = plan_batches(
        n_candidates=90,
        lengths=length_grid(20),
        series_length=20,
        n_series=4,
        batch_size=3,
        seed=1,
        n_channels=n_channels,
    )
    drawn = draw_candidates(encoded, batches, rng=np.random.default_rng(0))
    places = set()
    for batch, found in zip(batches, drawn, strict=True):
        assert found.windows.shape == (batch.count, batch.length)
        places_of = zip(found.series, found.channel, found.start, found.windows, strict=True)
        for series, channel, start, window in places_of:
            end = start + batch.length
            np.testing.assert_array_equal(encoded[series, channel, start:end], window)
            places.add((batch.length, int(series), int(channel), int(start)))
        assert np.bincount(found.channel, minlength=n_channels).tolist() == [*batch.per_channel]
    assert len(places) == sum(batch.count for batch in batches) == 90
    per_channel = np.sum([batch.per_channel for batch in batches], axis=0)
    assert np.ptp(per_channel) <= 1  # the channels take turns


def test_no_channel_is_asked_for_more_windows_than_it_has() -> None:
    every: dict[str, Any] = {"lengths": (4, 5), "series_length": 5, "batch_size": 4, "seed": 0}
    batches = plan_batches(n_candidates=10**6, n_series=3, n_channels=7, **every)
    totals = {
        length: np.sum([b.per_channel for b in batches if b.length == length], axis=0).tolist()
        for length in (4, 5)
    }
    assert totals == {4: [6] * 7, 5: [3] * 7}


def test_the_public_order_does_not_depend_on_data() -> None:
    arguments: dict[str, Any] = {
        "n_candidates": 50,
        "lengths": length_grid(30),
        "series_length": 30,
        "n_series": 5,
        "batch_size": 4,
    }
    assert plan_batches(**arguments, seed=3) == plan_batches(**arguments, seed=3)
    assert plan_batches(**arguments, seed=3) != plan_batches(**arguments, seed=4)
    with pytest.raises(TacitError, match="candidate lengths"):
        plan_batches(**(arguments | {"lengths": (31,)}), seed=3)


def test_raw_values_that_would_round_to_nothing_are_refused() -> None:
    with pytest.raises(TacitError, match="smaller unit"):
        choose_encoding(series_length=100, normalise=False, value_bound=5.7e-06)
    kept = choose_encoding(series_length=100, normalise=False, value_bound=0.01)
    assert kept.limit > 2**8
