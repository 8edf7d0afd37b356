"""Sorting networks: correct by the 0-1 principle, and the same comparisons whatever the data."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest

from tacit.silo.secure.jax_x64 import enable_x64
from tacit.silo.secure.sorting_network import (
    maximum_of_last_axis,
    next_power_of_two,
    pad_rows,
    sort_rows,
)


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_every_zero_one_row_is_sorted(n: int) -> None:
    """Knuth's 0-1 principle: a network that sorts all 0-1 inputs sorts everything."""
    rows = np.array(list(itertools.product([0, 1], repeat=n)), dtype=np.int64)
    with enable_x64():
        np.testing.assert_array_equal(np.asarray(jax.jit(sort_rows)(rows)), np.sort(rows, axis=1))


def test_large_keys_are_sorted_exactly() -> None:
    rows = np.random.default_rng(0).integers(-(2**61), 2**61, size=(3, 64))
    with enable_x64():
        np.testing.assert_array_equal(np.asarray(jax.jit(sort_rows)(rows)), np.sort(rows, axis=1))


def test_one_comparison_and_one_selection_per_comparator() -> None:
    with enable_x64():
        text = str(jax.make_jaxpr(sort_rows)(np.zeros((5, 16), dtype=np.int64)))
    steps = 4 * 5 // 2
    assert text.count(" lt ") == steps
    assert text.count("name=_where") == steps
    assert " sort[" not in text


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
def test_tournament_finds_the_maximum(n: int) -> None:
    keys = np.random.default_rng(n).integers(-50, 50, size=(4, 3, n))
    with enable_x64():
        np.testing.assert_array_equal(np.asarray(maximum_of_last_axis(keys)), keys.max(axis=-1))


def test_padding_reaches_the_next_power_of_two() -> None:
    assert [next_power_of_two(n) for n in (1, 2, 3, 512, 513)] == [1, 2, 4, 512, 1024]
    with enable_x64():
        assert np.asarray(pad_rows(np.ones((2, 5), dtype=np.int64), value=9)).tolist()[0][5:] == [
            9,
            9,
            9,
        ]
