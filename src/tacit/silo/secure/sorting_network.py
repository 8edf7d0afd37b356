"""Sorting networks over shares: which pairs are compared never depends on the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jax import Array


def next_power_of_two(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def compare_exchange(a: Array, b: Array) -> tuple[Array, Array]:
    """Smaller and larger of each pair, by one comparison and one selection."""
    import jax.numpy as jnp

    low = jnp.where(a < b, a, b)
    return low, a + b - low


def sort_rows(keys: Array) -> Array:
    """Sort each row (b, n) upwards with a bitonic network; n must be a power of two.

    The first step of a merge compares mirrored positions, so that all comparators of a step point
    the same way and run as one batch. Opens nothing.
    """
    n = keys.shape[1]
    block = 2
    while block <= n:
        keys = _mirror_step(keys, block)
        half = block // 4
        while half >= 1:
            keys = _half_cleaner(keys, half)
            half //= 2
        block *= 2
    return keys


def _mirror_step(keys: Array, block: int) -> Array:
    import jax.numpy as jnp

    rows, n = keys.shape
    parts = keys.reshape(rows, n // block, block)
    mirrored = jnp.flip(parts[:, :, block // 2 :], axis=2)
    low, high = compare_exchange(parts[:, :, : block // 2], mirrored)
    return jnp.concatenate([low, jnp.flip(high, axis=2)], axis=2).reshape(rows, n)


def _half_cleaner(keys: Array, half: int) -> Array:
    import jax.numpy as jnp

    rows, n = keys.shape
    parts = keys.reshape(rows, n // (2 * half), 2, half)
    low, high = compare_exchange(parts[:, :, 0], parts[:, :, 1])
    return jnp.stack([low, high], axis=2).reshape(rows, n)


def pad_rows(keys: Array, *, value: int) -> Array:
    """Fill each row with a public value up to the next power of two."""
    import jax.numpy as jnp

    rows, n = keys.shape
    missing = next_power_of_two(n) - n
    if not missing:
        return keys
    return jnp.concatenate([keys, jnp.full((rows, missing), value, dtype=keys.dtype)], axis=1)


def sorted_low_bits(keys: Array, *, n_bits: int) -> Array:
    """The lowest bit of every key (b, n) of at most 60 bits after each row was sorted upwards."""
    import jax.numpy as jnp

    ordered = sort_rows(pad_rows(keys, value=2**60))[:, : keys.shape[1]]
    return jnp.bitwise_and(ordered, 1)


def maximum_of_last_axis(keys: Array) -> Array:
    """The largest entry along the last axis by a tournament of log2 n rounds."""
    import jax.numpy as jnp

    while keys.shape[-1] > 1:
        half = keys.shape[-1] // 2
        low, high = keys[..., :half], keys[..., half : 2 * half]
        best = jnp.where(low < high, high, low)
        rest = keys[..., 2 * half :]
        keys = jnp.concatenate([best, rest], axis=-1) if rest.shape[-1] else best
    return keys[..., 0]
