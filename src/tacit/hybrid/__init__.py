"""Trained by a fleet, used on devices: nobody shows a series, in training or in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.hybrid.estimator import DPHybridClassifier

__all__ = ["DPHybridClassifier"]


def __getattr__(name: str) -> Any:
    if name == "DPHybridClassifier":  # aeon loads only when the estimator is asked for
        from tacit.hybrid.estimator import DPHybridClassifier

        return DPHybridClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
