"""Everything public about one FedST run: batches, groups, encoding and public features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import TacitError
from tacit.silo.fedst.candidates import (
    Batch,
    Encoding,
    choose_encoding,
    distance_bits_for,
    length_grid,
    plan_batches,
)
from tacit.silo.fedst.classifiers.forest import check_rows
from tacit.silo.fedst.classifiers.linear import check_logistic_rows
from tacit.silo.fedst.public_features import PublicFeatures, count_items, public_features
from tacit.silo.fedst.quality import check_series_count
from tacit.silo.fedst.secure_distances import BLOCK_WINDOWS
from tacit.silo.fedst.settings import Settings

GAINS = ("ig", "ig-basic")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicParameters:
    """Everything public about one run that follows from the plan."""

    settings: Settings
    counts: tuple[int, ...]
    n_classes: int
    encoding: Encoding
    batches: tuple[Batch, ...]
    n_channels: int = 1

    @property
    def in_bulk(self) -> bool:
        """Whether distances are computed over replicated shares, not in the engine."""
        dot = self.settings.distance == "dot"
        return dot and self.encoding.narrow and len(self.counts) > 2

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Which batches are examined in step: as many as a party's memory allows.

        One at a time where a contract of time or a gain asks for it, or where the engine would
        have to compile each group.
        """
        alone = self.settings.time_contract is not None or self.settings.quality in GAINS
        if alone or not self.in_bulk:
            return tuple((i,) for i in range(len(self.batches)))
        groups: list[list[int]] = []
        room = 0
        for i, batch in enumerate(self.batches):
            windows = self.encoding.series_length - batch.length + 1
            size = batch.count * windows * sum(self.counts[1:])
            if not groups or size > room:
                groups.append([])
                room = BLOCK_WINDOWS
            groups[-1].append(i)
            room -= size
        return tuple(tuple(group) for group in groups)

    @property
    def features(self) -> PublicFeatures:
        """The intervals and words of the settings."""
        return public_features(self.settings, self.encoding, n_channels=self.n_channels)

    @property
    def n_items(self) -> int:
        """How many intervals and words there are."""
        length = self.encoding.series_length
        return count_items(self.settings, series_length=length, n_channels=self.n_channels)

    @property
    def n_series(self) -> int:
        """M, the series of all owners."""
        return sum(self.counts)


def public_parameters(
    settings: Settings,
    *,
    counts: Sequence[int],
    n_classes: int,
    series_length: int,
    n_channels: int = 1,
    n_sources: int | None = None,
) -> PublicParameters:
    """Derive batches and encoding; `n_sources` is how many of P0's series feed candidates."""
    check_series_count(sum(counts), quality=settings.quality)
    if settings.classifier == "forest" and settings.scope != "local-transform":
        check_rows(sum(counts))
    if settings.classifier == "logistic" and settings.scope != "local-transform":
        check_logistic_rows(sum(counts))
    if n_classes < 2:
        raise TacitError(f"a classifier needs at least 2 classes, got {n_classes}.")
    encoding = choose_encoding(
        series_length=series_length,
        normalise=settings.normalise,
        value_bound=settings.value_bound,
        distance_bits=distance_bits_for(sum(counts)),
    )
    batches = plan_batches(
        n_candidates=settings.n_candidates if "shapelets" in settings.features else 0,
        lengths=settings.lengths or length_grid(series_length),
        series_length=series_length,
        n_series=counts[0] if n_sources is None else n_sources,
        batch_size=settings.batch_size,
        seed=settings.seed,
        n_channels=n_channels,
    )
    found = PublicParameters(
        settings=settings,
        counts=tuple(counts),
        n_classes=n_classes,
        encoding=encoding,
        batches=batches,
        n_channels=n_channels,
    )
    if not batches and not found.n_items:
        raise TacitError(
            f"series of length {series_length} are too short for features "
            f"{', '.join(settings.features)}; add shapelets."
        )
    return found
