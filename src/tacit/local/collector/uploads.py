"""What a device uploads, checked against the model: what it cannot have released is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import TacitError
from tacit.local.collector.messages import MOST_RELEASES, WINDOW, Refused
from tacit.local.model import LocalModel
from tacit.local.release import SYMBOL_KINDS, Release, release_from_plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One window's name, symbol and vector per release."""

    windows: Sequence[str]
    symbols: Sequence[int]
    vectors: Sequence[bytes] | None


class UploadReader:
    """Reads uploads for one model."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._guarantee = model.guarantee.to_dict()
        channel = getattr(model.head, "channel", None)
        self._possible = None if channel is None else channel.max(axis=0) > 0.0

    def read(self, body: bytes) -> Checked:
        """The releases of one request, or a refusal of all of them."""
        plain = as_object(body, what="releases")
        windows = _windows(plain.get("windows"))
        # Devices need not repeat the guarantee: the model's identity includes it.
        stated = plain.setdefault("guarantee", self._guarantee)
        known = self._model.guarantee if stated == self._guarantee else None
        release = release_from_plain(plain, where="the request", guarantee=known)
        if len(release) != len(windows):
            raise TacitError(
                f"the request has {len(windows)} windows for {len(release)} values; send one each."
            )
        codes = self._model.decide(release)  # refuses other models, kinds, shapes and symbols
        if release.kind not in SYMBOL_KINDS:
            rows = np.ascontiguousarray(release.values, dtype="<f8")
            vectors = [row.tobytes() for row in rows]
            return Checked(windows=windows, symbols=codes.tolist(), vectors=vectors)
        self._check_possible(release)
        return Checked(windows=windows, symbols=release.values.tolist(), vectors=None)

    def _check_possible(self, release: Release) -> None:
        if self._possible is not None and not self._possible[release.values].all():
            wrong = release.values[~self._possible[release.values]][0]
            raise TacitError(f"this model never releases the symbol {wrong}; nothing was counted.")


def as_object(body: bytes, *, what: str) -> dict[str, Any]:
    """The JSON object of a request."""
    try:
        plain = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(422, f"the request must be one JSON object with {what}.") from error
    if not isinstance(plain, dict):
        raise Refused(422, f"the request must be one JSON object with {what}.")
    return plain


def _windows(names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TacitError("the request needs windows: a list with a name for each release.")
    if not 0 < len(names) <= MOST_RELEASES:
        raise TacitError(
            f"{len(names)} releases in one request; send at least 1 and at most {MOST_RELEASES}."
        )
    wrong = next((name for name in names if not WINDOW.fullmatch(name)), None)
    if wrong is not None:
        raise TacitError(
            f"a window's name has 1 to 64 letters, digits, dots, colons, hyphens or underscores, "
            f"got {wrong[:80]!r}."
        )
    if len(set(names)) < len(names):
        raise TacitError("a window is named twice in the request; every window has one release.")
    return names
