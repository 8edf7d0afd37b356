"""FedST as one program that every owner runs: search, transform, classifier.

Opens, always to P0 only: the indices of the chosen shapelets, and the classifier (split columns
and leaf labels of the forest, or the ridge or logistic weights); with epsilon, noised. With a time
contract P0 also tells all parties after each batch whether the search ends. Nothing else leaves the
shares.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.silo.fedst.classifiers import forest as trees
from tacit.silo.fedst.classifiers.linear import Logistic, train_logistic
from tacit.silo.fedst.classifiers.ridge import RIDGE, ridge_from_opened
from tacit.silo.fedst.classifiers.standard import (
    LARGEST_MULTIPLIER,
    ROOT_BITS,
    ROOT_FRACTION_BITS,
    STANDARDISE,
    Standardisation,
    standard_from,
)
from tacit.silo.fedst.contract import SearchClock
from tacit.silo.fedst.distances import DISTANCE_BITS
from tacit.silo.fedst.parameters import PublicParameters, public_parameters
from tacit.silo.fedst.privacy import add_noise, leaf_scale
from tacit.silo.fedst.search import (
    OwnSeries,
    SearchResult,
    prepare,
    reveal_best,
    search_candidates,
    share_data,
)
from tacit.silo.fedst.settings import settings_from
from tacit.silo.fedst.transform import own_features, select_features
from tacit.silo.secure.plain_session import run_alone
from tacit.silo.secure.session import Arrays, LocalInputs, ProgramResult, Session, Shared

if TYPE_CHECKING:
    from tacit.silo.plan import Plan


def fedst_program(session: Session, inputs: LocalInputs, plan: Plan) -> ProgramResult:
    """The whole protocol for one owner.

    Parties: all owners of the plan; corruption: one computing party, passive; no dealer.
    Opens: see the module. Not covered: counts, lengths, classes, timing.
    """
    public = public_parameters(
        settings_from(plan.params),
        counts=plan.counts,
        n_classes=len(plan.classes),
        series_length=plan.series_length,
        n_channels=plan.n_channels,
    )
    return run_stages(session, inputs, public)


def run_stages(session: Session, inputs: LocalInputs, public: PublicParameters) -> ProgramResult:
    """Search, transform and classifier under the scope of the settings, with their costs."""
    costs = _StageCosts(session)
    clock = SearchClock(contract=public.settings.time_contract)
    own = prepare(session, inputs, public)
    data = share_data(session, own, public)
    local_search = public.settings.scope == "local-search"
    searched = search_candidates(
        session, own, data, public, with_quality=not local_search, clock=clock
    )
    k = public.settings.n_kept
    if local_search:
        indices = _own_choice(own, searched, public) if own.rank == 0 else None
    else:
        session.progress(searched.n_cut, searched.n_cut, "ranking")
        indices = reveal_best(session, searched, public, k=k)
    costs.note("search")
    own_rows = least = None
    if searched.own is not None and indices is not None:
        own_rows = own_features(own, public, searched, indices)
        least = _least_deviations(public, indices, searched.n_cut)
    if public.settings.scope == "local-transform":
        arrays = _own_classifier(own, own_rows, least, public) if own.rank == 0 else {}
        costs.note("transform")
    else:
        features = select_features(session, own, public, searched, indices)
        costs.note("transform")
        session.progress(searched.n_cut, searched.n_cut, f"training ({public.settings.classifier})")
        anchor = None if own_rows is None else own_rows[:, : own.n_anchor]
        arrays = train(session, features, data.indicators, anchor, public, least=least)
    costs.note("classifier")
    info: dict[str, Any] = {"n_examined": searched.n_examined, **costs.info}
    info["batch_ends"] = list(searched.batch_ends)
    if clock.contract is not None:
        info["contract"] = clock.info
    if own.rank == 0:
        assert indices is not None
        places = _places(own, indices, searched.n_cut, public.encoding.distance_bits)
        return ProgramResult(arrays=arrays | places, info=info)
    return ProgramResult(info=info)


class _StageCosts:
    """Seconds and bytes of each stage, at this owner."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._time, self._bytes, self._rounds, self._compiled = time.monotonic(), 0, 0, 0.0
        names = ("seconds", "bytes", "rounds", "compile_seconds")
        self.info: dict[str, dict[str, float]] = {name: {} for name in names}

    def note(self, stage: str) -> None:
        now, sent, rounds = time.monotonic(), self._session.bytes_sent, self._session.rounds
        self.info["seconds"][stage] = round(now - self._time, 4)
        self.info["bytes"][stage] = sent - self._bytes
        self.info["rounds"][stage] = rounds - self._rounds
        compiled = self._session.compile_seconds
        self.info["compile_seconds"][stage] = round(compiled - self._compiled, 4)
        self._time, self._bytes, self._rounds, self._compiled = now, sent, rounds, compiled


