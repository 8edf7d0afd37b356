"""How well a candidate separates the classes: F-statistic and information gain over shares.

All counts and sums are exact integers. The F-statistic ends in an exact division bit by bit, so
its result equals the plaintext run bit for bit. The information gain needs logarithms, which the
engine approximates; a gain lies within `GAIN_ERROR` of the exact one and is rounded to `GAIN_BITS`
bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.silo.fedst.distances import DISTANCE_BITS, additive
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated, Words
from tacit.silo.secure.sorting_network import maximum_of_last_axis, next_power_of_two
from tacit.silo.secure.wrapping import wrapping_matmul

if TYPE_CHECKING:
    from jax import Array

RATIO_BITS = 24
GAIN_BITS = 10
# The engine's log2 is off by at most 5.3e-5 (ABY3) or 7.0e-5 (CHEETAH) at all counts up to 4096; a
# gain holds two sums of it, each weighted by shares that sum to 1: 1.4e-4 at most.
GAIN_ERROR = 2.0**-12
_RECIPROCAL_BITS = 31
_GUARD_BITS = 3
_DIGIT_BITS = 4  # the quotient is found in hexadecimal
# Sums of squares with guard bits must stay below 2**58, so that 16 times them fit: distances of
# 20 bits up to 2**12 series (`candidates.distance_bits`), of 18 bits beyond.
MAX_SERIES = 2**16
MAX_GAIN_SERIES = 2**12  # the engine's logarithm was measured up to here


def check_series_count(n_series: int, *, quality: str = "f") -> None:
    """Refuse more series than the exact sums can hold."""
    most = MAX_SERIES if quality == "f" else MAX_GAIN_SERIES
    if n_series > most:
        remedy = "choose quality 'f', or have" if n_series <= MAX_SERIES else "have"
        raise TacitError(
            f"the exact sums of quality '{quality}' take at most {most} series, got {n_series}; "
            f"{remedy} the parties bring a sample."
        )


def class_counts(indicators: Array) -> tuple[Array, Array]:
    """Class sizes (C,) and their fixed-point reciprocals, from indicating vectors (M, C).

    The reciprocal is read from a public table by M equality tests per class: exact, and done once.
    An absent class gets the reciprocal 0.
    """
    import jax.numpy as jnp

    sizes = jnp.sum(indicators, axis=0)
    values = np.arange(1, indicators.shape[0] + 1)
    table = (2**_RECIPROCAL_BITS) // values
    hits = (sizes[:, None] == values[None, :]).astype(indicators.dtype)
    return sizes, jnp.sum(hits * table[None, :], axis=1)


def f_quality(*operands: Array) -> Array:
    """Between-class share of the sum of squares, floor(2**24 * B / (B + W + 1)), per candidate.

    The operands are blocks of distances (n, M), scored together, and the indicators (M, C).
    B weighs each class by its size n_c (Eq. 8 corrected). The share is a monotone function of the
    ANOVA F-statistic for fixed M and C, so both rank candidates alike. Exact; opens nothing.
    """
    import jax.numpy as jnp

    *blocks, indicators = operands
    distances = jnp.concatenate(blocks, axis=0)
    n_series = distances.shape[1]
    sizes, reciprocals = class_counts(indicators)
    per_class = distances @ indicators
    total = jnp.sum(distances, axis=1)
    squares = jnp.sum(distances * distances, axis=1) * 4**_GUARD_BITS
    drop = _RECIPROCAL_BITS - _GUARD_BITS
    means = jnp.right_shift(per_class * reciprocals[None, :], drop)
    mean = jnp.right_shift(total * (2**_RECIPROCAL_BITS // n_series), drop)
    # Sums of squares around rounded means are never negative, whatever the rounding.
    around = means * (sizes[None, :] * means - per_class * 2 ** (_GUARD_BITS + 1))
    within = squares + jnp.sum(around, axis=1)
    overall = squares + mean * (n_series * mean - total * 2 ** (_GUARD_BITS + 1))
    between = jnp.maximum(overall - within, 0)
    return _ratio(between, overall + 1)  # `within` is not negative either


def _ratio(numerator: Array, denominator: Array) -> Array:
    """floor(2**RATIO_BITS * numerator / denominator) for 0 <= numerator < denominator <= 2**58."""
    import jax.numpy as jnp

    quotient = jnp.zeros_like(numerator)
    for _ in range(RATIO_BITS):
        numerator = numerator * 2
        fits = (numerator >= denominator).astype(numerator.dtype)
        numerator = numerator - fits * denominator
        quotient = quotient * 2 + fits
    return quotient


def _replicated_f(party: Replicated, *operands: Pair) -> Pair:
    """`f_quality` over replicated shares: sums of products in one word, hexadecimal division."""
    *blocks, indicators = operands
    n_series, n_classes = indicators[0].shape
    sizes = (indicators[0].sum(axis=0), indicators[1].sum(axis=0))
    reciprocals = _replicated_reciprocals(party, sizes, n_series)
    totals = [np.concatenate([b[i].sum(axis=1, keepdims=True) for b in blocks]) for i in (0, 1)]
    sums = party.mask_sum(np.concatenate([_local_sums(block, indicators) for block in blocks]))
    per_class = (sums[0][:, :n_classes], sums[1][:, :n_classes])
    scaled = party.multiply(per_class, reciprocals)
    public = np.uint64(2**_RECIPROCAL_BITS // n_series)
    raw = [np.hstack([s, t * public]) for s, t in zip(scaled, totals, strict=True)]
    means = party.shifted((raw[0], raw[1]), shift=_RECIPROCAL_BITS - _GUARD_BITS)
    counts = party.constant(n_series, (1,), np.uint64)
    every = [np.concatenate([s, c]) for s, c in zip(sizes, counts, strict=True)]
    weighted = party.multiply(means, (every[0], every[1]))
    twice = np.uint64(2 ** (_GUARD_BITS + 1))
    inner = [
        w - np.hstack([c, t]) * twice for w, c, t in zip(weighted, per_class, totals, strict=True)
    ]
    around = party.multiply(means, (inner[0], inner[1]))
    squares = [s[:, n_classes] * np.uint64(4**_GUARD_BITS) for s in sums]
    overall = (squares[0] + around[0][:, -1], squares[1] + around[1][:, -1])
    gap = [a[:, -1] - a[:, :-1].sum(axis=1) for a in around]
    negative = party.below_zero((gap[0], gap[1]), dtype=np.uint64)
    removed = party.multiply(negative, (gap[0], gap[1]))
    between = (gap[0] - removed[0], gap[1] - removed[1])
    return _replicated_ratio(party, between, party.plus(overall, 1))


def _local_sums(distances: Pair, indicators: Pair) -> Words:
    """This party's part of the class sums (n, C) and of the sums of squares, a column more."""
    per_class = wrapping_matmul(distances[0], indicators[0] + indicators[1])
    per_class += wrapping_matmul(distances[1], indicators[0])
    two = np.uint64(2)
    squares = [np.dot(x, x + two * y) for x, y in zip(*distances, strict=True)]
    return np.hstack([per_class, np.array(squares, dtype=np.uint64)[:, None]])


