"""64-bit numbers in JAX, only inside the block."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tacit.silo.secure.jax_x64 import enable_x64


def test_integers_are_wide_inside_the_block_and_not_after_it() -> None:
    large = np.array([2**40], dtype=np.int64)
    with enable_x64():
        assert int(jnp.asarray(large)[0] + 1) == 2**40 + 1
    assert jnp.zeros(1, dtype=int).dtype == np.int32