def _places(own: OwnSeries, indices: NDArray[np.intp], n_cut: int, distance_bits: int) -> Arrays:
    """Where the chosen shapelets lie in P0's series, and which item each other one is; else -1."""
    empty = [np.empty(0, dtype=np.intp)]
    lengths = [np.full(len(c.series), c.windows.shape[1]) for c in own.candidates]
    columns = {
        "series": np.concatenate([*(c.series for c in own.candidates), *empty])[:n_cut],
        "channel": np.concatenate([*(c.channel for c in own.candidates), *empty])[:n_cut],
        "start": np.concatenate([*(c.start for c in own.candidates), *empty])[:n_cut],
        "length": np.concatenate([*lengths, *empty])[:n_cut],
    }
    cut = indices < n_cut
    found = {name: np.full(len(indices), -1, dtype=np.int64) for name in (*columns, "item")}
    for name, column in columns.items():
        found[name][cut] = column[indices[cut]]
    found["item"][~cut] = indices[~cut] - n_cut
    return found | {"distance_bits": np.array([distance_bits], dtype=np.int64)}


def _own_choice(
    own: OwnSeries, searched: SearchResult, public: PublicParameters
) -> NDArray[np.intp]:
    """P0's best candidates by its own rows alone, in plaintext at P0."""
    mine, kept = searched.own, own.n_anchor
    assert mine is not None
    local = replace(public, counts=(kept,))
    whole = own.encoded[:kept]
    rows = replace(own, encoded=whole, y=own.y[:kept])

    def rank(session: Session) -> ProgramResult:
        data = share_data(session, rows, local)
        found = search_candidates(session, rows, data, local, with_quality=True)
        best = reveal_best(session, found, local, k=public.settings.n_kept)
        assert best is not None
        return ProgramResult(arrays={"best": best})

    # The same candidates as examined together, even if the contract ended the search early.
    local = replace(local, batches=_examined(public, searched.n_cut))
    local = replace(local, settings=replace(public.settings, time_contract=None, epsilon=None))
    return np.asarray(run_alone(rank).arrays["best"], dtype=np.intp)


def _examined(public: PublicParameters, n: int) -> Any:
    ends = np.cumsum([batch.count for batch in public.batches])
    return public.batches[: int(np.searchsorted(ends, n)) + 1]


def _least_deviations(
    public: PublicParameters, indices: NDArray[np.intp], n_cut: int
) -> Floats | None:
    """The smallest deviations, of roots, for the features chosen; none for shapelets alone."""
    if not public.n_items:
        return None
    least = np.concatenate([np.zeros(n_cut), public.features.least_deviations()])
    found: Floats = least[indices] * 2.0**ROOT_FRACTION_BITS
    return found


def _own_classifier(
    own: OwnSeries, features: Integers | None, least: Floats | None, public: PublicParameters
) -> Arrays:
    """P0's classifier on its own rows alone, in plaintext at P0."""
    assert features is not None
    kept = own.n_anchor
    local = replace(public, counts=(kept,))
    table = features[:, :kept]

    def fit(session: Session) -> ProgramResult:
        rows = replace(own, encoded=own.encoded[:kept], y=own.y[:kept])
        data = share_data(session, rows, local)
        shared = session.share("features", table, owner=0, shape=table.shape)
        arrays = train(session, shared, data.indicators, table, local, least=least)
        return ProgramResult(arrays=arrays)

    return dict(run_alone(fit).arrays)


def train(
    session: Session,
    features: Shared,
    indicators: Shared,
    anchor: Integers | None,
    public: PublicParameters,
    *,
    least: Floats | None = None,
) -> Arrays:
    """The classifier of the settings on features (K, M); its arrays at P0, nothing elsewhere.

    `anchor` are P0's own features, from which thresholds or centres come; None elsewhere. `least`
    are the smallest deviations by which `standard_from` divides them.
    """
    if public.settings.classifier == "forest":
        return _train_forest(session, features, indicators, anchor, public)
    standard = None if anchor is None else standard_from(anchor, least)
    table = _standardised(session, features, standard)
    session.free(features)
    if public.settings.classifier == "ridge":
        return _train_ridge(session, table, indicators, standard, public)
    return _train_logistic(session, table, indicators, standard, public)


