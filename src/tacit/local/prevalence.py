"""How common each class is in a population, from its randomised labels.

Each device's symbol says little, but the shares of the symbols are a known linear mixture of the
shares that one asks for, so solving the mixture gives an unbiased estimate. This works only if
the mixture can be solved: an accuracy-optimal channel may release fewer symbols than there are
classes, and then the shares are not identifiable from its releases, however many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.local.model import LocalModel
from tacit.local.release import Release
from tacit.local.releases.label import LabelHead

Target = Literal["device_labels", "classes"]

_LARGEST_CONDITION = 1e8


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prevalence:
    """Estimated shares with one confidence interval per class; estimates may leave [0, 1]."""

    classes: tuple[str, ...]
    share: Floats
    low: Floats
    high: Floats
    level: float
    n: int
    of: Target
    assumption: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "classes": list(self.classes),
            "share": self.share.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "level": self.level,
            "n": self.n,
            "of": self.of,
            "assumption": self.assumption,
        }


_ASSUMPTION = {
    "device_labels": "shares of what the devices' classifier says; nothing is assumed about how "
    "often it is right",
    "classes": "shares of the true classes, if the classifier errs in this population as it did "
    "on held-out training series",
}


def estimate_prevalence(
    model: LocalModel, release: Release, *, of: Target = "device_labels", level: float = 0.95
) -> Prevalence:
    """Unbiased shares of the devices' labels, or of the true classes, among the releasing devices.

    Each interval holds its share with probability `level` by the normal approximation (one class
    at a time; it is conditional on the estimated confusion for `of="classes"`). Estimates and
    intervals are not cut to [0, 1], because that would bias them.
    """
    if not 0.0 < level < 1.0:
        raise TacitError(f"level must lie strictly between 0 and 1, got {level!r}.")
    if not isinstance(model.head, LabelHead):
        raise TacitError(
            f"prevalence needs label releases, this model makes {model.head.kind!r} ones; "
            "train with --release label."
        )
    model.posterior(release)  # refuses releases of another model
    if not len(release):
        raise TacitError("there is no release to estimate from; collect at least one.")
    solve = _inverse(_mixture(model.head, of))
    counts = np.bincount(release.values, minlength=len(model.classes))
    frequency = counts / len(release)
    share = solve @ frequency
    variance = np.maximum((solve**2) @ frequency - share**2, 0.0) / len(release)
    reach = NormalDist().inv_cdf(0.5 + level / 2.0) * np.sqrt(variance)
    return Prevalence(
        classes=model.classes,
        share=share,
        low=share - reach,
        high=share + reach,
        level=level,
        n=len(release),
        of=of,
        assumption=_ASSUMPTION[of],
    )


def _mixture(head: LabelHead, of: Target) -> Floats:
    """Column j: the distribution of the released symbol for a unit of kind j."""
    if of == "device_labels":
        return head.channel.T
    if of != "classes":
        raise TacitError(f"of must be 'device_labels' or 'classes', got {of!r}.")
    shares = head.gain.sum(axis=0)
    given_class = head.gain / np.where(shares > 0.0, shares, 1.0)  # (device label, class)
    mixed: Floats = head.channel.T @ given_class
    return mixed


def _inverse(mixture: Floats) -> Floats:
    condition = float(np.linalg.cond(mixture))
    if not (math.isfinite(condition) and condition < _LARGEST_CONDITION):
        released = int(np.count_nonzero(mixture.max(axis=1) > 0.0))
        raise TacitError(
            f"this model's channel releases {released} of {len(mixture)} labels in a way that does "
            "not determine the shares; train with channel='krr' to estimate prevalence."
        )
    return np.asarray(np.linalg.inv(mixture))
