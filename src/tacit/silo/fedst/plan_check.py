"""Whether a plan can be computed at all, from what is public, before anything is shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import TacitError
from tacit.silo.fedst.parameters import GAINS, PublicParameters, public_parameters
from tacit.silo.fedst.search import GAIN_ROWS
from tacit.silo.fedst.secure_distances import BLOCK_WINDOWS
from tacit.silo.fedst.settings import settings_from
from tacit.silo.fedst.transform import BLOCK_VALUES, are_kept
from tacit.silo.plan import Plan

# What an engine takes before any data, and more where something has to be compiled.
BASE_BYTES = {"ABY3": 250 * 10**6, "CHEETAH": 1300 * 10**6}
COMPILING = 180 * 10**6
# Bytes for each value, from measured runs (see the tests), rounded up: an estimate never below what
# was measured. Of the values of all series, in the steps that compare them; of a distance; of a
# level of an interval or word that stays, and while its block is joined; of a window in a block of
# tournaments; of a product of the elementwise route, and of the engine's own dot products.
SERIES, DISTANCE, KEPT_LEVEL, JOINED_LEVEL, WINDOW, PRODUCT = 96, 40, 32, 144, 192, 48
# Of a key in the sorting route's gain, of a pair of series in the basic one's.
GAIN_KEY, GAIN_PAIR = 14_000, 200
# Of a feature of a series in the classifiers, what their blocks take beside it, and a series in a
# leaf or at a threshold of a forest.
FEATURE, BLOCK_FEATURE, FOREST_PLACE = 200, 300, 100


def check_params(params: Mapping[str, Any]) -> None:
    """Refuse settings that no federation can run; they are known before the parties meet."""
    try:
        settings_from(params)
    except TypeError as error:
        raise TacitError(f"a setting of the plan has the wrong type: {error}.") from error


def check_plan(plan: Plan) -> None:
    """Refuse sizes that the shared arithmetic cannot hold; every party says the same."""
    _public(plan)


def _public(plan: Plan) -> PublicParameters:
    return public_parameters(
        settings_from(plan.params),
        counts=plan.counts,
        n_classes=len(plan.classes),
        series_length=plan.series_length,
        n_channels=plan.n_channels,
    )


def memory_of(plan: Plan) -> int:
    """About how many bytes an engine takes for this plan: what it holds, and the largest step.

    An estimate by the figures above, never below what was measured.
    """
    public = _public(plan)
    n_series, others = public.n_series, public.n_series - plan.counts[0]
    n_cut = sum(batch.count for batch in public.batches)
    held = DISTANCE * n_cut * n_series
    if are_kept(public):
        held += KEPT_LEVEL * public.n_items * n_series
    series = SERIES * others * plan.series_length * plan.n_channels
    steps = (
        series + max((_distances(public, group) for group in public.groups), default=0),
        JOINED_LEVEL * min(public.n_items * n_series, BLOCK_VALUES),
        _quality(public),
    )
    # Distances and levels are forgotten before a classifier is trained.
    largest = max(held + max(steps), _classifier(public, n_examined=n_cut + public.n_items))
    compiled = not public.in_bulk or public.settings.quality in GAINS
    compiled |= public.settings.classifier != "ridge"
    return BASE_BYTES[plan.protocol] + compiled * COMPILING + largest


def _distances(public: PublicParameters, group: Sequence[int]) -> int:
    """Of the batches of one group, compared with the series of all owners but P0."""
    rows, length = public.n_series - public.counts[0], public.encoding.series_length
    batches = [public.batches[i] for i in group]
    windows = [length - batch.length + 1 for batch in batches]
    per_row = sum(batch.count * n for batch, n in zip(batches, windows, strict=True))
    if public.in_bulk:
        return WINDOW * min(rows, max(1, BLOCK_WINDOWS // per_row)) * per_row
    # The engine lays out every window, and for the elementwise route every product of it.
    wide = public.settings.distance == "elementwise"
    products = (
        n * batch.length * (batch.count if wide else 1) + n * batch.count
        for batch, n in zip(batches, windows, strict=True)
    )
    return PRODUCT * rows * sum(products)


def _quality(public: PublicParameters) -> int:
    n_series, quality = public.n_series, public.settings.quality
    if quality not in GAINS:
        return 0  # its sums take less than the tournaments
    at_once = max((batch.count for batch in public.batches), default=0)
    at_once = max(at_once, min(GAIN_ROWS, public.n_items))
    if quality == "ig-basic":
        return GAIN_PAIR * at_once * n_series**2
    return GAIN_KEY * at_once * n_series + 32 * n_series**2


def _classifier(public: PublicParameters, *, n_examined: int) -> int:
    settings = public.settings
    if settings.scope == "local-transform":
        return 0
    features = min(settings.n_kept, n_examined) * public.n_series
    needed = FEATURE * features
    if settings.classifier == "forest":
        leaves = settings.n_trees * 2 ** settings.forest_depth(public.n_classes)
        places = leaves * public.n_series + settings.n_thresholds * features
        needed += FOREST_PLACE * places
    else:
        needed += BLOCK_FEATURE * min(features, 2**20)
    return needed
