"""Federated shapelet search: every owner runs this, on its own data, in step with the others.

P0 cuts candidates from its own series; distances, qualities and the K best are computed over
shares; P0 learns the indices of the K best and nobody learns anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.errors import TacitError
from tacit.silo.fedst.candidates import Batch, Candidates, draw_candidates, encode
from tacit.silo.fedst.contract import GO_ON, REHEARSE, STOP, SearchClock
from tacit.silo.fedst.distances import DISTANCES, own_distances, rescale_for
from tacit.silo.fedst.parameters import GAINS, PublicParameters
from tacit.silo.fedst.privacy import add_noise, selection_scale
from tacit.silo.fedst.quality import (
    F_QUALITY,
    gain_in_order,
    gain_keys,
    ig_quality_basic,
    key_bits,
)
from tacit.silo.fedst.secure_distances import NARROW_DISTANCES
from tacit.silo.fedst.settings import Settings
from tacit.silo.fedst.top_k import TOP_INDICES, top_indices
from tacit.silo.fedst.transform import (
    JOIN_COLUMNS,
    JOIN_ROWS,
    are_kept,
    item_blocks,
    share_levels,
)
from tacit.silo.secure.kernels import SORTED_LOW_BITS
from tacit.silo.secure.session import LocalInputs, Session, Shared

GAIN_ROWS = 128  # intervals or words whose series are sorted at once


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSeries:
    """What one owner holds in plaintext: integers, class indices, and at P0 its candidates.

    The integers are (n, channels, N). `n_anchor` of P0's first rows feed candidates, thresholds and
    centres; it is all of them, except in the pooled plaintext twin of a federation, where P0 holds
    everybody's rows.
    """

    rank: int
    encoded: Integers
    y: NDArray[np.intp]
    n_anchor: int
    candidates: list[Candidates] = field(default_factory=list)


def prepare(session: Session, inputs: LocalInputs, public: PublicParameters) -> OwnSeries:
    """Encode this owner's series and, at P0, draw the candidates with its private seed."""
    if inputs.X.ndim != 3 or inputs.X.shape[1] != public.n_channels:
        raise TacitError(
            f"the plan has series of {public.n_channels} channel(s), got an array of shape "
            f"{inputs.X.shape}; give (series, channels, length)."
        )
    encoded = encode(inputs.X, public.encoding)
    n_anchor = int(inputs.private.get("n_anchor", len(encoded)))
    candidates = []
    if session.rank == 0:
        rng = np.random.default_rng(inputs.private.get("seed"))
        candidates = draw_candidates(encoded[:n_anchor], public.batches, rng=rng)
    return OwnSeries(
        rank=session.rank, encoded=encoded, y=inputs.y, n_anchor=n_anchor, candidates=candidates
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedData:
    """Shares of everybody's data: series and squares of all owners but P0, labels of all."""

    series: Shared | None
    squares: Shared | None
    indicators: Shared


def share_data(session: Session, own: OwnSeries, public: PublicParameters) -> SharedData:
    """Every owner shares its labels as indicating vectors, and all but P0 share their series."""
    limit, n_classes = public.encoding.limit, public.n_classes
    series, squares, indicators = [], [], []
    for owner, count in enumerate(public.counts):
        mine = owner == own.rank
        one_hot = np.eye(n_classes, dtype=np.int64)[own.y] if mine else None
        indicators.append(
            session.share("labels", one_hot, owner=owner, shape=(count, n_classes), limit=1)
        )
        if owner == 0:
            continue
        shape = (count, public.n_channels, public.encoding.series_length)
        values = own.encoded if mine else None
        series.append(session.share("series", values, owner=owner, shape=shape, limit=limit))
        values = own.encoded**2 if mine else None
        squares.append(session.share("squares", values, owner=owner, shape=shape, limit=limit**2))
    return SharedData(
        series=_merged(session, series),
        squares=_merged(session, squares),
        indicators=_merged(session, indicators),  # type: ignore[arg-type]  # there is always P0
    )


def _merged(session: Session, blocks: Sequence[Shared]) -> Shared | None:
    """The blocks joined, and themselves forgotten."""
    if len(blocks) < 2:
        return blocks[0] if blocks else None
    joined = session.run_kernel(JOIN_ROWS, *blocks)
    session.free(*blocks)
    return joined


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Distances (n, M) of the candidates examined, in shares, and what P0 knows about them.

    The blocks hold the shapelets first, then intervals and words, if these are kept.
    """

    n_examined: int
    n_cut: int  # of these, shapelets
    blocks: tuple[Shared, ...]
    qualities: Shared | None
    own: Integers | None  # P0's own rows of the shapelets
    batch_ends: tuple[float, ...]  # seconds since the start, by this owner's clock


def search_candidates(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    *,
    with_quality: bool,
    clock: SearchClock | None = None,
) -> SearchResult:
    """Distances, and qualities, of one batch after another until done or out of time.

    The series in shares are forgotten after the last batch.
    """
    clock = clock or SearchClock(contract=public.settings.time_contract)
    # Intervals and words first: what they take is then known to the contract.
    items = _examine_items(session, own, data, public, with_quality)
    clock.n_examined += public.n_items
    distances, gains, own_rows = [], [], [np.empty((0, public.counts[0]), dtype=np.int64)]
    examined = 0
    total = sum(batch.count for batch in public.batches)
    for number, group in enumerate(public.groups):
        clock.begin_batch()
        block, mine = _group_distances(session, own, data, public, group)
        distances.append(block)
        own_rows += [] if mine is None else [mine]
        if with_quality and public.settings.quality in GAINS:
            gains.append(_batch_gain(session, own, data, public, block, number=group[0]))
        examined += block.shape[0]
        clock.end_batch(block.shape[0])
        left = clock.seconds_left(batches_left=len(public.groups) - number - 1)
        message = f"{examined} candidates, about {left:.0f} s left"
        session.progress(examined, total, message, seconds_left=round(left, 1))
        answer = _verdict(session, clock) if examined < total else GO_ON
        while answer == REHEARSE:
            if with_quality:
                _rehearse_ranking(session, data, public, distances, gains, items.qualities)
            clock.note_rehearsal()
            answer = _verdict(session, clock)
        if answer == STOP:
            break
    session.free(*(s for s in (data.series, data.squares) if s is not None))
    qualities = None
    if with_quality:
        qualities = _qualities(session, data, public, distances, gains, items.qualities)
    return SearchResult(
        n_examined=examined + public.n_items,
        n_cut=examined,
        blocks=(*distances, *items.blocks),
        qualities=qualities,
        own=np.concatenate(own_rows) if own.rank == 0 else None,
        batch_ends=tuple(clock.ends),
    )


def _rehearse_ranking(
    session: Session,
    data: SharedData,
    public: PublicParameters,
    blocks: Sequence[Shared],
    gains: Sequence[Shared],
    of_items: Sequence[Shared],
) -> None:
    """Rank what was examined so far, to know how long ranking takes here; opens nothing."""
    qualities = _qualities(session, data, public, blocks, gains, of_items)
    k = min(public.settings.n_kept, qualities.shape[0])
    session.free(session.run_kernel(TOP_INDICES, qualities, static={"k": k}))


def _group_distances(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    group: Sequence[int],
) -> tuple[Shared, Integers | None]:
    """Distances (b, M) of one group: P0's own rows in plaintext, the others' over shares."""
    batches = [public.batches[i] for i in group]
    cuts = mine = None
    if own.rank == 0:
        mine = np.concatenate([_own_rows(own, public, i) for i in group])
        cuts = np.concatenate([own.candidates[i].windows.reshape(-1) for i in group])
    shape = (sum(batch.count for batch in batches), public.counts[0])
    limit = 2**public.encoding.distance_bits
    block = session.share("own distances", mine, owner=0, shape=shape, limit=limit)
    if data.series is None or data.squares is None:
        return block, mine
    n_values = sum(batch.count * batch.length for batch in batches)
    cut = session.share("candidates", cuts, owner=0, shape=(n_values,), limit=public.encoding.limit)
    static = _static_of(batches, public)
    operands = (data.series, data.squares, cut)
    if public.settings.distance == "dot" and public.encoding.narrow:
        remote = session.run_kernel(NARROW_DISTANCES, *operands, static=static)
    else:
        route = DISTANCES[public.settings.distance]
        remote = session.run(route, *operands, static=static)
    joined = session.run_kernel(JOIN_COLUMNS, block, remote)
    session.free(block, cut, remote)
    return joined, mine


def _own_rows(own: OwnSeries, public: PublicParameters, number: int) -> Integers:
    """Distances (b, n) of one batch to P0's own series, each in its own channel."""
    batch, windows = public.batches[number], own.candidates[number].windows
    rescale, found, start = rescale_for(batch.length, public.encoding), [], 0
    for channel, count in batch.runs:
        cut = windows[start : start + count]
        found.append(own_distances(own.encoded[:, channel], cut, rescale))
        start += count
    return np.concatenate(found)


def _static_of(batches: Sequence[Batch], public: PublicParameters) -> dict[str, tuple[int, ...]]:
    """The public numbers of each run of candidates with one length and one channel."""
    runs = [(batch.length, channel, n) for batch in batches for channel, n in batch.runs]
    rescales = [rescale_for(length, public.encoding).static for length, _, _ in runs]
    return {
        "counts": tuple(n for _, _, n in runs),
        "lengths": tuple(length for length, _, _ in runs),
        "channels": tuple(channel for _, channel, _ in runs),
        "caps": tuple(rescale["cap"] for rescale in rescales),
        "shifts": tuple(rescale["shift"] for rescale in rescales),
    }


class _Items(NamedTuple):
    """The qualities of intervals and words, if asked for, and their levels, if these are kept."""

    blocks: list[Shared]
    qualities: list[Shared]


def _examine_items(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    with_quality: bool,
) -> _Items:
    """Share the levels of the intervals and words block by block, and score each block."""
    found = _Items([], [])
    kept = are_kept(public)
    gains = with_quality and public.settings.quality in GAINS
    if not (kept or with_quality):
        return found
    for rows in item_blocks(public, at_most=GAIN_ROWS if gains else None):
        block = share_levels(session, own, public, rows)
        if gains:
            # An item belongs to no class: each takes its turn, publicly.
            turns = np.array(rows) % public.n_classes
            found.qualities.append(_block_gain(session, own, data, public, block, turns))
        elif with_quality:
            found.qualities.append(session.run_kernel(F_QUALITY, block, data.indicators))
        if kept:
            found.blocks.append(block)
        else:
            session.free(block)
    return found


def _batch_gain(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    block: Shared,
    *,
    number: int,
) -> Shared:
    """Information gains of one batch, against the class of each candidate's own series."""
    codes = own.y[own.candidates[number].series] if own.rank == 0 else None
    return _block_gain(session, own, data, public, block, codes)


def _block_gain(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    block: Shared,
    codes: NDArray[np.intp] | None,
) -> Shared:
    """Information gains of candidates against the classes that P0 names for them."""
    classes = None
    if own.rank == 0 and codes is not None:
        classes = np.eye(public.n_classes, dtype=np.int64)[codes]
    shape = (block.shape[0], public.n_classes)
    shared = session.share("candidate classes", classes, owner=0, shape=shape, limit=1)
    static = {"tie_seed": public.settings.seed}
    operands = (block, data.indicators, shared)
    gain: Shared
    if public.settings.quality == "ig-basic":
        gain = session.run(ig_quality_basic, *operands, static=static)
    else:
        keys, ours = session.run(gain_keys, *operands, static=static)
        n_bits = {"n_bits": key_bits(public.n_series)}
        ordered = session.run_kernel(SORTED_LOW_BITS, keys, static=n_bits)
        gain = session.run(gain_in_order, ordered, ours)
        session.free(keys, ours, ordered)
    session.free(shared)
    return gain


def _qualities(
    session: Session,
    data: SharedData,
    public: PublicParameters,
    blocks: Sequence[Shared],
    gains: Sequence[Shared],
    of_items: Sequence[Shared],
) -> Shared:
    """Of the shapelets, then of the items; gains are known already."""
    found = list(gains)
    if blocks and public.settings.quality not in GAINS:
        found.append(session.run_kernel(F_QUALITY, *blocks, data.indicators))
    found += of_items
    return found[0] if len(found) == 1 else session.run_kernel(JOIN_ROWS, *found)


def _verdict(session: Session, clock: SearchClock) -> str:
    """P0's clock decides and tells the others."""
    if clock.contract is None:
        return GO_ON
    verdict = clock.verdict() if session.rank == 0 else None
    return str(session.announce(verdict, what="end of the search"))


def reveal_best(
    session: Session, searched: SearchResult, public: PublicParameters, *, k: int
) -> NDArray[np.intp] | None:
    """The indices of the k best candidates, best first, to P0 only.

    Guarantee, with epsilon: their order is selection_epsilon-differentially private for replacing
    one series of another owner. No gain changes by more than `gain_sensitivity`, and the order of
    the k largest of integers with discrete Laplace noise of scale 2 k sensitivity / epsilon hides
    such a change. Assumes: as `add_noise`, and gains within GAIN_ERROR of the exact ones.
    """
    assert searched.qualities is not None
    qualities, k = searched.qualities, min(k, searched.n_examined)
    epsilon = public.settings.selection_epsilon
    what = _what_is_chosen(public.settings)
    if epsilon is None:
        best = session.run_kernel(TOP_INDICES, qualities, static={"k": k})
    else:
        scale = selection_scale(n_series=public.n_series, n_chosen=k, epsilon=epsilon)
        qualities = add_noise(session, qualities, scale=scale)
        what = "shapelet indices (noised)"
        best = session.run(top_indices, qualities, static={"k": k, "noised": True})
    indices = session.reveal(best, to=0, what=what)
    return None if indices is None else indices.astype(np.intp)


def _what_is_chosen(settings: Settings) -> str:
    return "shapelet indices" if settings.features == ("shapelets",) else "feature indices"
