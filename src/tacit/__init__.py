"""Tacit: classify time series that nobody has to show.

Three families, one per trust model: `DPSoftShapeClassifier` (each device randomizes one release),
`FedSTClassifier` (a few owners compute on secret shares) and `DPTimeFLClassifier` (thousands of
devices, shuffled); `DPHybridClassifier` is trained as the last and used as the first. Names load
on first use, so importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit._version import VERSION as __version__

if TYPE_CHECKING:
    from tacit.data import Dataset, load_dataset
    from tacit.errors import TacitError
    from tacit.fleet import DPTimeFLClassifier
    from tacit.guarantee import DpGuarantee, MpcGuarantee, Unprotected
    from tacit.hybrid import DPHybridClassifier
    from tacit.local import DPSoftShapeClassifier
    from tacit.silo import FedSTClassifier

_HOME = {
    "DPHybridClassifier": "tacit.hybrid",
    "DPSoftShapeClassifier": "tacit.local",
    "DPTimeFLClassifier": "tacit.fleet",
    "Dataset": "tacit.data",
    "DpGuarantee": "tacit.guarantee",
    "FedSTClassifier": "tacit.silo",
    "MpcGuarantee": "tacit.guarantee",
    "TacitError": "tacit.errors",
    "Unprotected": "tacit.guarantee",
    "load_dataset": "tacit.data",
}

__all__ = [
    "DPHybridClassifier",
    "DPSoftShapeClassifier",
    "DPTimeFLClassifier",
    "Dataset",
    "DpGuarantee",
    "FedSTClassifier",
    "MpcGuarantee",
    "TacitError",
    "Unprotected",
    "__version__",
    "load_dataset",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
