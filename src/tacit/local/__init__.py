"""The local family: one device protects the series that it releases (DP-SoftShape).

Names load on first use: a device imports `tacit.local.device` and gets NumPy alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.local.day_budget import DayBudget
    from tacit.local.device import Device
    from tacit.local.estimator import DPSoftShapeClassifier
    from tacit.local.prevalence import Prevalence, estimate_prevalence
    from tacit.local.release import Release, load_release, load_releases
    from tacit.local.releases.channel import accuracy_ceiling

_HOME = {
    "DPSoftShapeClassifier": "tacit.local.estimator",
    "DayBudget": "tacit.local.day_budget",
    "Device": "tacit.local.device",
    "Prevalence": "tacit.local.prevalence",
    "Release": "tacit.local.release",
    "accuracy_ceiling": "tacit.local.releases.channel",
    "estimate_prevalence": "tacit.local.prevalence",
    "load_release": "tacit.local.release",
    "load_releases": "tacit.local.release",
}

__all__ = [
    "DPSoftShapeClassifier",
    "DayBudget",
    "Device",
    "Prevalence",
    "Release",
    "accuracy_ceiling",
    "estimate_prevalence",
    "load_release",
    "load_releases",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tacit.local' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
