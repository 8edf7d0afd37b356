"""Features as the linear classifiers see them: roots of distances, standardised by P0's own rows.

Every route gives the same integers: P0's plaintext, the engine's compiled code, and the protocol
over replicated shares, which takes a quarter of the engine's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.silo.fedst.distances import DISTANCE_BITS
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated

if TYPE_CHECKING:
    from jax import Array

STANDARD_BITS = 10
# A root keeps two bits of fraction: distances of 20 bits become integers of 12.
ROOT_FRACTION_BITS = 2
ROOT_BITS = DISTANCE_BITS // 2 + ROOT_FRACTION_BITS
_MULTIPLIER_BITS = 20
# Standardised features beyond 8 deviations of P0's own are clipped: they would drown the rest.
LARGEST = 8 * 2**STANDARD_BITS
_SMALLEST_DEVIATION = 2
LARGEST_MULTIPLIER = 2 ** (STANDARD_BITS + _MULTIPLIER_BITS) // _SMALLEST_DEVIATION
# A difference from the centre times the multiplier, shifted: with its sign.
_SCALED_BITS = ROOT_BITS + LARGEST_MULTIPLIER.bit_length() - _MULTIPLIER_BITS + 2
_BLOCK_VALUES = 2**20  # so many values at once: about 200 MB at a party


@dataclass(frozen=True, slots=True, kw_only=True)
class Standardisation:
    """P0's centre and integer multiplier (K, 1) of each feature, from its own rows."""

    centre: Integers
    multiplier: Integers

    def apply(self, features: Integers) -> NDArray[np.float64]:
        """Standardised roots (n, K) in plaintext, equal to `STANDARDISE` over shares."""
        ints = _standardised(plain_roots(features), self.centre, self.multiplier, np)
        return np.asarray(ints).T / 2.0**STANDARD_BITS


def standard_from(own_features: Integers, least: Floats | None = None) -> Standardisation:
    """Centre and multiplier from P0's own features (K, M0).

    `least` are the smallest deviations (K,), of roots, by which a feature is divided.
    """
    own = plain_roots(own_features)
    centre = np.rint(own.mean(axis=1, keepdims=True)).astype(np.int64)
    deviation = np.maximum(own.std(axis=1, keepdims=True), _SMALLEST_DEVIATION)
    if least is not None:
        deviation = np.maximum(deviation, least[:, None])
    multiplier = np.rint(2.0 ** (STANDARD_BITS + _MULTIPLIER_BITS) / deviation).astype(np.int64)
    return Standardisation(centre=centre, multiplier=multiplier)


def plain_roots(features: Integers) -> Integers:
    """`roots` in plaintext; floor(sqrt(x)) is exact in float64 for integers of 24 bits."""
    found: Integers = np.floor(np.sqrt(features * 4.0**ROOT_FRACTION_BITS)).astype(np.int64)
    return found


def roots(features: Array) -> Array:
    """floor(2**2 sqrt(x)) of integers below 2**20, bit by bit, exactly; opens nothing."""
    import jax.numpy as jnp

    square = features * 4**ROOT_FRACTION_BITS
    root = jnp.zeros_like(features)
    for bit in reversed(range(ROOT_BITS)):
        longer = root + 2**bit
        root = root + (longer * longer <= square).astype(root.dtype) * 2**bit
    return root


def _standardised(features: Any, centre: Any, multiplier: Any, xp: Any) -> Any:
    """Integers at 2**STANDARD_BITS, clipped; `xp` is numpy or jax.numpy."""
    scaled = xp.right_shift((features - centre) * multiplier, _MULTIPLIER_BITS)
    return xp.minimum(xp.maximum(scaled, -LARGEST), LARGEST)


def standardise(features: Array, centre: Array, multiplier: Array) -> Array:
    """Standardised roots (K, M), integers at 2**STANDARD_BITS; exact, opens nothing."""
    import jax.numpy as jnp

    found: Array = _standardised(roots(features), centre, multiplier, jnp)
    return found


def _replicated(party: Replicated, features: Pair, centre: Pair, multiplier: Pair) -> Pair:
    """The same over replicated shares, in blocks of columns that fit a party's memory."""
    rows, columns = features[0].shape
    width = max(1, _BLOCK_VALUES // max(1, rows))
    blocks = []
    for start in range(0, columns, width):
        block = (features[0][:, start : start + width], features[1][:, start : start + width])
        root = _replicated_roots(party, block)
        blocks.append(_replicated_scaling(party, root, centre, multiplier))
    first, second = (np.concatenate([block[i] for block in blocks], axis=1) for i in (0, 1))
    return first, second


def _replicated_roots(party: Replicated, features: Pair) -> Pair:
    """`roots` by the schoolbook method: what is left of the square shrinks with every bit."""
    word = np.uint32
    left = [x.astype(word) << word(2 * ROOT_FRACTION_BITS) for x in features]
    root = [np.zeros_like(x) for x in left]
    for bit in reversed(range(ROOT_BITS)):
        # (root + 2^bit)^2 - root^2, which fits or not.
        step = party.plus((root[0] << word(bit + 1), root[1] << word(bit + 1)), 4**bit)
        # What is left lies below 2^(ROOT_BITS + bit + 3), and so does the step.
        n_bits = min(2 * ROOT_BITS + 2, ROOT_BITS + bit + 5)
        over = party.below_zero((left[0] - step[0], left[1] - step[1]), dtype=word, n_bits=n_bits)
        fits = party.plus((-over[0], -over[1]), 1)
        taken = party.multiply(fits, step)
        left = [x - t for x, t in zip(left, taken, strict=True)]
        root = [r + (f << word(bit)) for r, f in zip(root, fits, strict=True)]
    return party.shifted((root[0], root[1]), shift=0)


def _replicated_scaling(party: Replicated, root: Pair, centre: Pair, multiplier: Pair) -> Pair:
    difference = (root[0] - centre[0], root[1] - centre[1])
    scaled = party.shifted_signed(party.multiply(difference, multiplier), shift=_MULTIPLIER_BITS)
    below = party.plus((-scaled[0], -scaled[1]), -LARGEST)
    above = party.plus((-scaled[0], -scaled[1]), LARGEST)
    # Below the range just if -LARGEST - x > 0, above it just if LARGEST - x < 0.
    signs = [np.stack([-b, a]) for b, a in zip(below, above, strict=True)]
    outside = party.below_zero((signs[0], signs[1]), dtype=np.uint64, n_bits=_SCALED_BITS)
    moves = [np.stack([b, a]) for b, a in zip(below, above, strict=True)]
    moved = party.multiply(outside, (moves[0], moves[1]))
    return scaled[0] + moved[0].sum(axis=0), scaled[1] + moved[1].sum(axis=0)


def _like_the_features(features: Shape, centre: Shape, multiplier: Shape) -> Shape:
    return features


STANDARDISE = Kernel(
    name="standardise",
    plaintext=standardise,
    compiled=standardise,
    replicated=_replicated,
    output_shape=_like_the_features,
)
