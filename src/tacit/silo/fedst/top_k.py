"""The K best candidates, obliviously: P0 learns their indices, nobody learns a quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.silo.fedst.quality import RATIO_BITS
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated
from tacit.silo.secure.replicated_sorting import sorted_rows
from tacit.silo.secure.sorting_network import next_power_of_two, pad_rows, sort_rows

if TYPE_CHECKING:
    from jax import Array

# Up to so many candidates each is compared with every other, in a few rounds; above, they are
# sorted, with fewer bytes in many rounds.
MOST_PAIRED = 3000


def top_indices(qualities: Array, *, k: int, noised: bool = False) -> Array:
    """Indices of the k largest qualities (n,), best first; the lower index wins a tie.

    The index travels in the low bits of the key, so a comparator moves one word, ties cannot
    occur, and plaintext and shares agree on the order. Opens nothing.
    """
    import jax.numpy as jnp

    n = qualities.shape[0]
    width = next_power_of_two(n)
    # Sorting upwards: a large quality becomes a small key. Noise takes more bits.
    above = 1 << (46 if noised else 40)
    keys = (above - qualities) * width + np.arange(n)
    ordered = sort_rows(pad_rows(keys[None, :], value=2**61))[0, :k]
    return jnp.bitwise_and(ordered, width - 1)


def _replicated(party: Replicated, qualities: Pair, *, k: int) -> Pair:
    """The same over replicated shares, for qualities from 0 to 2**24 - 1."""
    if len(qualities[0]) <= MOST_PAIRED:
        return _by_ranks(party, qualities, k)
    return _by_sorting(party, qualities, k)


def _by_ranks(party: Replicated, qualities: Pair, k: int) -> Pair:
    """Every pair is compared at once; then every rank with every place."""
    n = len(qualities[0])
    low = [q.astype(np.uint32) for q in qualities]
    first, second = np.triu_indices(n, 1)
    difference = (low[0][first] - low[0][second], low[1][first] - low[1][second])
    behind = party.below_zero(difference, dtype=np.uint32, n_bits=RATIO_BITS + 1)
    ranks = []
    for part in behind:
        square = np.zeros((n, n), dtype=np.uint32)
        square[first, second] = part
        ranks.append(square.sum(axis=1, dtype=np.uint32) - square.sum(axis=0, dtype=np.uint32))
    # Who is not behind a later candidate has it behind: the number of earlier ones is public.
    rank = party.plus((ranks[0], ranks[1]), np.arange(n))
    spread = (np.repeat(rank[0][:, None], k, axis=1), np.repeat(rank[1][:, None], k, axis=1))
    before = party.below_zero(
        party.plus(spread, -np.arange(1, k + 1)), dtype=np.uint32, n_bits=n.bit_length() + 2
    )
    indices = np.arange(n, dtype=np.uint32)[:, None]
    sums = [(indices * b).sum(axis=0, dtype=np.uint32) for b in before]
    found = [np.diff(s, prepend=s.dtype.type(0)) for s in sums]
    return party.shifted((found[0], found[1]), shift=0)


def _by_sorting(party: Replicated, qualities: Pair, k: int) -> Pair:
    n = len(qualities[0])
    width = next_power_of_two(n)
    keys = party.plus(
        (-qualities[0] * np.uint64(width), -qualities[1] * np.uint64(width)),
        (width << RATIO_BITS) + np.arange(n),
    )
    filler = party.constant(2**61, (width - n,), np.uint64)
    whole = [np.concatenate([key, f])[None, :] for key, f in zip(keys, filler, strict=True)]
    ordered = sorted_rows(party, (whole[0], whole[1]))
    best = (ordered[0][0, :k], ordered[1][0, :k])
    above = party.shifted(best, shift=width.bit_length() - 1)
    return best[0] - above[0] * np.uint64(width), best[1] - above[1] * np.uint64(width)


def _k_indices(qualities: Shape, *, k: int) -> Shape:
    return (k,)


TOP_INDICES = Kernel(
    name="top_indices",
    plaintext=top_indices,
    compiled=top_indices,
    replicated=_replicated,
    output_shape=_k_indices,
)
