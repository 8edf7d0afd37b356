"""The public settings of one FedST run: what a plan's `params` may hold, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tacit.errors import (
    TacitError,
    check_at_least,
    check_choice,
    check_epsilon,
    check_flag,
    check_positive,
    is_number,
)
from tacit.silo.fedst.classifiers.forest import default_depth
from tacit.silo.fedst.classifiers.ridge import MOST_DOUBLINGS, default_doublings
from tacit.silo.fedst.distances import DISTANCES
from tacit.silo.fedst.quality import QUALITIES

FEDERATED_SCOPES = ("federated", "local-search", "local-transform")
PLAINTEXT_SCOPES = ("local", "global")
SCOPES = FEDERATED_SCOPES + PLAINTEXT_SCOPES
FEATURES = ("shapelets", "intervals", "dictionary")
CLASSIFIERS = ("forest", "logistic", "ridge")
_CHOICES = {
    "quality": QUALITIES,
    "distance": tuple(DISTANCES),
    "classifier": CLASSIFIERS,
    "scope": SCOPES,
}
MOST_INTERVALS = 5000  # each gives seven statistics, all of them shared
MOST_NOISED = 2**14  # candidates: beyond, noised keys would pass the padding of `top_indices`
_COUNTS = (
    "n_candidates",
    "n_shapelets",
    "n_trees",
    "n_thresholds",
    "n_steps",
    "batch_size",
    "n_intervals",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all parties agree on; nothing here depends on anybody's series.

    quality: "f" (ANOVA F), "ig" (information gain by sorting), "ig-basic" (the basic protocol).
    distance: "dot" (convolution) or "elementwise" (the basic protocol); equal results.
    lengths: candidate lengths; None for the grid from min(3, N/4) to N.
    time_contract: seconds for the whole search, sharing and ranking included, to the nearest batch.
    doublings: of the steps of the ridge classifier; None for a rule from the public counts.
    epsilon: differential privacy of what P0 learns; only where it can be proved, see `check`.
    features: kinds of candidates: "shapelets", "intervals", "dictionary"; the best of all are kept.
    n_intervals: public random intervals, with seven statistics each.
    seed: of the public choices (order of batches, intervals, row weights, features of a split).
    """

    quality: str = "f"
    distance: str = "dot"
    classifier: str = "ridge"
    scope: str = "federated"
    n_candidates: int = 500
    n_shapelets: int = 200
    lengths: tuple[int, ...] | None = None
    time_contract: float | None = None
    normalise: bool = True
    value_bound: float | None = None
    n_trees: int = 40
    depth: int | None = None
    n_thresholds: int = 8
    n_steps: int = 300
    doublings: int | None = None
    penalty: float = 1e-3
    batch_size: int = 32
    features: tuple[str, ...] = ("shapelets",)
    n_intervals: int = 150
    epsilon: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            check_choice(getattr(self, name), known, name=name)
        _check_features(self.features)
        for name in _COUNTS:
            check_at_least(getattr(self, name), 1, name=name)
        if self.n_intervals > MOST_INTERVALS:
            raise TacitError(
                f"n_intervals must lie between 1 and {MOST_INTERVALS}, got {self.n_intervals}."
            )
        check_at_least(self.seed, 0, name="seed")
        if self.depth is not None and not 1 <= check_at_least(self.depth, 1, name="depth") <= 10:
            raise TacitError(f"depth must lie between 1 and 10, got {self.depth!r}.")
        self._check_optional()
        if self.doublings is not None:
            check_at_least(self.doublings, 1, name="doublings")
            if self.doublings > MOST_DOUBLINGS:
                raise TacitError(
                    f"doublings must lie between 1 and {MOST_DOUBLINGS}, got {self.doublings!r}."
                )
        if not (is_number(self.penalty) and 0.0 <= self.penalty < math.inf):
            raise TacitError(f"penalty must be finite and at least 0, got {self.penalty!r}.")
        if self.epsilon is not None:
            self._check_private()

    def _check_optional(self) -> None:
        check_flag(self.normalise, name="normalise")
        if self.time_contract is not None:
            advice = "give seconds, or leave it out to examine all candidates"
            check_positive(self.time_contract, name="time_contract", advice=advice)
        if self.value_bound is not None:
            advice = "give the largest absolute value that any party may hold"
            check_positive(self.value_bound, name="value_bound", advice=advice)
        for length in self.lengths or ():
            check_at_least(length, 1, name="lengths")

    def _check_private(self) -> None:
        check_epsilon(self.epsilon)  # type: ignore[arg-type]  # not None, see the caller
        if self.n_candidates > MOST_NOISED:
            raise TacitError(
                f"with epsilon at most {MOST_NOISED} candidates fit the shared arithmetic, got "
                f"{self.n_candidates}; examine fewer."
            )
        if self.features != ("shapelets",):
            raise TacitError(
                f"epsilon is offered for shapelets only, got features {', '.join(self.features)}."
            )
        searching = self.scope == "federated" and self.quality == "ig"
        if self.classifier != "forest" or not (searching or self.scope == "local-search"):
            raise TacitError(
                "epsilon is offered for classifier 'forest' with scope 'local-search', or with "
                f"scope 'federated' and quality 'ig', got {self.classifier!r}, {self.scope!r}, "
                f"{self.quality!r}: for the others no bound on what one series changes is proved."
            )

    @property
    def selection_epsilon(self) -> float | None:
        """The part of epsilon for the order of the shapelets: half, if others' data decide it."""
        return None if self.epsilon is None or self.scope == "local-search" else self.epsilon / 2

    @property
    def leaf_epsilon(self) -> float | None:
        """The part of epsilon for the leaf labels: the rest."""
        if self.epsilon is None:
            return None
        return self.epsilon - (self.selection_epsilon or 0.0)

    @property
    def n_kept(self) -> int:
        """How many candidates are kept in all: half as many more where several kinds compete."""
        return self.n_shapelets if len(self.features) == 1 else self.n_shapelets * 3 // 2

    def forest_depth(self, n_classes: int) -> int:
        """The depth of the trees."""
        return default_depth(n_classes) if self.depth is None else self.depth

    def ridge_doublings(self, *, n_series: int, n_features: int) -> int:
        """How often the ridge classifier doubles its steps."""
        if self.doublings is not None:
            return self.doublings
        return default_doublings(n_series=n_series, n_features=n_features)

    def to_params(self) -> dict[str, Any]:
        """Plain values for a plan."""
        plain = asdict(self)
        plain["lengths"] = None if self.lengths is None else list(self.lengths)
        plain["features"] = list(self.features)
        return plain


