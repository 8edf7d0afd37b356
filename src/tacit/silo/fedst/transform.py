"""From the distances of all candidates to the table of the K shapelets chosen, in shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers

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
