"""Federated shapelet search: every owner runs this, on its own data, in step with the others.

P0 cuts candidates from its own series; distances, qualities and the K best are computed over
shares; P0 learns the indices of the K best and nobody learns anything else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.errors import TacitError
from tacit.silo.fedst.candidates import (
    Candidates,
    draw_candidates,
    encode,
)
from tacit.silo.fedst.distances import (
    DISTANCES,
    own_distances,
    rescale_for,
)
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
from tacit.silo.fedst.transform import JOIN_COLUMNS, JOIN_ROWS
from tacit.silo.secure.kernels import SORTED_LOW_BITS
from tacit.silo.secure.session import LocalInputs, Session, Shared

_GAIN_ROWS = 128  # intervals or words whose series are sorted at once


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSeries:
    """What one owner holds in plaintext: integers, class indices, and at P0 its candidates.

    `n_anchor` of P0's first rows feed candidates, thresholds and centres; it is all of them,
    except in the pooled plaintext twin of a federation, where P0 holds everybody's rows.
    """

    rank: int
    encoded: Integers
    y: NDArray[np.intp]
    n_anchor: int
    candidates: list[Candidates] = field(default_factory=list)


def prepare(session: Session, inputs: LocalInputs, public: PublicParameters) -> OwnSeries:
    """Encode this owner's series and, at P0, draw the candidates with its private seed."""
    if inputs.X.ndim != 3 or inputs.X.shape[1] != 1:
        raise TacitError(
            f"the secure search takes one channel, got series of shape {inputs.X.shape[1:]}; "
            "choose a channel."
        )
    encoded = encode(inputs.X[:, 0, :], public.encoding)
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
        shape = (count, public.encoding.series_length)
        values = own.encoded if mine else None
        series.append(session.share("series", values, owner=owner, shape=shape, limit=limit))
        values = own.encoded**2 if mine else None
        squares.append(session.share("squares", values, owner=owner, shape=shape, limit=limit**2))
    return SharedData(
        series=_joined(session, series),
        squares=_joined(session, squares),
        indicators=_joined(session, indicators),  # type: ignore[arg-type]  # there is always P0
    )


