"""From the distances of all candidates to the table of the K shapelets chosen, in shares.

Each step is a kernel: over replicated shares nothing has to be compiled for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated

if TYPE_CHECKING:
    from jax import Array


def join_rows(*blocks: Array) -> Array:
    """One array from the blocks of all batches."""
    import jax.numpy as jnp

    return jnp.concatenate(blocks, axis=0)


def join_columns(*blocks: Array) -> Array:
    """One table from the columns of all owners, in the order of their ranks."""
    import jax.numpy as jnp

    return jnp.concatenate(blocks, axis=1)


def select_rows(choice: Array, distances: Array) -> Array:
    """The features (K, M): rows of `distances` (n, M) picked by P0's secret 0/1 matrix (K, n).

    Nobody but P0 sees which rows, and no distance is computed twice. One multiplication round;
    opens nothing.
    """
    return choice @ distances


def choice_matrix(indices: NDArray[np.intp], *, n: int) -> Integers:
    """P0's 0/1 matrix for `select_rows`."""
    choice = np.zeros((len(indices), n), dtype=np.int64)
    choice[np.arange(len(indices)), indices] = 1
    return choice


def _rows_of_shares(party: Replicated, *blocks: Pair) -> Pair:
    return np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])


def _columns_of_shares(party: Replicated, *blocks: Pair) -> Pair:
    first, second = (np.concatenate([b[i] for b in blocks], axis=1) for i in (0, 1))
    return first, second


def _selected_shares(party: Replicated, choice: Pair, distances: Pair) -> Pair:
    return party.product(choice, distances)


def _rows_shape(*blocks: Shape) -> Shape:
    return sum(block[0] for block in blocks), *blocks[0][1:]


def _columns_shape(*blocks: Shape) -> Shape:
    return blocks[0][0], sum(block[1] for block in blocks)


def _selected_shape(choice: Shape, distances: Shape) -> Shape:
    return choice[0], distances[1]


JOIN_ROWS = Kernel(
    name="join_rows",
    plaintext=join_rows,
    compiled=join_rows,
    replicated=_rows_of_shares,
    output_shape=_rows_shape,
)
JOIN_COLUMNS = Kernel(
    name="join_columns",
    plaintext=join_columns,
    compiled=join_columns,
    replicated=_columns_of_shares,
    output_shape=_columns_shape,
)
SELECT_ROWS = Kernel(
    name="select_rows",
    plaintext=select_rows,
    compiled=select_rows,
    replicated=_selected_shares,
    output_shape=_selected_shape,
)
