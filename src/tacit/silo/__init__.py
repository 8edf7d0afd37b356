"""Shapelet classifiers for several owners who never show their series: FedST over real MPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.silo.estimator import FedSTClassifier

__all__ = ["FedSTClassifier"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the commands and the party processes need no estimator.
    if name == "FedSTClassifier":
        from tacit.silo.estimator import FedSTClassifier

        return FedSTClassifier
    raise AttributeError(f"module 'tacit.silo' has no attribute {name!r}")
