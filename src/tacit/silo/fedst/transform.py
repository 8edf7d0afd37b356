"""From the distances of all candidates to the table of the K features chosen, in shares.

Each step is a kernel: over replicated shares nothing has to be compiled for it. Intervals and words
that together would take too much memory are sent twice: scored block by block and forgotten, then
sent again for the choice of the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.silo.fedst.parameters import PublicParameters
from tacit.silo.secure.kernels import Kernel, Shape
from tacit.silo.secure.replicated import Pair, Replicated
from tacit.silo.secure.session import Session, Shared
from tacit.silo.secure.wrapping import wrapping_matmul

if TYPE_CHECKING:
    from jax import Array

    from tacit.silo.fedst.search import OwnSeries, SearchResult


# Levels of so many items times series stay in a party's memory: 134 MB of shares. So many are sent
# at once: joining the owners' parts takes six times their shares for a moment.
KEPT_VALUES = 2**23
BLOCK_VALUES = 2**22


def join_rows(*blocks: Array) -> Array:
    """One array from the blocks of all batches."""
    import jax.numpy as jnp

    return jnp.concatenate(blocks, axis=0)


def join_columns(*blocks: Array) -> Array:
    """One table from the columns of all owners, in the order of their ranks."""
    import jax.numpy as jnp

    return jnp.concatenate(blocks, axis=1)


def plus(x: Array, y: Array) -> Array:
    """The sum of two tables."""
    return x + y


def select_rows(choice: Array, *blocks: Array) -> Array:
    """The features (K, M): rows of all blocks (n, M) picked by P0's secret 0/1 matrix (K, n).

    Nobody but P0 sees which rows, and no distance is computed twice. One multiplication round;
    opens nothing.
    """
    return choice @ join_rows(*blocks)


def choice_matrix(indices: NDArray[np.intp], *, n: int) -> Integers:
    """P0's 0/1 matrix for `select_rows`."""
    choice = np.zeros((len(indices), n), dtype=np.int64)
    choice[np.arange(len(indices)), indices] = 1
    return choice


def _rows_of_shares(party: Replicated, *blocks: Pair) -> Pair:
    return np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])


def _columns_of_shares(party: Replicated, *blocks: Pair) -> Pair:
    first, second = (np.concatenate([b[i] for b in blocks], axis=1) for i in (0, 1))
    return first, second


def _sum_of_shares(party: Replicated, x: Pair, y: Pair) -> Pair:
    return x[0] + y[0], x[1] + y[1]


def _selected_shares(party: Replicated, choice: Pair, *blocks: Pair) -> Pair:
    """One sum of products over all blocks, so that they need not be joined in memory."""
    total = np.zeros((choice[0].shape[0], blocks[0][0].shape[1]), dtype=np.uint64)
    start = 0
    for first, second in blocks:
        part = [c[:, start : start + len(first)] for c in choice]
        total += wrapping_matmul(part[0], first + second) + wrapping_matmul(part[1], first)
        start += len(first)
    return party.mask_sum(total)


def _rows_shape(*blocks: Shape) -> Shape:
    return sum(block[0] for block in blocks), *blocks[0][1:]


def _columns_shape(*blocks: Shape) -> Shape:
    return blocks[0][0], sum(block[1] for block in blocks)


def _like_the_first(x: Shape, y: Shape) -> Shape:
    return x


def _selected_shape(choice: Shape, *blocks: Shape) -> Shape:
    return choice[0], blocks[0][1]


JOIN_ROWS = Kernel(
    name="join_rows",
    plaintext=join_rows,
    compiled=join_rows,
    replicated=_rows_of_shares,
    output_shape=_rows_shape,
)
JOIN_COLUMNS = Kernel(
    name="join_columns",
    plaintext=join_columns,
    compiled=join_columns,
    replicated=_columns_of_shares,
    output_shape=_columns_shape,
)
PLUS = Kernel(
    name="plus",
    plaintext=plus,
    compiled=plus,
    replicated=_sum_of_shares,
    output_shape=_like_the_first,
)
SELECT_ROWS = Kernel(
    name="select_rows",
    plaintext=select_rows,
    compiled=select_rows,
    replicated=_selected_shares,
    output_shape=_selected_shape,
)


def item_blocks(public: PublicParameters, *, at_most: int | None = None) -> Iterator[range]:
    """Which items are sent together: as many as fit, and no more than asked."""
    height = max(1, BLOCK_VALUES // public.n_series)
    height = height if at_most is None else min(height, at_most)
    for start in range(0, public.n_items, height):
        yield range(start, min(start + height, public.n_items))


def are_kept(public: PublicParameters) -> bool:
    """Whether the levels of all items stay until the best are chosen."""
    return public.n_items * public.n_series <= KEPT_VALUES


def share_levels(session: Session, own: OwnSeries, public: PublicParameters, rows: range) -> Shared:
    """Levels (items, M) of some items, which each owner computes at home and shares."""
    features = public.features.chosen(rows)
    mine = features.levels(own.encoded)
    blocks = [
        session.share(
            "features",
            mine if owner == own.rank else None,
            owner=owner,
            shape=(len(rows), count),
            limit=2**public.encoding.distance_bits,
        )
        for owner, count in enumerate(public.counts)
    ]
    if len(blocks) == 1:
        return blocks[0]
    joined = session.run_kernel(JOIN_COLUMNS, *blocks)
    session.free(*blocks)
    return joined


def own_features(
    own: OwnSeries, public: PublicParameters, searched: SearchResult, indices: NDArray[np.intp]
) -> Integers:
    """P0's own rows (K, n) of the features chosen."""
    assert searched.own is not None
    found = np.empty((len(indices), len(own.encoded)), dtype=np.int64)
    cut = indices < searched.n_cut
    found[cut] = searched.own[indices[cut]]
    if not cut.all():
        items = public.features.chosen(indices[~cut] - searched.n_cut)
        found[~cut] = items.levels(own.encoded)
    return found


def select_features(
    session: Session,
    own: OwnSeries,
    public: PublicParameters,
    searched: SearchResult,
    indices: NDArray[np.intp] | None,
) -> Shared:
    """The features (K, M) that P0 alone knows it has chosen; the distances are forgotten after."""
    k = min(public.settings.n_kept, searched.n_examined)
    choice = None if indices is None else choice_matrix(indices, n=searched.n_examined)

    def select(start: int, *blocks: Shared) -> Shared:
        stop = start + sum(block.shape[0] for block in blocks)
        mine = None if choice is None else choice[:, start:stop]
        shared = session.share("choice", mine, owner=0, shape=(k, stop - start), limit=1)
        found = session.run_kernel(SELECT_ROWS, shared, *blocks)
        session.free(shared, *blocks)
        return found

    parts = [select(0, *searched.blocks)] if searched.blocks else []
    for rows in () if are_kept(public) else item_blocks(public):
        block = share_levels(session, own, public, rows)
        parts.append(select(searched.n_cut + rows.start, block))
        if len(parts) == 2:
            total = session.run_kernel(PLUS, *parts)
            session.free(*parts)
            parts = [total]
    return parts[0]
