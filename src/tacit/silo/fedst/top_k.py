"""The K best candidates, obliviously: P0 learns their indices, nobody learns a quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.silo.secure.sorting_network import next_power_of_two, pad_rows, sort_rows

if TYPE_CHECKING:
    from jax import Array


def top_indices(qualities: Array, *, k: int, noised: bool = False) -> Array:
    """Indices of the k largest qualities (n,), best first; the lower index wins a tie.

    The index travels in the low bits of the key, so a comparator moves one word, ties cannot
    occur, and plaintext and shares agree on the order. Opens nothing.
    """
    import jax.numpy as jnp

    n = qualities.shape[0]
    width = next_power_of_two(n)
    # Sorting upwards: a large quality becomes a small key. Noise takes more bits.
    above = 1 << (46 if noised else 40)
    keys = (above - qualities) * width + np.arange(n)
    ordered = sort_rows(pad_rows(keys[None, :], value=2**61))[0, :k]
    return jnp.bitwise_and(ordered, width - 1)