def _replicated_reciprocals(party: Replicated, sizes: Pair, n_series: int) -> Pair:
    """The table of `class_counts`, read by comparing each size with every count at once."""
    values = np.arange(1, n_series + 1)
    jumps = np.diff(2**_RECIPROCAL_BITS // values, prepend=0).astype(np.uint64)
    spread = [np.repeat(s.astype(np.uint32)[:, None], n_series, axis=1) for s in sizes]
    under = party.below_zero(
        party.plus((spread[0], spread[1]), -values),
        dtype=np.uint64,
        n_bits=n_series.bit_length() + 2,
    )
    missing = [(u * jumps).sum(axis=1) for u in under]
    return party.plus((-missing[0], -missing[1]), int(2**_RECIPROCAL_BITS // n_series))


def _replicated_ratio(party: Replicated, numerator: Pair, denominator: Pair) -> Pair:
    """`_ratio`, four bits at a time: fifteen comparisons at once give one digit."""
    digits = np.arange(1, 2**_DIGIT_BITS, dtype=np.uint64)[:, None]
    quotient = [np.zeros_like(x) for x in numerator]
    bits = np.uint64(_DIGIT_BITS)
    for _ in range(RATIO_BITS // _DIGIT_BITS):
        larger = [x << bits for x in numerator]
        tried = [x - digits * d for x, d in zip(larger, denominator, strict=True)]
        over = party.below_zero((tried[0], tried[1]), dtype=np.uint64)
        fewer = (-over[0].sum(axis=0), -over[1].sum(axis=0))
        digit = party.plus(fewer, 2**_DIGIT_BITS - 1)
        taken = party.multiply(digit, denominator)
        numerator = (larger[0] - taken[0], larger[1] - taken[1])
        quotient = [(q << bits) + d for q, d in zip(quotient, digit, strict=True)]
    return quotient[0], quotient[1]


def _one_each(*operands: Shape) -> Shape:
    return (sum(block[0] for block in operands[:-1]),)


F_QUALITY = Kernel(
    name="f_quality",
    plaintext=f_quality,
    compiled=f_quality,
    replicated=_replicated_f,
    output_shape=_one_each,
)


def own_class_indicators(indicators: Array, candidate_class: Array) -> Array:
    """The binary strategy: (b, M), 1 where a series has the class of the candidate's series."""
    return candidate_class @ indicators.T


def gain_keys(
    distances: Array, indicators: Array, candidate_class: Array, *, tie_seed: int
) -> tuple[Array, Array]:
    """Keys (b, M) to sort, and how many series have the candidate's class (b,).

    A key holds the distance, a public random rank that breaks ties, and in its lowest bit whether
    the series has the candidate's class. Opens nothing.
    """
    import jax.numpy as jnp

    n_series = distances.shape[1]
    ours = own_class_indicators(indicators, candidate_class)
    rank = np.random.default_rng(tie_seed).permutation(n_series)
    width = next_power_of_two(n_series)
    return distances * (2 * width) + (2 * rank)[None, :] + ours, jnp.sum(ours, axis=1)


def key_bits(n_series: int) -> int:
    """How many bits a key of `gain_keys` has."""
    return DISTANCE_BITS + next_power_of_two(n_series).bit_length()


def gain_in_order(ordered: Array, ours: Array) -> Array:
    """Best information gain over all thresholds, from class bits in the order of the distances.

    After sorting, the sizes of both sides of a threshold are public and only one count is secret.
    Entropies of the sides are weighted by their sizes (Eq. 2 corrected). Opens nothing.
    """
    n_series = ordered.shape[1]
    # A product with a public triangle is a running sum without communication.
    left = ordered @ np.triu(np.ones((n_series, n_series - 1), dtype=np.int64))
    n_left = np.arange(1, n_series)
    return _best_gain(left, n_left[None, :], ours, n_series)


def ig_quality_basic(
    distances: Array, indicators: Array, candidate_class: Array, *, tie_seed: int
) -> Array:
    """The paper's basic protocol: every distance is a threshold, M comparisons for each."""
    import jax.numpy as jnp

    n_series = distances.shape[1]
    ours = own_class_indicators(indicators, candidate_class)
    rank = np.random.default_rng(tie_seed).permutation(n_series)
    keys = distances * next_power_of_two(n_series) + rank[None, :]
    below = (keys[:, None, :] <= keys[:, :, None]).astype(distances.dtype)
    n_left = jnp.sum(below, axis=2)
    left = jnp.sum(below * ours[:, None, :], axis=2)
    return _best_gain(left, n_left, jnp.sum(ours, axis=1), n_series)


def _best_gain(left: Array, n_left: Array | NDArray[np.int64], ours: Array, n_series: int) -> Array:
    """Rounded maximum over thresholds of H(D) - |L|/|D| H(L) - |R|/|D| H(R), per candidate.

    `left` (b, thresholds) counts the candidate's class on the left, `ours` (b,) in all.
    """
    import jax.numpy as jnp

    right = ours[:, None] - left
    n_right = n_series - n_left
    cells = jnp.stack([left, n_left - left, right, n_right - right], axis=0)
    sides = _x_log_x(n_left) + _x_log_x(n_right)
    best = maximum_of_last_axis(jnp.sum(_x_log_x(cells), axis=0) - sides)
    whole = jnp.stack([ours, n_series - ours], axis=0)
    gain = best - jnp.sum(_x_log_x(whole), axis=0) + n_series * np.log2(n_series)
    steps = jnp.floor(jnp.maximum(gain, 0.0) * (2.0**GAIN_BITS / n_series) + 0.5)
    return additive(steps.astype(left.dtype))


def _x_log_x(count: Array | NDArray[np.int64]) -> Array | NDArray[np.float64]:
    """x log2 x of public or secret counts, 0 at 0: whole counts, because 1/M would be rounded."""
    if isinstance(count, np.ndarray):
        public: NDArray[np.float64] = count * np.log2(np.maximum(count, 1))
        return public
    import jax.numpy as jnp

    return count.astype(jnp.float64) * jnp.log2(jnp.maximum(count, 1).astype(jnp.float64))


QUALITIES = ("f", "ig", "ig-basic")
