"""DP-TimeFL: many devices, one model, reports that nobody can link; imports nothing by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.fleet.estimator import DPTimeFLClassifier

__all__ = ["DPTimeFLClassifier"]


def __getattr__(name: str) -> Any:
    if name == "DPTimeFLClassifier":  # aeon loads only when the estimator is asked for
        from tacit.fleet.estimator import DPTimeFLClassifier

        return DPTimeFLClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
