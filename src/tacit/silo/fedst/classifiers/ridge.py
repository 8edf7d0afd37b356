"""Least squares on the class indicators, regularised by stopping early, in few rounds.

With G the centred Gram matrix of the features, 2^k steps of gradient descent from zero give
W = (I + E)(I + E^2)(I + E^4) ... B / t with E = I - G / t: one matrix product squares E and doubles
the number of steps. Stopping after 2^k steps shrinks weak directions as a ridge penalty of about
t / 2^k does. t is a bound on the largest eigenvalue, from the trace, which stays secret.

All numbers are integers of fixed point, and every shift is exact, so that shares and plaintext end
with the same weights, bit for bit. Why nothing leaves the range is proved in
docs/guarantees/silo-protocols.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.silo.fedst.classifiers.standard import LARGEST, STANDARD_BITS, Standardisation
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated, joined
from tacit.silo.secure.session import Arrays
from tacit.silo.secure.wrapping import wrapping_matmul

if TYPE_CHECKING:
    from jax import Array

_E_BITS = 30  # fraction bits of E, whose entries lie within 1
_SCALE_BITS = 60  # the secret factor is 2^60 / t
_TRACE_BITS = 48
_STEPS_PER_OCTAVE = 4
_OCTAVES_BELOW, _OCTAVES_ABOVE = 8, 6  # of the trace that features of deviation 1 would have
_MEAN_BITS = 12
# Of log2(series x features): chosen by cross-validation on training series, see
# docs/decisions/2026-11-18-silo-ridge.md.
_FEWER_DOUBLINGS = 5
MOST_DOUBLINGS = 18


def default_doublings(*, n_series: int, n_features: int) -> int:
    """How often the number of steps is doubled, from public numbers."""
    wanted = round(math.log2(n_series * n_features)) - _FEWER_DOUBLINGS
    return min(max(wanted, 4), MOST_DOUBLINGS)


@dataclass(frozen=True, slots=True)
class Scales:
    """The public shifts and thresholds for K features, M series and k doublings."""

    n_series: int
    n_features: int
    doublings: int

    @property
    def gram_shift(self) -> int:
        """Bits dropped from the Gram matrix, so that its trace has at most 48."""
        largest = self.n_features * self.n_series**2 * LARGEST**2
        return max(0, int(largest).bit_length() - _TRACE_BITS)

    @property
    def cross_shift(self) -> int:
        """Bits dropped from the products of features and classes."""
        return max(0, self.gram_shift - 8)

    @property
    def start_shift(self) -> int:
        """Bits dropped from the first weights, so that no later ones exceed 2^31."""
        bits = 53 + self.gram_shift - self.cross_shift - math.log2(self.n_features) / 2
        return max(0, math.ceil(bits - 30))

    @property
    def weight_bits(self) -> int:
        """Fraction bits of the weights at the end."""
        lost = STANDARD_BITS + self.cross_shift + self.start_shift + self.doublings // 2
        return _SCALE_BITS + self.gram_shift - lost

    def thresholds(self) -> list[int]:
        """Steps of a quarter octave; the trace lies below the last."""
        usual = (self.n_features * self.n_series**2) << (2 * STANDARD_BITS)
        n = (_OCTAVES_BELOW + _OCTAVES_ABOVE) * _STEPS_PER_OCTAVE
        exponents = [j / _STEPS_PER_OCTAVE - _OCTAVES_BELOW for j in range(n + 1)]
        found = [max(1, int(usual * 2.0**e) >> self.gram_shift) for e in exponents]
        return [*found[:-1], found[-1] + 1]

    def factors(self) -> list[int]:
        """2^60 over each threshold."""
        return [2**_SCALE_BITS // t for t in self.thresholds()]

    def wide_step(self, j: int) -> int:
        """1 where doubling j also drops a bit of the weights, which may have grown by it."""
        return j % 2


def train_ridge(table: Array, indicators: Array, *, doublings: int) -> Array:
    """Weights (K, C) and below them the biases (1, C), integers; see the module. Opens nothing.

    `table` (K, M) are standardised features, integers at 2**STANDARD_BITS.
    """
    import jax.numpy as jnp

    n_features, n_series = table.shape
    scales = Scales(n_series, n_features, doublings)
    sums, sizes = jnp.sum(table, axis=1), jnp.sum(indicators, axis=0)
    gram = n_series * (table @ table.T) - sums[:, None] * sums[None, :]
    cross = n_series * (table @ indicators) - sums[:, None] * sizes[None, :]
    gram = jnp.right_shift(gram, scales.gram_shift)
    trace = jnp.sum(gram * np.eye(n_features, dtype=np.int64))
    reached = (trace >= np.array(scales.thresholds()[:-1])).astype(table.dtype)
    factor = scales.factors()[0] + jnp.sum(reached * np.diff(scales.factors()))
    step = jnp.right_shift(gram * factor, _SCALE_BITS - _E_BITS)
    rest = 2**_E_BITS * np.eye(n_features, dtype=np.int64) - step
    cross = jnp.right_shift(cross, scales.cross_shift)
    weights = jnp.right_shift(cross * factor, scales.start_shift)
    for j in range(doublings):
        wide = scales.wide_step(j)
        weights = jnp.right_shift(2**_E_BITS * weights + rest @ weights, _E_BITS + wide)
        if j + 1 < doublings:
            rest = jnp.right_shift(2**wide * (rest @ rest), _E_BITS + wide)
    means = jnp.right_shift(sums * _mean_factor(scales), 2 * _MEAN_BITS)
    biases = jnp.right_shift(sizes * _size_factor(scales) - means @ weights, _bias_shift())
    return jnp.concatenate([weights, biases[None, :]], axis=0)


def _mean_factor(scales: Scales) -> int:
    """2^36 / M: means of standardised features then have 12 more bits, after a shift by 24."""
    return int(2 ** (3 * _MEAN_BITS) // scales.n_series)


def _size_factor(scales: Scales) -> int:
    """What turns a class size into its share of all series, before the shift of the biases."""
    return int(2 ** (scales.weight_bits + _bias_shift()) // scales.n_series)


def _bias_shift() -> int:
    return _MEAN_BITS + STANDARD_BITS


def _replicated(party: Replicated, table: Pair, indicators: Pair, *, doublings: int) -> Pair:
    n_features, n_series = table[0].shape
    scales = Scales(n_series, n_features, doublings)
    sums = (table[0].sum(axis=1), table[1].sum(axis=1))
    sizes = (indicators[0].sum(axis=0), indicators[1].sum(axis=0))
    rest, weights = _start(party, table, indicators, sums, sizes, scales)
    for j in range(doublings):
        rest, weights = _doubled(party, rest, weights, scales, j)
    raw = (sums[0] * np.uint64(_mean_factor(scales)), sums[1] * np.uint64(_mean_factor(scales)))
    means = party.shifted_signed(raw, shift=2 * _MEAN_BITS)
    moved = party.product((means[0][None, :], means[1][None, :]), weights)
    share = np.uint64(_size_factor(scales))
    raw = (sizes[0] * share - moved[0][0], sizes[1] * share - moved[1][0])
    biases = party.shifted_signed(raw, shift=_bias_shift())
    first, second = (np.concatenate([weights[i], biases[i][None, :]]) for i in (0, 1))
    return first, second


def _start(
    party: Replicated, table: Pair, indicators: Pair, sums: Pair, sizes: Pair, scales: Scales
) -> tuple[Pair, Pair]:
    """E and the weights after one step, which is the first factor applied to nothing."""
    k, upper = scales.n_features, np.triu_indices(scales.n_features)
    right = [np.concatenate([t, i.T]).T for t, i in zip(table, indicators, strict=True)]
    products = wrapping_matmul(table[0], right[0] + right[1]) + wrapping_matmul(table[1], right[0])
    totals = [np.concatenate([s, c]) for s, c in zip(sums, sizes, strict=True)]
    outer = sums[0][:, None] * (totals[0] + totals[1]) + sums[1][:, None] * totals[0]
    local = np.uint64(scales.n_series) * products - outer
    both = party.mask_sum(np.concatenate([local[:, :k][upper], local[:, k:].reshape(-1)]))
    cut = len(upper[0])
    gram = party.shifted_signed((both[0][:cut], both[1][:cut]), shift=scales.gram_shift)
    cross = (both[0][cut:], both[1][cut:])
    if scales.cross_shift:
        cross = party.shifted_signed(cross, shift=scales.cross_shift)
    factor = _secret_factor(party, gram, scales, diagonal=upper[0] == upper[1])
    scaled = party.multiply(joined(gram, cross), factor)
    step = party.shifted_signed((scaled[0][:cut], scaled[1][:cut]), shift=_SCALE_BITS - _E_BITS)
    first = party.shifted_signed((scaled[0][cut:], scaled[1][cut:]), shift=scales.start_shift)
    one = party.constant(2**_E_BITS, (k,), np.uint64)
    rest = [np.diag(d) - _symmetric(s, k) for d, s in zip(one, step, strict=True)]
    weights = [w.reshape(k, -1) for w in first]
    return (rest[0], rest[1]), (weights[0], weights[1])


def _secret_factor(
    party: Replicated, gram: Pair, scales: Scales, *, diagonal: NDArray[np.bool_]
) -> Pair:
    """2^60 over the threshold just above the trace, from one comparison with each, at once."""
    limits = np.array(scales.thresholds()[:-1], dtype=np.uint64)
    trace = (gram[0][diagonal].sum(), gram[1][diagonal].sum())
    public = party.constant(1, (1,), np.uint64)
    difference = (trace[0] - public[0] * limits, trace[1] - public[1] * limits)
    under = party.below_zero(difference, dtype=np.uint64)
    jumps = np.diff(np.array(scales.factors(), dtype=np.int64)).astype(np.uint64)
    # Where the trace lies under a threshold, the jump at it is taken back.
    total = [-(u * jumps).sum(keepdims=True) for u in under]
    return party.plus((total[0], total[1]), scales.factors()[-1])


def _doubled(
    party: Replicated, rest: Pair, weights: Pair, scales: Scales, j: int
) -> tuple[Pair, Pair]:
    """E squared, and the weights times I + E: one product and one shift for both."""
    k, wide, last = scales.n_features, scales.wide_step(j), j + 1 == scales.doublings
    upper = np.triu_indices(0 if last else k)
    right = [weights[i] if last else np.concatenate([rest[i], weights[i]], axis=1) for i in (0, 1)]
    local = wrapping_matmul(rest[0], right[0] + right[1]) + wrapping_matmul(rest[1], right[0])
    squares, moved = np.split(local, [0 if last else k], axis=1)
    both = party.mask_sum(np.concatenate([squares[upper] << np.uint64(wide), moved.reshape(-1)]))
    cut = len(upper[0])
    whole = [
        np.concatenate([b[:cut], b[cut:] + (w.reshape(-1) << np.uint64(_E_BITS))])
        for b, w in zip(both, weights, strict=True)
    ]
    found = party.shifted_signed((whole[0], whole[1]), shift=_E_BITS + wide)
    new = [f[cut:].reshape(k, -1) for f in found]
    if not last:
        rest = (_symmetric(found[0][:cut], k), _symmetric(found[1][:cut], k))
    return rest, (new[0], new[1])


def _symmetric(upper: NDArray[Any], k: int) -> NDArray[Any]:
    """The matrix with this upper triangle; both halves of a symmetric matrix are sent once."""
    matrix = np.zeros((k, k), dtype=upper.dtype)
    matrix[np.triu_indices(k)] = upper
    matrix.T[np.triu_indices(k)] = upper
    return matrix


def _weights_and_biases(table: Shape, indicators: Shape, *, doublings: int) -> Shape:
    return table[0] + 1, indicators[1]


RIDGE = Kernel(
    name="ridge",
    plaintext=train_ridge,
    compiled=train_ridge,
    replicated=_replicated,
    output_shape=_weights_and_biases,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge:
    """The model that P0 ends with."""

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    standard: Standardisation

    def scores(self, features: Integers) -> NDArray[np.float64]:
        """Least-squares estimates (n, C) of the class indicators, for features (K, n)."""
        return np.asarray(self.standard.apply(features) @ self.weights + self.biases)

    def probabilities(self, features: Integers) -> NDArray[np.float64]:
        """The estimates as shares: those below 0.001 raised to it, then scaled to sum 1.

        They sum to 1 before, but for rounding, so the largest is never among those raised.
        """
        raised = np.maximum(self.scores(features), 1e-3)
        return np.asarray(raised / raised.sum(axis=1, keepdims=True))

    def to_arrays(self) -> Arrays:
        """The model as arrays for a file."""
        return {
            "ridge_weights": self.weights,
            "biases": self.biases,
            "centre": self.standard.centre,
            "multiplier": self.standard.multiplier,
        }


def ridge_from_opened(
    opened: Integers, standard: Standardisation, *, n_series: int, doublings: int
) -> Ridge:
    """The model from the opened integers of `train_ridge`."""
    scales = Scales(n_series, len(opened) - 1, doublings)
    real = opened / 2.0**scales.weight_bits
    return Ridge(weights=real[:-1], biases=real[-1:], standard=standard)


def ridge_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Ridge:
    """Read back `Ridge.to_arrays`."""
    standard = Standardisation(centre=arrays["centre"], multiplier=arrays["multiplier"])
    return Ridge(weights=arrays["ridge_weights"], biases=arrays["biases"], standard=standard)
