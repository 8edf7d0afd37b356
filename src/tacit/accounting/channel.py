"""The privacy blanket of any finite channel: rows of probabilities, one for each input.

With gamma omega(w) = min over inputs y of mu_y(w), r = mu / (gamma omega) and
Y = r_x(W) - e^eps r_x'(W) with probability gamma omega(W), 0 otherwise, n shuffled reports have

    delta(eps) <= 1/n E[(Y_1 + ... + Y_n)+] + sum over w with omega(w) = 0 of (mu_x - e^eps mu_x')+

for the ordered pair x, x' (docs/guarantees/blanket.md, Proposition B1); the worst ordered pair is
found by enumeration (Proposition B8). The law of the sum is built by doubling. Every step may only
raise the bound: values move to the ends of grid cells with the mean kept (the positive part is
convex), the lower tail moves up, the upper tail is counted in full. All numbers are positive and
convolved directly, so that relative errors stay small in the far tails too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from tacit.accounting.batch import BLANKET, pointwise, smallest_epsilon
from tacit.accounting.clones import LARGEST_N, UNDERFLOW
from tacit.accounting.shuffle import (
    ShuffleBound,
    check_shuffle_delta,
    closest_delta,
    shuffle_bound,
)
from tacit.arrays import Floats
from tacit.errors import TacitError, check_at_least, check_epsilon

_CELLS = 2048  # of the grid that holds a sum; more of them make the bound tighter
_ROUNDING = 2.3e-16  # relative, per addition
_ABOVE, _BELOW = 1.0 + 1e-15, 1.0 - 1e-15
_PRECISION = 1e-6  # relative, of an epsilon that is searched for
_TAIL_SHARE = 1e-3  # of the target delta, for upper tails that are cut


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Outputs for two inputs: their blanket mass, the two ratios to it, what no blanket covers."""

    blanket: Floats
    first: Floats
    second: Floats
    bare_first: Floats
    bare_second: Floats
    unsure: float  # relative, of every probability: by what rows do not add up to 1


def check_channel(rows: ArrayLike) -> Floats:
    """The rows as an array, or a refusal of what are not probabilities.

    Rows that add up to 1 but for rounding stand for the channel of their quotients by their sums;
    every bound holds for that one.
    """
    channel = np.asarray(rows, dtype=np.float64)
    if channel.ndim != 2 or min(channel.shape) < 2:
        raise TacitError(f"a channel has at least two rows and columns, got {channel.shape}.")
    if not (np.all(channel >= 0.0) and np.all(np.abs(channel.sum(axis=1) - 1.0) < 1e-12)):
        raise TacitError("every row of a channel must hold probabilities that add up to 1.")
    return channel


def _unsure(channel: Floats) -> float:
    """A bound on how far, relatively, a number lies from its quotient by the sum of its row."""
    return 1.01 * max(abs(math.fsum(row) - 1.0) for row in channel.tolist()) + 1.2e-16


def local_epsilon_of(rows: ArrayLike) -> float:
    """The largest log ratio in a column, rounded up; infinite if an output excludes an input."""
    channel = check_channel(rows)
    used = channel[:, channel.max(axis=0) > 0.0]
    if used.min() == 0.0:
        return math.inf
    if np.all(channel == channel[0]):
        return 0.0
    found = float(np.log(used.max(axis=0) / used.min(axis=0)).max())
    return found * (1.0 + 1e-12) + 3.0 * _unsure(channel)


