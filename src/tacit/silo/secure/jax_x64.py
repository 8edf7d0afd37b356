"""64-bit numbers in JAX, whose switch has another name from version 0.8 on."""

from __future__ import annotations

from contextlib import AbstractContextManager


def enable_x64() -> AbstractContextManager[None]:
    """JAX with 64-bit integers and floats inside a `with` block."""
    import jax

    if hasattr(jax, "enable_x64"):
        switched: AbstractContextManager[None] = jax.enable_x64(True)
        return switched
    from jax.experimental import enable_x64

    before: AbstractContextManager[None] = enable_x64()
    return before
