"""Selecting the shapelets' rows by a secret matrix."""

from __future__ import annotations

import numpy as np

from replicated_parties import shares_of, together
from tacit.silo.fedst.transform import (
    PLUS,
    SELECT_ROWS,
    choice_matrix,
    join_columns,
    join_rows,
    select_rows,
)


def test_selection_is_indexing() -> None:
    table = np.arange(30).reshape(6, 5)
    indices = np.array([4, 0, 5])
    found = np.asarray(select_rows(choice_matrix(indices, n=6), table))
    np.testing.assert_array_equal(found, table[indices])
    assert np.asarray(join_rows(table, table)).shape == (12, 5)
    assert np.asarray(join_columns(table, table)).shape == (6, 10)


def test_selection_from_blocks_over_shares_is_indexing() -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 2**20, (9, 7))
    indices = np.array([8, 0, 4, 5])
    blocks = (table[:2], table[2:5], table[5:])
    operands = (choice_matrix(indices, n=9), *blocks)
    found, _, sides = together(
        SELECT_ROWS.replicated, *(shares_of(x, np.uint64, rng) for x in operands)
    )
    np.testing.assert_array_equal(found, table[indices])
    assert sides[0].rounds == 2  # of keys, and of the product
    assert SELECT_ROWS.output_shape(*(x.shape for x in operands)) == found.shape
    twice, _, _ = together(PLUS.replicated, *[shares_of(table, np.uint64, rng)] * 2)
    np.testing.assert_array_equal(twice, 2 * table)