def equivalent_cap(*, local_epsilon: float, blanket: float) -> float:
    """The cap of the PrivUnitG that no randomizer with this epsilon and blanket mass exceeds.

    Proposition B5: holds for every randomizer whose densities have an infimum of at least this
    mass, if the result is at most 1/2.
    """
    return (1.0 / blanket - 1.0) / math.expm1(local_epsilon) * (1.0 + 1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelBatch:
    """n shuffled reports of one finite channel, each from any of its inputs."""

    rows: tuple[tuple[float, ...], ...]
    n: int

    @staticmethod
    def of(rows: ArrayLike, *, n: int) -> ChannelBatch:
        """Check the rows and the number of reports."""
        plain = tuple(tuple(row) for row in check_channel(rows).tolist())
        return ChannelBatch(rows=plain, n=check_at_least(n, 1, name="n"))

    @property
    def local_epsilon(self) -> float:
        """What each report guarantees on its own; a refusal if that is nothing."""
        return check_epsilon(local_epsilon_of(self.rows), name="local_epsilon of the channel")

    def deltas(self, epsilons: Floats, target_delta: float, *, groups: int = 0) -> Floats:
        """Upper bounds of delta at each epsilon >= 0, for the worst ordered pair of inputs.

        `target_delta` says where the bound should be tight; it holds whatever that is.
        """
        pairs, n = _pairs(self.rows), min(self.n, LARGEST_N)
        bounds = [
            max(_delta(pair, n, epsilon, target_delta) for pair in pairs)
            for epsilon in np.asarray(epsilons).tolist()
        ]
        return np.array(bounds, dtype=np.float64)

    def best(self, *, delta: float) -> tuple[float, str]:
        """The smallest epsilon at `delta`, and its theorem."""
        local = self.local_epsilon
        best = smallest_epsilon(
            pointwise(self.deltas), local, local, delta=delta, precision=_PRECISION
        )
        return best, BLANKET.format("a finite channel", "B1 and B8")


def shuffled_channel_delta(rows: ArrayLike, *, n: int, central_epsilon: float) -> float:
    """An upper bound of delta at `central_epsilon` for n shuffled reports of a finite channel.

    The channel need not be pure: an output may exclude an input.
    """
    return closest_delta(pointwise(ChannelBatch.of(rows, n=n).deltas), central_epsilon)


def shuffled_channel_epsilon(
    rows: ArrayLike, *, n: int, delta: float, force: bool = False
) -> ShuffleBound:
    """The central epsilon of n shuffled reports of a finite channel at `delta`.

    `rows[x]` holds the probabilities of the outputs for input x. Guarantee: an upper bound, never
    above the channel's own local epsilon, which must be finite; see `ShuffleBound`.
    """
    batch = ChannelBatch.of(rows, n=n)
    check_shuffle_delta(delta, n=n, force=force)
    best, theorem = batch.best(delta=delta)
    return shuffle_bound(
        best,
        local_epsilon=batch.local_epsilon,
        n=n,
        delta=delta,
        theorem=theorem,
        kind=f"a report of the same channel of {len(batch.rows)} inputs",
    )


@lru_cache(maxsize=16)
def _pairs(rows: tuple[tuple[float, ...], ...]) -> tuple[_Pair, ...]:
    """One of each kind of ordered pairs: pairs alike up to the names of outputs count once."""
    channel = np.array(rows, dtype=np.float64)
    blanket = channel.min(axis=0)
    covered, unsure = blanket > 0.0, _unsure(channel)
    found: dict[bytes, _Pair] = {}
    for x in range(len(channel)):
        for other in range(len(channel)):
            if x == other:
                continue
            first, second = channel[x], channel[other]
            table = np.column_stack([blanket, first, second])
            key = np.ascontiguousarray(table[np.lexsort(table.T)]).tobytes()
            found.setdefault(
                key,
                _Pair(
                    blanket=blanket[covered],
                    first=first[covered] / blanket[covered],
                    second=second[covered] / blanket[covered],
                    bare_first=first[~covered],
                    bare_second=second[~covered],
                    unsure=unsure,
                ),
            )
    return tuple(found.values())


def _delta(pair: _Pair, n: int, epsilon: float, target_delta: float) -> float:
    factor = math.exp(epsilon)
    # Upwards by more than the rounding of the ratios.
    above, below = _ABOVE + 3.0 * pair.unsure, _BELOW - 3.0 * pair.unsure
    values = pair.first * above - factor * pair.second * below
    bare = float(np.maximum(pair.bare_first * above - factor * pair.bare_second * below, 0.0).sum())
    if values.size == 0 or values.max() <= 0.0:
        return min(bare * (1.0 + 1e-12), 1.0)
    allowed = _TAIL_SHARE * target_delta / float(values.max())
    weights = pair.blanket * (1.0 + pair.unsure)
    excess = _positive_part(values, weights, n=n, allowed=allowed, unsure=pair.unsure)
    return min((excess / n + bare) * (1.0 + 1e-12) + UNDERFLOW, 1.0)


@dataclass(slots=True)
class _Law:
    """Masses at spacing * (start + i), the probability of what was cut, and what nothing passes."""

    masses: Floats
    start: int
    spacing: float
    peak: float
    lost: float = 0.0


def _positive_part(
    values: Floats, weights: Floats, *, n: int, allowed: float, unsure: float
) -> float:
    """An upper bound of E[(Y_1 + ... + Y_n)+]; upper tails are cut at about `allowed`."""
    rest = max(1.0 - float(weights.sum()), 0.0) + 1e-15 + 2.0 * unsure  # they may be too large
    atoms = np.append(values, 0.0)
    chances = np.append(weights, rest) * (1.0 + 1e-15)
    spacing = (float(atoms.max()) - float(atoms.min())) / (_CELLS // 2)
    one = law = _on_grid(atoms, chances, spacing)
    bits = bin(n)[3:]
    share, count = allowed / (2.0 * len(bits) + 1.0), 1
    for bit in bits:
        law, count = _trimmed(_added(law, law), share * min(1.0, 2.0 * count / n)), 2 * count
        while law.masses.size > _CELLS:
            law = _coarser(law)
        if bit == "1":
            one = one if one.spacing == law.spacing else _on_grid(atoms, chances, law.spacing)
            law, count = _added(law, one), count + 1
    places = law.start + np.arange(law.masses.size)
    above = places > 0
    total = float((law.masses[above] * places[above]).sum()) * law.spacing
    return (total + law.lost * law.peak) * (1.0 + 1e-12)


def _on_grid(atoms: Floats, chances: Floats, spacing: float) -> _Law:
    """Each atom split between its neighbours on the grid, with the mean kept or raised."""
    scaled = atoms / spacing
    left = np.floor(scaled).astype(np.int64)
    share = np.minimum(scaled - left + 1e-12, 1.0)
    start = int(left.min())
    masses = np.zeros(int(left.max()) - start + 2)
    np.add.at(masses, left - start, chances * (1.0 - share))
    np.add.at(masses, left + 1 - start, chances * share)
    return _Law(masses, start, spacing, (int(left.max()) + 1) * spacing * (1.0 + 1e-12))


def _added(a: _Law, b: _Law) -> _Law:
    """The sum of two independent laws on one grid."""
    masses = np.convolve(a.masses, b.masses)
    masses *= 1.0 + _ROUNDING * (min(a.masses.size, b.masses.size) + 2)
    return _Law(masses, a.start + b.start, a.spacing, a.peak + b.peak, a.lost + b.lost)


def _trimmed(law: _Law, share: float) -> _Law:
    """Without tails of at most this probability: the lower one moves up, the upper one is lost."""
    below = int(np.searchsorted(np.cumsum(law.masses), share))
    above = int(np.searchsorted(np.cumsum(law.masses[::-1]), share))
    above = min(above, law.masses.size - 1)  # one point stays, however little mass there is
    below = min(below, law.masses.size - above - 1)
    masses = law.masses[below : law.masses.size - above].copy()
    masses[0] += float(law.masses[:below].sum()) * (1.0 + 1e-12)
    cut = float(law.masses[law.masses.size - above :].sum()) * (1.0 + 1e-12)
    return _Law(masses, law.start + below, law.spacing, law.peak, law.lost + cut)


def _coarser(law: _Law) -> _Law:
    """On a grid of twice the spacing: masses between its points go half to either side."""
    start = law.start // 2
    aligned = np.append(np.zeros(law.start - 2 * start), law.masses)
    even, odd = aligned[0::2], 0.5 * aligned[1::2]
    masses = np.zeros(odd.size + 1)
    masses[: even.size] = even
    masses[:-1] += odd
    masses[1:] += odd
    return _Law(masses * (1.0 + 1e-15), start, 2.0 * law.spacing, law.peak + law.spacing, law.lost)
