"""Series as exact integers, and shapelet candidates cut from the initiator's own series.

Everything public about the candidates (their lengths, how many there are of each, in which order
they are examined) follows from public counts alone; what they are stays with P0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError, check_at_least

# Products of two encoded windows, and their sums, must also be exact in float64 (53 bits), so
# that one owner's plaintext distances are the same integers as those computed over shares.
EXACT_BITS = 52
# With at least this many fraction bits left, distances are kept below 2**31: half the bytes.
NARROW_BITS = 31
MIN_NARROW_FRACTION_BITS = 8
MAX_FRACTION_BITS = 16
MIN_FRACTION_BITS = 4
SMALLEST_LIMIT = 2**8  # steps from zero to the largest raw value
GRID_SIZE = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How series become integers: z-normalised or raw, and how many fraction bits.

    `energy` bounds the sum of squares of one encoded series in units of the series; all distances
    are then at most 4 * energy, which is what makes the ring arithmetic exact. `distance_bits` is
    what a distance is rescaled to.
    """

    series_length: int
    normalise: bool
    value_bound: float
    fraction_bits: int
    distance_bits: int = 20

    @property
    def energy(self) -> float:
        """The largest sum of squares of one series, known without looking at any."""
        n = self.series_length
        return float(n) if self.normalise else n * self.value_bound**2

    @property
    def largest_distance(self) -> float:
        """No squared distance exceeds this, in squared units of the series."""
        # Encoding rounds every value by at most one half.
        half_step: float = 2.0 ** -(self.fraction_bits + 1)
        if not self.normalise:
            return self.series_length * (2.0 * self.value_bound + 2.0 * half_step) ** 2
        return float(4.0 * self.energy * (1.0 + half_step) ** 2)

    @property
    def narrow(self) -> bool:
        """Whether every distance, as an integer, lies below 2**31."""
        return bool(self.largest_distance * 4.0**self.fraction_bits < 2.0**NARROW_BITS)

    @property
    def limit(self) -> int:
        """The largest absolute integer that one value can become."""
        largest = math.sqrt(self.series_length) if self.normalise else self.value_bound
        scale: float = 2.0**self.fraction_bits
        return math.ceil(largest * scale) + 1


def distance_bits_for(n_series: int) -> int:
    """20 bits up to 4096 series, 18 beyond: sums over all series must stay exact."""
    return 20 if n_series <= 2**12 else 18


def choose_encoding(
    *,
    series_length: int,
    normalise: bool,
    value_bound: float | None = None,
    distance_bits: int = 20,
) -> Encoding:
    """As many fraction bits as keep distances below 2**31, if these are at least 8.

    Otherwise as many, up to 16, as keep every product sum exact; refuse below 4.
    """
    check_at_least(series_length, 1, name="series_length")
    bound = 0.0
    if not normalise:
        if value_bound is None or not 0.0 < value_bound < math.inf:
            raise TacitError(
                f"without normalisation a public value_bound above 0 is needed, got "
                f"{value_bound!r}; give the largest absolute value that any party may hold."
            )
        bound = float(value_bound)
    energy = series_length if normalise else series_length * bound**2
    bits = min(MAX_FRACTION_BITS, math.floor((EXACT_BITS - 3 - math.log2(energy)) / 2))
    if bits < MIN_FRACTION_BITS:
        raise TacitError(
            f"series of length {series_length} with values up to {bound:g} do not fit the shared "
            "arithmetic; rescale them or use normalise=True."
        )
    if not normalise and bound * 2.0**bits < SMALLEST_LIMIT:
        raise TacitError(
            f"values up to {bound:g} would be rounded to fewer than {SMALLEST_LIMIT} steps; give "
            "the series in a smaller unit, or use normalise=True."
        )
    for narrow_bits in range(bits, MIN_NARROW_FRACTION_BITS - 1, -1):
        encoding = Encoding(
            series_length=series_length,
            normalise=normalise,
            value_bound=bound,
            fraction_bits=narrow_bits,
            distance_bits=distance_bits,
        )
        if encoding.narrow:
            return encoding
    return Encoding(
        series_length=series_length,
        normalise=normalise,
        value_bound=bound,
        fraction_bits=bits,
        distance_bits=distance_bits,
    )


