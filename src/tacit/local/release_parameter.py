"""`release` of the estimator: a parameter that says what a device sends, and the method that sends.

The contract has a constructor parameter and a method of one name, and scikit-learn's conventions
want the parameter as an attribute; a descriptor serves both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tacit.noise import SYSTEM_NOISE, NoiseSource

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.local.estimator import DPSoftShapeClassifier
    from tacit.local.release import Release


class _ReleaseName(str):
    """The parameter `release`, which is also the method: `classifier.release(X)`."""

    __slots__ = ("_owner",)
    _owner: DPSoftShapeClassifier

    def __call__(
        self,
        X: Any,
        *,
        ledger: Ledger | None = None,
        subject: str | Sequence[str] | None = None,
        source: NoiseSource = SYSTEM_NOISE,
    ) -> Release:
        return self._owner._release(X, ledger=ledger, subject=subject, source=source)


class ReleaseParameter:
    """Stores the parameter as plain text and hands it out callable."""

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        if "release" not in vars(owner):
            raise AttributeError("release")
        name = _ReleaseName(vars(owner)["release"])
        name._owner = owner
        return name

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)["release"] = value
