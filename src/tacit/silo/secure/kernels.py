"""Kernels: computations that three parties run by a protocol written by hand, for its speed.

A program hands a kernel to `Session.run_kernel`; the session knows nothing about what it computes.
Every route gives the same integers: the plaintext twin, the engine's compiled code, and the
protocol over replicated shares.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tacit.silo.secure.replicated import Pair, Replicated
from tacit.silo.secure.replicated_sorting import sorted_low_bits as sorted_low_bits_of_shares
from tacit.silo.secure.sorting_network import sorted_low_bits

Shape = tuple[int, ...]
# What every protocol written by hand rests on, beside its own source.
_COMMON_SOURCES = (
    "replicated",
    "replicated_sorting",
    "wrapping",
    "bit_slices",
    "sorting_network",
    "shares",
    "kernels",
    "faults",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One computation on shared 64-bit integers, by three routes to the same result.

    `compiled` is a JAX function of module level for the engine. `replicated` takes one party's
    side of the protocols over replicated shares, its words of each operand and the same public
    arguments. `plaintext` is the JAX function of the plaintext twin. `output_shape` gives the shape
    of the result from those of the operands and the public arguments, for owners who do not
    compute.
    """

    name: str
    plaintext: Callable[..., Any]
    compiled: Callable[..., Any]
    replicated: Callable[..., Pair]
    output_shape: Callable[..., Shape]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the source of the protocol and of the modules that it rests on.

        The file that defines `replicated` always counts, so that no protocol can be left out.
        """
        return _fingerprint(inspect.getsourcefile(inspect.unwrap(self.replicated)) or "")


@cache
def _fingerprint(source: str) -> str:
    files = [Path(__file__).with_name(f"{name}.py") for name in _COMMON_SOURCES]
    digest = hashlib.sha256()
    for file in (*files, Path(source)):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _sorted_low_bits_in_plaintext(keys: Any, *, n_bits: int) -> Any:
    import jax.numpy as jnp

    return jnp.bitwise_and(jnp.sort(keys, axis=1), 1)


def _replicated_sorted_low_bits(party: Replicated, keys: Pair, *, n_bits: int) -> Pair:
    return sorted_low_bits_of_shares(party, keys, n_bits=n_bits)


def _same_shape(keys: Shape, *, n_bits: int) -> Shape:
    return keys


# The lowest bits of each row of keys (b, n) from 0 to 2**n_bits - 1, after sorting upwards.
SORTED_LOW_BITS = Kernel(
    name="sorted_low_bits",
    plaintext=_sorted_low_bits_in_plaintext,
    compiled=sorted_low_bits,
    replicated=_replicated_sorted_low_bits,
    output_shape=_same_shape,
)
