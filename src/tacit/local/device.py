"""The device runtime: load one file, release a series, debit a ledger first. NumPy alone.

    device = Device.load("gunpoint.tacit")
    with Ledger.open("device.db", per_subject_epsilon=1.0) as ledger:
        release = device.release(series, ledger=ledger)

A release is debited to its subject before the noise is drawn. By default the subject is a hash of
the content of the series, so that releasing the same recording again is added to its account, and
refused past its budget. The hash stays in the ledger on the device; someone who gets that file and
guesses a recording exactly can tell that it was released. Give `subject` where a person or a day is
the better unit: near-copies of one recording have different hashes and are accounted apart.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger
from tacit.local.day_budget import DayBudget
from tacit.local.model import LocalModel, load_model
from tacit.local.release import Release
from tacit.local.stream import Stream
from tacit.noise import SYSTEM_NOISE, NoiseSource

if TYPE_CHECKING:
    from tacit.local.releases.place import Places

_KEPT_BYTES = 2**23  # more than the largest array of a release of a few hundred steps


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A loaded model that makes releases; it keeps no series and no state, a `stream` does."""

    model: LocalModel

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Device:
        """Read a bundle made by `export_device`; refuse one that is damaged or foreign."""
        model = load_model(path)
        _keep_freed_memory()
        return cls(model)

    @property
    def guarantee(self) -> DpGuarantee:
        """What one release of one series reveals at most."""
        return self.model.guarantee

    def release(
        self,
        series: Any,
        *,
        ledger: Ledger | None = None,
        subject: str | Sequence[str] | None = None,
        source: NoiseSource = SYSTEM_NOISE,
    ) -> Release:
        """Release one series (T,) or (channels, T), or several (n, channels, T).

        Guarantee: `guarantee` for each row, in total. With a ledger every row is debited first,
        all or none; when that is refused, or the series cannot be released, nothing leaves.
        Assumes, composes, not covered: see `guarantee`; repeated releases add up.
        """
        return release_rows(
            self.model,
            as_rows(series, self.model),
            where="the series",
            ledger=ledger,
            subject=subject,
            source=source,
        )

    def stream(
        self,
        budget: DayBudget,
        *,
        person: str,
        stride: int | None = None,
        source: NoiseSource = SYSTEM_NOISE,
    ) -> Stream:
        """Take samples as they come: `push` them, and send the releases that it returns.

        Windows have the model's length and begin every `stride` samples, by default one after the
        other. Every release is debited to the person's day first (see `tacit.local.day_budget`).
        """
        length = self.model.n_timepoints
        return Stream(self.model, budget, person, length if stride is None else stride, source)

    def classify(self, release: Release) -> list[str]:
        """What the server makes of a release; needs no series."""
        return self.model.labels(release)

    def places(self, release: Release) -> Places:
        """What the server makes of a `place` release: where the evidence lies."""
        return self.model.places(release)


def release_rows(
    model: LocalModel,
    X: Any,
    *,
    where: str,
    ledger: Ledger | None = None,
    subject: str | Sequence[str] | None = None,
    source: NoiseSource = SYSTEM_NOISE,
) -> Release:
    """Release every row of X, (n, T) or (n, channels, T); `where` names X in a refusal.

    Here, and only here on the way of a release, series are checked.
    """
    if not (ledger is None or hasattr(ledger, "debit_many")):
        raise TacitError(f"ledger must be an open ledger, got {ledger!r}; give Ledger.open(path).")
    cube = model.check_series(X, where=where)
    summary = model.head.summarise(cube)
    if ledger is not None:
        ledger.debit_many(
            subjects_of(cube, subject),
            guarantee=model.guarantee,
            purpose=f"{model.head.kind} release, model {model.identity}",
            subject_kind="series",
        )
    return model.randomize(summary, source=source)


def _keep_freed_memory() -> None:
    """Let the allocator keep the pages of one release for the next.

    The C library of Linux gives freed memory back above a threshold, which rises to the largest
    block that was ever freed; a release would otherwise spend a third of its time on getting the
    same pages again. The block is never written to, so it costs no memory.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)


def as_rows(series: Any, model: LocalModel) -> Any:
    """One series as a batch of one; batches as they are."""
    array = np.asarray(series)
    if array.ndim == 1 or (array.ndim == 2 and array.shape[0] == model.n_channels > 1):
        return array.reshape(1, -1, array.shape[-1])
    return array


def subjects_of(cube: Floats, subject: str | Sequence[str] | None) -> list[str]:
    """The account of each row: given, or a hash of the row's content."""
    if subject is None:
        return [content_subject(row) for row in cube]
    names = [subject] * len(cube) if isinstance(subject, str) else [str(name) for name in subject]
    if len(names) != len(cube):
        raise TacitError(
            f"{len(names)} subjects for {len(cube)} series; give one name, or one per series."
        )
    return names


def content_subject(row: Floats) -> str:
    """A name for a recording that is the same whenever its values are the same."""
    values = np.ascontiguousarray(row, dtype="<f8") + 0.0  # -0.0 and 0.0 are one value
    digest = hashlib.sha256(repr(values.shape).encode())
    digest.update(values.tobytes())
    return f"sha256:{digest.hexdigest()[:32]}"