def _train_forest(
    session: Session,
    features: Shared,
    indicators: Shared,
    anchor: Integers | None,
    public: PublicParameters,
) -> Arrays:
    settings = public.settings
    shape = trees.choose_shape(
        n_trees=settings.n_trees,
        n_features=features.shape[0],
        n_thresholds=settings.n_thresholds,
        n_rows=public.n_series,
        n_classes=public.n_classes,
        depth=settings.forest_depth(public.n_classes),
        seed=settings.seed,
        bootstrap=settings.epsilon is None,
    )
    limits = None
    if anchor is not None:
        limits = trees.thresholds_from(anchor, n_thresholds=settings.n_thresholds)
    thresholds = session.share(
        "thresholds",
        limits,
        owner=0,
        shape=(shape.n_features, shape.n_thresholds),
        limit=2**DISTANCE_BITS,
    )
    below = session.run(trees.below_thresholds, features, thresholds)
    nodes = session.run(trees.root_nodes, indicators, static=shape.static)
    if settings.epsilon is not None:
        return _private_forest(session, nodes, below, limits, anchor, shape, public)
    chosen = []
    for level in range(shape.depth):
        static: Mapping[str, Any] = {**shape.static, "level": level}
        before = nodes
        columns, nodes = session.run(trees.split_level, nodes, below, static=static)
        session.free(before)
        chosen.append(columns)
        session.progress(level + 1, shape.depth, f"level {level + 1} of {shape.n_trees} trees")
    labels = session.run(trees.leaf_labels, nodes, static={"n_rows": public.n_series})
    opened = [session.reveal(columns, to=0, what="forest splits") for columns in chosen]
    leaves = session.reveal(labels, to=0, what="forest leaf labels")
    if limits is None or leaves is None:
        return {}
    columns_of_levels = [columns for columns in opened if columns is not None]
    return trees.assemble(columns_of_levels, leaves, limits, shape).to_arrays()


def _private_forest(
    session: Session,
    nodes: Shared,
    below: Shared,
    limits: Integers | None,
    anchor: Integers | None,
    shape: trees.ForestShape,
    public: PublicParameters,
) -> Arrays:
    """Leaf labels from noised counts over splits that P0 drew without looking at others' data.

    Guarantee: the labels are leaf_epsilon-differentially private for replacing one series of
    another owner. One series lies in one leaf of each of the n_trees trees, with weight 1, so
    replacing it changes the counts by at most 2 per tree in L1 norm, 2 * n_trees in all. Every
    owner but P0 adds discrete Laplace noise of scale 2 * n_trees / leaf_epsilon to every count
    inside the shares; labels are read from the noised counts.
    Assumes: at least one of these owners draws its noise as agreed and does not tell it to P0.
    Not covered: P0's own series, towards P0; counts per owner and classes, which are public.
    """
    epsilon = public.settings.leaf_epsilon
    assert epsilon is not None
    splits = None
    if limits is not None:
        rng = np.random.default_rng([shape.seed, 3])
        width = shape.features_per_split * shape.n_thresholds
        splits = [
            rng.integers(width, size=(shape.n_trees, 2**level)) for level in range(shape.depth)
        ]
    for level in range(shape.depth):
        columns = session.share(
            "own splits",
            None if splits is None else splits[level],
            owner=0,
            shape=(shape.n_trees, 2**level),
        )
        static: Mapping[str, Any] = {**shape.static, "level": level}
        nodes = session.run(trees.follow_splits, nodes, below, columns, static=static)
    scale = leaf_scale(n_trees=shape.n_trees, epsilon=epsilon)
    counts = add_noise(session, session.run(trees.leaf_counts, nodes), scale=scale)
    labels = session.run(trees.noised_labels, counts)
    leaves = session.reveal(labels, to=0, what="forest leaf labels (noised)")
    if limits is None or splits is None or leaves is None:
        return {}
    return trees.assemble(splits, leaves, limits, shape).to_arrays()


def _standardised(session: Session, features: Shared, standard: Standardisation | None) -> Shared:
    """Standardised roots (K, M) of the features by P0's centres and deviations, in shares."""
    shape = (features.shape[0], 1)
    centre = session.share(
        "centres",
        None if standard is None else standard.centre,
        owner=0,
        shape=shape,
        limit=2**ROOT_BITS,
    )
    multiplier = session.share(
        "multipliers",
        None if standard is None else standard.multiplier,
        owner=0,
        shape=shape,
        limit=LARGEST_MULTIPLIER,
    )
    return session.run_kernel(STANDARDISE, features, centre, multiplier)


def _train_ridge(
    session: Session,
    table: Shared,
    indicators: Shared,
    standard: Standardisation | None,
    public: PublicParameters,
) -> Arrays:
    doublings = public.settings.ridge_doublings(n_series=public.n_series, n_features=table.shape[0])
    weights = session.run_kernel(RIDGE, table, indicators, static={"doublings": doublings})
    opened = session.reveal(weights, to=0, what="ridge weights")
    if standard is None or opened is None:
        return {}
    model = ridge_from_opened(opened, standard, n_series=public.n_series, doublings=doublings)
    return model.to_arrays()


def _train_logistic(
    session: Session,
    table: Shared,
    indicators: Shared,
    standard: Standardisation | None,
    public: PublicParameters,
) -> Arrays:
    static = {"n_steps": public.settings.n_steps, "penalty": public.settings.penalty}
    weights, biases = session.run(train_logistic, table, indicators, static=static)
    opened = session.reveal(weights, to=0, what="logistic weights")
    opened_biases = session.reveal(biases, to=0, what="logistic weights")
    if standard is None or opened is None or opened_biases is None:
        return {}
    return Logistic(weights=opened, biases=opened_biases, standard=standard).to_arrays()