def _joined(session: Session, blocks: Sequence[Shared]) -> Shared | None:
    if not blocks:
        return None
    return blocks[0] if len(blocks) == 1 else session.run_kernel(JOIN_ROWS, *blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Distances (n, M) of the candidates examined, in shares, and what P0 knows about them."""

    n_examined: int  # the shapelets first, then intervals and words
    n_cut: int  # of these, shapelets
    distances: Shared
    qualities: Shared | None
    own: Integers | None
    batch_ends: tuple[float, ...]  # seconds since the start, by this owner's clock


def search_candidates(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    *,
    with_quality: bool,
) -> SearchResult:
    """Distances, and qualities, of one batch after another until done or out of time."""
    start = time.monotonic()
    distances, gains, own_rows, ends = [], [], [], []
    examined = 0
    total = sum(batch.count for batch in public.batches)
    for number, group in enumerate(public.groups):
        block, mine = _group_distances(session, own, data, public, group)
        distances.append(block)
        own_rows.append(mine)
        if with_quality and public.settings.quality in GAINS:
            gains.append(_batch_gain(session, own, data, public, block, number=group[0]))
        examined += sum(public.batches[i].count for i in group)
        spent = time.monotonic() - start
        ends.append(round(spent, 4))
        left = spent / examined * (total - examined)
        contract = public.settings.time_contract
        if contract is not None:
            left = min(left, max(0.0, contract - spent))
        session.progress(examined, total, f"{examined} candidates, about {left:.0f} s left")
        if examined < total and _out_of_time(session, public, spent=spent, batches=number + 1):
            break
    for block, mine, gain in _public_blocks(session, own, data, public, with_quality):
        distances.append(block)
        own_rows.append(mine)
        gains += [] if gain is None else [gain]
    joined = _joined(session, distances)
    assert joined is not None  # there is at least one batch, or one item
    qualities = _qualities(session, data, public, joined, gains) if with_quality else None
    rows = np.concatenate([r for r in own_rows if r is not None]) if own.rank == 0 else None
    return SearchResult(
        n_examined=joined.shape[0],
        n_cut=examined,
        distances=joined,
        qualities=qualities,
        own=rows,
        batch_ends=tuple(ends),
    )


def _group_distances(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    group: Sequence[int],
) -> tuple[Shared, Integers | None]:
    """Distances (b, M) of one group: P0's own rows in plaintext, the others' over shares."""
    batches = [public.batches[i] for i in group]
    rescales = [rescale_for(batch.length, public.encoding) for batch in batches]
    cuts = mine = None
    if own.rank == 0:
        windows = [own.candidates[i].windows for i in group]
        found = [own_distances(own.encoded, w, r) for w, r in zip(windows, rescales, strict=True)]
        mine, cuts = np.concatenate(found), np.concatenate([w.reshape(-1) for w in windows])
    shape = (sum(batch.count for batch in batches), public.counts[0])
    limit = 2**public.encoding.distance_bits
    block = session.share("own distances", mine, owner=0, shape=shape, limit=limit)
    if data.series is None or data.squares is None:
        return block, mine
    n_values = sum(batch.count * batch.length for batch in batches)
    cut = session.share("candidates", cuts, owner=0, shape=(n_values,), limit=public.encoding.limit)
    static = {
        "counts": tuple(batch.count for batch in batches),
        "lengths": tuple(batch.length for batch in batches),
        "caps": tuple(rescale.static["cap"] for rescale in rescales),
        "shifts": tuple(rescale.static["shift"] for rescale in rescales),
    }
    operands = (data.series, data.squares, cut)
    if public.settings.distance == "dot" and public.encoding.narrow:
        remote = session.run_kernel(NARROW_DISTANCES, *operands, static=static)
    else:
        route = DISTANCES[public.settings.distance]
        remote = session.run(route, *operands, static=static)
    joined = session.run_kernel(JOIN_COLUMNS, block, remote)
    session.free(block, cut, remote)
    return joined, mine


def _public_blocks(
    session: Session,
    own: OwnSeries,
    data: SharedData,
    public: PublicParameters,
    with_quality: bool,
) -> Iterator[tuple[Shared, Integers | None, Shared | None]]:
    """Levels (items, M) of the intervals and words, which each owner computes and shares."""
    items = public.features.items
    gains = with_quality and public.settings.quality in GAINS
    height = _GAIN_ROWS if gains else max(1, len(items))
    for start in range(0, len(items), height):
        features = public.features.chosen(range(start, min(start + height, len(items))))
        mine = features.levels(own.encoded)
        blocks = [
            session.share(
                "features",
                mine if owner == own.rank else None,
                owner=owner,
                shape=(len(features.items), count),
                limit=2**public.encoding.distance_bits,
            )
            for owner, count in enumerate(public.counts)
        ]
        block = blocks[0] if len(blocks) == 1 else session.run_kernel(JOIN_COLUMNS, *blocks)
        gain = None
        if gains:
            # An item belongs to no class: each takes its turn, publicly.
            turns = (start + np.arange(len(features.items))) % public.n_classes
            gain = _block_gain(session, own, data, public, block, turns)
        yield block, mine if own.rank == 0 else None, gain


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
    distances: Shared,
    gains: Sequence[Shared],
) -> Shared:
    if gains:
        joined = _joined(session, gains)
        assert joined is not None
        return joined
    return session.run_kernel(F_QUALITY, distances, data.indicators)


def _out_of_time(session: Session, public: PublicParameters, *, spent: float, batches: int) -> bool:
    """P0's clock decides and tells the others; the boundary nearest to the contract wins."""
    contract = public.settings.time_contract
    if contract is None:
        return False
    stop = spent + 0.5 * spent / batches > contract
    answer = session.announce(stop if session.rank == 0 else None, what="end of the search")
    return bool(answer)


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