def encode(X: Floats, encoding: Encoding) -> Integers:
    """Series along the last axis as integers; refuse what would not fit."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim < 2 or X.shape[-1] != encoding.series_length:
        raise TacitError(
            f"series must have the length {encoding.series_length} of the plan, got an array of "
            f"shape {X.shape}; bring them to one length."
        )
    if not np.isfinite(X).all():
        raise TacitError("a series holds NaN or infinity; repair or drop it.")
    if encoding.normalise:
        X = _z_normalise(X)
    elif X.size and np.abs(X).max() > encoding.value_bound:
        raise TacitError(
            f"a value of size {np.abs(X).max():.6g} exceeds the agreed value_bound "
            f"{encoding.value_bound:g}; rescale the series or agree on a larger bound."
        )
    encoded: Integers = np.rint(X * 2.0**encoding.fraction_bits).astype(np.int64)
    return encoded


def _z_normalise(X: Floats) -> Floats:
    # Scaled first: squares of very large or very small values would overflow or vanish.
    largest = np.abs(X).max(axis=-1, keepdims=True)
    X = X / np.where(largest > 0.0, largest, 1.0)
    centred = X - X.mean(axis=-1, keepdims=True)
    deviation = centred.std(axis=-1, keepdims=True)
    flat = deviation < 1e-12  # rounding errors of a constant series are not a shape
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, deviation))


def length_grid(series_length: int, *, size: int = GRID_SIZE) -> tuple[int, ...]:
    """Public candidate lengths from min(3, N/4) to N, evenly spread."""
    shortest = max(1, math.floor(min(3, series_length / 4)))
    grid = np.linspace(shortest, series_length, num=max(size, 1))
    return tuple(int(v) for v in np.unique(np.rint(grid).astype(int)))


def counts_per_length(
    *,
    n_candidates: int,
    lengths: Sequence[int],
    series_length: int,
    n_series: int,
    n_channels: int = 1,
) -> tuple[int, ...]:
    """How many candidates of each length: equal shares, never more than there are windows."""
    check_at_least(n_candidates, 0, name="n_candidates")
    capacity = [n_series * n_channels * (series_length - length + 1) for length in lengths]
    counts = [0] * len(lengths)
    left = min(n_candidates, sum(capacity))
    while left:
        open_ = [i for i in range(len(lengths)) if counts[i] < capacity[i]]
        # The remainder goes to the middle of the grid first, one each.
        open_.sort(key=lambda i: abs(i - (len(lengths) - 1) / 2))
        each = max(1, left // len(open_))
        for i in open_:
            take = min(each, capacity[i] - counts[i], left)
            counts[i] += take
            left -= take
    return tuple(counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Candidates examined together: all of one length, so many of each channel; public."""

    length: int
    per_channel: tuple[int, ...]

    @property
    def count(self) -> int:
        """Candidates of all channels, which lie in the order of the channels."""
        return sum(self.per_channel)

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """Channels that have candidates here, and how many."""
        return tuple((channel, n) for channel, n in enumerate(self.per_channel) if n)


def plan_batches(
    *,
    n_candidates: int,
    lengths: Sequence[int],
    series_length: int,
    n_series: int,
    batch_size: int,
    seed: int,
    n_channels: int = 1,
) -> tuple[Batch, ...]:
    """The public order in which candidates are examined, from public numbers only.

    Batches of all lengths are mixed, so that a search stopped early has seen every length; the
    channels take turns.
    """
    for length in lengths:
        if not 1 <= length <= series_length:
            raise TacitError(
                f"candidate lengths must lie between 1 and the series length {series_length}, "
                f"got {length}."
            )
    counts = counts_per_length(
        n_candidates=n_candidates,
        lengths=lengths,
        series_length=series_length,
        n_series=n_series,
        n_channels=n_channels,
    )
    batches, turn = [], 0
    for length, count in zip(lengths, counts, strict=True):
        for done in range(0, count, batch_size):
            size = min(batch_size, count - done)
            turns = (turn + np.arange(size)) % n_channels
            per_channel = np.bincount(turns, minlength=n_channels).tolist()
            batches.append(Batch(length=length, per_channel=tuple(per_channel)))
            turn += size
    order = np.random.default_rng(seed).permutation(len(batches))
    return tuple(batches[i] for i in order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """P0's candidates of one batch: which series, where, and their integers (count, length)."""

    series: NDArray[np.intp]
    channel: NDArray[np.intp]
    start: NDArray[np.intp]
    windows: Integers


def draw_candidates(
    encoded: Integers, batches: Sequence[Batch], *, rng: np.random.Generator
) -> list[Candidates]:
    """Windows of P0's series (n, channels, N) at random, no repeats within length and channel."""
    n, n_channels, series_length = encoded.shape
    unused: dict[tuple[int, int], NDArray[np.intp]] = {}
    for length in sorted({batch.length for batch in batches}):
        places = n * (series_length - length + 1)
        for channel in range(n_channels):
            total = sum(b.per_channel[channel] for b in batches if b.length == length)
            unused[length, channel] = rng.choice(places, size=total, replace=False)
    drawn = []
    for batch in batches:
        chosen = []
        for channel, count in batch.runs:
            key = (batch.length, channel)
            taken, unused[key] = np.split(unused[key], [count])
            chosen.append(taken)
        drawn.append(_cut(encoded, np.concatenate(chosen), batch))
    return drawn


def _cut(encoded: Integers, places: NDArray[np.intp], batch: Batch) -> Candidates:
    series, start = np.divmod(places, encoded.shape[2] - batch.length + 1)
    channel = np.repeat(np.arange(len(batch.per_channel)), batch.per_channel)
    columns = start[:, None] + np.arange(batch.length)
    windows = encoded[series[:, None], channel[:, None], columns]
    return Candidates(series=series, channel=channel, start=start, windows=windows)