def settings_from(params: Mapping[str, Any]) -> Settings:
    """Read a plan's `params`; refuse unknown names and wrong types."""
    known = {f.name: f.type for f in fields(Settings)}
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise TacitError(
            f"unknown setting {', '.join(unknown)}; choose from {', '.join(sorted(known))}."
        )
    values = dict(params)
    if values.get("lengths") is not None:
        values["lengths"] = tuple(check_at_least(v, 1, name="lengths") for v in values["lengths"])
    if "features" in values:
        values["features"] = feature_kinds(values["features"])
    for name, value in values.items():
        if isinstance(value, float) and math.isnan(value):
            raise TacitError(f"{name} is not a number; give a value or leave it out.")
    return Settings(**values)


def feature_kinds(asked: Any) -> tuple[str, ...]:
    """The kinds named in one text, by commas or "all", or in a list."""
    names = tuple(asked.split(",")) if isinstance(asked, str) else as_tuple(asked, name="features")
    if names == ("all",):
        return FEATURES
    _check_features(names)
    return tuple(kind for kind in FEATURES if kind in names)


def as_tuple(asked: Any, *, name: str) -> tuple[Any, ...]:
    """A list or tuple as a tuple, else a refusal."""
    if not isinstance(asked, (list, tuple)):
        raise TacitError(f"{name} must be a list, got {asked!r}.")
    return tuple(asked)


def _check_features(names: tuple[Any, ...]) -> None:
    if not names or len(set(names)) != len(names) or not set(names) <= set(FEATURES):
        raise TacitError(
            f"features must be some of {', '.join(FEATURES)}, or all, got {list(names)!r}."
        )
