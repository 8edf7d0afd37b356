"""Shapelet distances: all routes give the same integers, and Eq. 1 is what they mean."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.silo.fedst.candidates import choose_encoding, encode
from tacit.silo.fedst.distances import (
    DISTANCE_BITS,
    DISTANCES,
    best_windows,
    own_distances,
    rescale_for,
    unit_of,
)
from tacit.silo.secure.jax_x64 import enable_x64

N = 16
ENCODING = choose_encoding(series_length=N, normalise=True)
SERIES = encode(np.cumsum(np.random.default_rng(2).normal(size=(7, N)), axis=1), ENCODING)


def by_definition(series: NDArray[Any], shapelet: NDArray[Any]) -> float:
    """Eq. 1, written as it reads, in float64."""
    length = len(shapelet)
    return min(
        float(((shapelet - series[p : p + length]) ** 2).sum())
        for p in range(len(series) - length + 1)
    )


@pytest.mark.parametrize("length", [1, 2, 5, N - 1, N])
@pytest.mark.parametrize("route", sorted(DISTANCES))
def test_shares_and_plaintext_routes_agree_bit_for_bit(route: str, length: int) -> None:
    shapelets = SERIES[:3, :length]
    rescale = rescale_for(length, ENCODING)
    with enable_x64():
        groups = {
            "counts": (3,),
            "lengths": (length,),
            "channels": (1,),
            "caps": (rescale.static["cap"],),
            "shifts": (rescale.static["shift"],),
        }
        run = jax.jit(DISTANCES[route], static_argnames=tuple(groups))
        cube = np.stack([SERIES[::-1], SERIES], axis=1)
        found = run(cube, cube**2, shapelets.reshape(-1), **groups)
    np.testing.assert_array_equal(np.asarray(found), own_distances(SERIES, shapelets, rescale))


@pytest.mark.parametrize("length", [2, 9])
def test_distances_are_the_papers(length: int) -> None:
    shapelets = SERIES[4:6, 3 : 3 + length]
    scale = 2.0**ENCODING.fraction_bits
    found = own_distances(SERIES, shapelets, rescale_for(length, ENCODING))
    unit = unit_of(length, ENCODING)
    for b in range(2):
        for j in range(len(SERIES)):
            wanted = by_definition(SERIES[j] / scale, shapelets[b] / scale)
            assert found[b, j] * unit == pytest.approx(wanted, abs=unit)
    assert found[0, 4] == found[1, 5] == 0


def test_the_place_of_the_best_window_is_reported() -> None:
    best, where = best_windows(SERIES, SERIES[2:3, 5:11])
    assert best[0, 2] == 0
    assert where[0, 2] == 5


def test_cap_and_shift_bound_every_distance() -> None:
    for length in range(1, N + 1):
        rescale = rescale_for(length, ENCODING)
        assert rescale.cap >> rescale.shift < 2**DISTANCE_BITS
    opposite = encode(np.array([[1.0] + [0.0] * (N - 1), [-1.0] + [0.0] * (N - 1)]), ENCODING)
    rescale = rescale_for(1, ENCODING)
    spike = own_distances(opposite, np.array([[-(2**20)]]), rescale)
    assert (spike == rescale.cap >> rescale.shift).all()


def test_a_cap_that_does_not_bind_is_never_reached() -> None:
    wide = choose_encoding(series_length=64, normalise=True)
    # Opposite spikes, the farthest two series that have the energy of their length.
    far = encode(np.eye(64)[[5, 5]] * [[1.0], [-1.0]], wide)
    for length in (5, 64):
        rescale = rescale_for(length, wide)
        assert not rescale.binding
        raw, _ = best_windows(far[1:], far[:1, 5 : 5 + length] if length < 64 else far[:1])
        assert raw[0, 0] <= rescale.cap
    assert rescale_for(3, wide).binding


def test_raw_series_use_their_bound() -> None:
    raw = choose_encoding(series_length=N, normalise=False, value_bound=3.0)
    ends = encode(np.array([np.full(N, 3.0), np.full(N, -3.0)]), raw)
    rescale = rescale_for(4, raw)
    found = own_distances(ends, ends[:1, :4], rescale)
    assert found[0, 0] == 0
    assert found[0, 1] * unit_of(4, raw) == pytest.approx(4 * 36.0, rel=1e-4)
