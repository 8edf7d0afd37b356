"""Shapelet distances: the minimum over all windows of the squared Euclidean distance (Eq. 1).

Three routes give the same integers, bit for bit: a convolution over shares with
|s - t|^2 = sum s^2 + sum t^2 - 2 sum s t (Eq. 4 with its sign corrected), the elementwise route of
the basic protocol, and one owner's plaintext.

After the minimum a distance is shifted to `DISTANCE_BITS` bits. No distance exceeds 4 * energy; for
z-normalised windows so short that 64 per value (a mean difference of 8 standard deviations) is less
than that, distances are capped there, by one more comparison, for the sake of resolution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.silo.fedst.candidates import Encoding

if TYPE_CHECKING:
    from jax import Array

DISTANCE_BITS = 20  # at most; see `candidates.distance_bits_for`
CAP_PER_VALUE = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """The public cap of a raw distance and the shift after it, for one length.

    `binding` is False where no distance can exceed the cap, so that nothing need be compared.
    """

    cap: int
    shift: int
    binding: bool

    @property
    def static(self) -> dict[str, int]:
        """As the static arguments of the functions below."""
        return {"cap": self.cap if self.binding else 0, "shift": self.shift}


def rescale_for(length: int, encoding: Encoding) -> Rescale:
    """Cap and shift such that every distance of this length ends below 2**distance_bits."""
    largest = encoding.largest_distance
    if not encoding.normalise:
        largest *= length / encoding.series_length
    binding = encoding.normalise and CAP_PER_VALUE * length < largest
    if binding:
        largest = CAP_PER_VALUE * length
    cap = math.ceil(largest * 4.0**encoding.fraction_bits)
    return Rescale(
        cap=cap, shift=max(0, cap.bit_length() - encoding.distance_bits), binding=binding
    )


def unit_of(length: int, encoding: Encoding) -> float:
    """What one step of a rescaled distance means in squared units of the series."""
    return float(2.0 ** rescale_for(length, encoding).shift / 4.0**encoding.fraction_bits)


def distances_dot(
    series: Array, squares: Array, shapelets: Array, *, cap: int, shift: int
) -> Array:
    """Rescaled distances (b, R) of shapelets (b, L) to series (R, N), by convolution.

    `squares` are the squares of the series, shared by their owner, so that sums over windows cost
    nothing. Opens nothing; one multiplication round, then the oblivious minimum.
    """
    import jax.numpy as jnp

    n_windows = series.shape[1] - shapelets.shape[1] + 1
    energies = squares @ _band(series.shape[1], n_windows)
    norms = jnp.sum(shapelets * shapelets, axis=1)
    raw = energies[:, :, None] + norms[None, None, :] - 2 * _cross(series, shapelets)
    return _rescaled_minimum(raw, cap=cap, shift=shift)


def distances_elementwise(
    series: Array, squares: Array, shapelets: Array, *, cap: int, shift: int
) -> Array:
    """The same integers by one multiplication per value, as in the paper's basic protocol."""
    import jax.numpy as jnp

    length = shapelets.shape[1]
    n_windows = series.shape[1] - length + 1
    windows = jnp.stack([series[:, p : p + length] for p in range(n_windows)], axis=1)
    difference = windows[:, :, None, :] - shapelets[None, None, :, :]
    raw = jnp.sum(difference * difference, axis=3)
    return _rescaled_minimum(raw, cap=cap, shift=shift)


def _cross(series: Array, shapelets: Array) -> Array:
    from jax import lax

    return lax.conv_general_dilated(
        series[:, :, None],
        shapelets.T[:, None, :],
        (1,),
        "VALID",
        dimension_numbers=("NHC", "HIO", "NHC"),
    )


def _band(n: int, n_windows: int) -> NDArray[np.int64]:
    offset = np.arange(n)[:, None] - np.arange(n_windows)[None, :]
    return ((offset >= 0) & (offset <= n - n_windows)).astype(np.int64)


