"""The public plan of a fleet run: what every client and the analyser must agree on.

A plan holds only plain values, survives a JSON round trip, and fixes everything that decides
privacy before the first report leaves. Values that affect only utility (`Training`) are kept
apart from those that decide the guarantee.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon, check_positive
from tacit.features.feature_map import FEATURE_KINDS, FEATURE_VERSION, PUBLIC_SEED, FeatureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Utility only. The defaults were chosen on WISDM and HHAR, which are public data.

    `local_ridge` regularises a client's own solution, `balance` is how far its rare classes are
    lifted: 0 weights all series alike, 1 all classes. A solution shorter than `clip_norm` counts
    for less; with 0 all clients count alike.
    """

    local_ridge: float = 0.1
    balance: float = 0.5
    server_rate: float = 1.0
    momentum: float = 0.0
    averaged_share: float = 0.5
    clip_norm: float = 0.3

    def __post_init__(self) -> None:
        check_positive(self.local_ridge, name="local_ridge")
        check_positive(self.server_rate, name="server_rate")
        if not 0.0 <= self.clip_norm < math.inf:
            raise TacitError(f"clip_norm must be finite and at least 0, got {self.clip_norm!r}.")
        if not 0.0 <= self.balance <= 1.0:
            raise TacitError(f"balance must lie in [0, 1], got {self.balance!r}.")
        if not 0.0 <= self.momentum < 1.0:
            raise TacitError(f"momentum must lie in [0, 1), got {self.momentum!r}.")
        if not 0.0 < self.averaged_share <= 1.0:
            raise TacitError(f"averaged_share must lie in (0, 1], got {self.averaged_share!r}.")


class Settings:
    """What decides the privacy of one mechanism's reports; `mechanism` is its name in files."""

    __slots__ = ()
    mechanism: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnitSettings(Settings):
    """`local_epsilon` is what every report spends."""

    mechanism: ClassVar[str] = "privunit"
    local_epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.local_epsilon, name="local_epsilon")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedSettings(Settings):
    """Quantisation and noise of one client's report.

    `clip_units` bounds the L2 norm of the integer vector, `local_sigma` is the discrete Gaussian
    that every client adds.
    """

    mechanism: ClassVar[str] = "distributed"
    clip_units: int
    local_sigma: float

    def __post_init__(self) -> None:
        check_at_least(self.clip_units, 1, name="clip_units")
        check_positive(self.local_sigma, name="local_sigma")


_SETTINGS = {kind.mechanism: kind for kind in (PrivUnitSettings, DistributedSettings)}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """One run. A round is released only with at least `n_min` reports.

    `client_rounds` is how many of the `n_rounds` rounds any one client takes part in: the number
    that composes for it. `epsilon` and `delta` are the client-level totals promised for the run.
    """

    classes: tuple[str, ...]
    n_channels: int
    length: int
    n_rounds: int
    client_rounds: int
    n_min: int
    epsilon: float
    delta: float
    settings: Settings
    training: Training = Training()
    n_kernels: int = 256
    feature_seed: int = PUBLIC_SEED
    feature_version: int = FEATURE_VERSION
    feature_kind: FeatureKind = "fine"

    def __post_init__(self) -> None:
        check_at_least(len(self.classes), 2, name="the number of classes")
        for name in ("n_channels", "length", "n_rounds", "client_rounds", "n_min", "n_kernels"):
            check_at_least(getattr(self, name), 1, name=name)
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if self.feature_version != FEATURE_VERSION:
            raise TacitError(
                f"this plan is for version {self.feature_version} of the public features and this "
                f"is version {FEATURE_VERSION}; make a new plan and train again."
            )
        if self.feature_kind not in FEATURE_KINDS:
            raise TacitError(
                f"unknown public features {self.feature_kind!r}; use {' or '.join(FEATURE_KINDS)}."
            )
        if self.client_rounds > self.n_rounds:
            raise TacitError(
                f"a client cannot take part in {self.client_rounds} of {self.n_rounds} rounds."
            )

    @property
    def mechanism(self) -> str:
        """The name of the mechanism that the settings belong to."""
        return self.settings.mechanism

    @property
    def n_features(self) -> int:
        """Columns of the public features, the constant included."""
        from tacit.features.feature_map import public_features

        return public_features(
            n_channels=self.n_channels,
            length=self.length,
            n_kernels=self.n_kernels,
            seed=self.feature_seed,
            kind=self.feature_kind,
        ).n_features

    @property
    def dimension(self) -> int:
        """Length of one update: class contrasts times features."""
        return (len(self.classes) - 1) * self.n_features

    def with_training(self, training: Training) -> FleetPlan:
        """The same guarantee with other utility settings."""
        return replace(self, training=training)

    def to_json(self) -> str:
        """One JSON object with sorted keys; equal plans have equal text."""
        plain = asdict(self)
        plain["mechanism"] = self.mechanism
        return json.dumps(plain, sort_keys=True, allow_nan=False)


def plan_from_json(text: str) -> FleetPlan:
    """Read back what `to_json` wrote; refuse anything else."""
    try:
        plain: dict[str, Any] = json.loads(text)
        plain.setdefault("feature_version", 1)  # earlier plans did not name it
        settings = _read_settings(plain.pop("mechanism"), plain.pop("settings"))
        training = Training(**{"clip_norm": 0.0, **plain.pop("training")})  # as in earlier plans
        classes = tuple(str(label) for label in plain.pop("classes"))
        return FleetPlan(classes=classes, settings=settings, training=training, **plain)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise TacitError(f"not a fleet plan: {error!r}; write it with to_json.") from error


# Plans of split-and-mix named these; how a report is shared is no part of its noise.
_RETIRED = frozenset({"modulus_bits", "block_length", "n_shares", "security_bits"})


def _read_settings(mechanism: str, plain: dict[str, Any]) -> Settings:
    kept = {name: value for name, value in plain.items() if name not in _RETIRED}
    return _SETTINGS[mechanism](**kept)
