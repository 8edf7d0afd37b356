"""Selecting the shapelets' rows by a secret matrix."""

from __future__ import annotations

import numpy as np

from tacit.silo.fedst.transform import choice_matrix, join_columns, join_rows, select_rows


def test_selection_is_indexing() -> None:
    table = np.arange(30).reshape(6, 5)
    indices = np.array([4, 0, 5])
    found = np.asarray(select_rows(choice_matrix(indices, n=6), table))
    np.testing.assert_array_equal(found, table[indices])
    assert np.asarray(join_rows(table, table)).shape == (12, 5)
    assert np.asarray(join_columns(table, table)).shape == (6, 10)