def _rescaled_minimum(raw: Array, *, cap: int, shift: int) -> Array:
    import jax.numpy as jnp

    smallest = jnp.min(raw, axis=1) if raw.shape[1] > 1 else raw[:, 0]
    smallest = jnp.minimum(smallest, cap) if cap else smallest
    return jnp.right_shift(smallest, shift).T


def own_distances(encoded: Integers, shapelets: Integers, rescale: Rescale) -> Integers:
    """The same integers (b, M) for series that one owner holds in plaintext."""
    # float64 matrix products are exact here: see EXACT_BITS.
    series, cut = encoded.astype(np.float64), shapelets.astype(np.float64)
    length, n_windows = cut.shape[1], series.shape[1] - cut.shape[1] + 1
    running = np.zeros((len(series), series.shape[1] + 1))
    np.cumsum(series**2, axis=1, out=running[:, 1:])
    energies = running[:, length:] - running[:, :-length]
    best = np.full((len(series), len(cut)), np.inf)
    for p in range(n_windows):
        raw = series[:, p : p + length] @ (-2.0 * cut.T)
        raw += energies[:, p, None]
        np.minimum(best, raw, out=best)
    best += np.einsum("bl,bl->b", cut, cut)
    return np.minimum(best.T.astype(np.int64), rescale.cap) >> rescale.shift


def best_windows(encoded: Integers, shapelets: Integers) -> tuple[Integers, NDArray[np.intp]]:
    """Raw minimum distances (b, M) and the first window where each is attained."""
    # float64 matrix products are exact here: see EXACT_BITS.
    windows = sliding_window_view(encoded.astype(np.float64), shapelets.shape[1], axis=1)
    cut = shapelets.astype(np.float64)
    norms = np.einsum("bl,bl->b", cut, cut)
    best = np.empty((len(cut), len(encoded)))
    where = np.empty((len(cut), len(encoded)), dtype=np.intp)
    for j, of_one in enumerate(windows):
        energy = np.einsum("wl,wl->w", of_one, of_one)
        raw = energy[:, None] + norms - 2.0 * (of_one @ cut.T)
        where[:, j] = raw.argmin(axis=0)
        best[:, j] = raw.min(axis=0)
    return best.astype(np.int64), where


def distances_of_many(series: Array, squares: Array, cuts: Array, **groups: Any) -> Array:
    """`distances_dot` for many shapelets, one after the other in the row `cuts`.

    Series are (R, channels, N). `groups` are the public counts, lengths, channels, caps and shifts
    of each run of shapelets with one length and one channel.
    """
    return _of_many(distances_dot, series, squares, cuts, **groups)


def elementwise_of_many(series: Array, squares: Array, cuts: Array, **groups: Any) -> Array:
    """`distances_elementwise` for many shapelets in one row."""
    return _of_many(distances_elementwise, series, squares, cuts, **groups)


def _of_many(
    route: Any,
    series: Array,
    squares: Array,
    cuts: Array,
    *,
    counts: tuple[int, ...],
    lengths: tuple[int, ...],
    channels: tuple[int, ...],
    caps: tuple[int, ...],
    shifts: tuple[int, ...],
) -> Array:
    import jax.numpy as jnp

    found, start = [], 0
    for count, length, channel, cap, shift in zip(
        counts, lengths, channels, caps, shifts, strict=True
    ):
        shapelets = cuts[start : start + count * length].reshape(count, length)
        own, own_squares = series[:, channel], squares[:, channel]
        found.append(route(own, own_squares, shapelets, cap=cap, shift=shift))
        start += count * length
    return additive(jnp.concatenate(found, axis=0))


def additive(x: Array) -> Array:
    """The same integers, held as sums of shares: the engine ends shifts and roundings with bits.

    Kernels take sums. No compiler removes this sum, because integers wrap around.
    """
    return x * 2 - x


DISTANCES: dict[str, Any] = {"dot": distances_of_many, "elementwise": elementwise_of_many}
