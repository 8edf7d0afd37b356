"""Samples as they come: cut into windows, each window one release, each release debited first.

budget = DayBudget.open("budget.json", epsilon_per_day=8.0)
stream = device.stream(budget, person="anna", stride=75)
for samples in sensor:
    for release in stream.push(samples):
        send(release)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.errors import BudgetExceeded, TacitError, check_at_least
from tacit.local.day_budget import DayBudget
from tacit.local.model import LocalModel
from tacit.local.release import Release
from tacit.noise import SYSTEM_NOISE, NoiseSource


@dataclass(slots=True, eq=False)
class Stream:
    """A model, a person, and the samples that no complete window has used up.

    Guarantee: each release has the model's guarantee for its window, and the releases of one
    person and day together cost at most the budget's epsilon, overlapping windows included: each
    one is debited in full, before its noise is drawn.
    Not covered: that a window was refused can be seen by whoever sees that nothing was sent.
    """

    model: LocalModel
    budget: DayBudget
    person: str
    stride: int
    source: NoiseSource = SYSTEM_NOISE
    n_windows: int = 0  # complete windows so far, released or not
    refused: int = 0  # of these, not released
    _kept: Floats = field(init=False)
    _skip: int = 0  # samples still to come that no window needs

    def __post_init__(self) -> None:
        check_at_least(self.stride, 1, name="stride")
        self._kept = np.zeros((self.model.n_channels, 0))

    def push(self, samples: Any) -> list[Release]:
        """Take samples, (k,) or (channels, k), and return a release per window they complete.

        As many windows are released as the day's budget allows, the oldest first; the others are
        dropped, and so are windows that cannot be released (a missing value, a flat sensor). If
        windows are complete but none can be released, this raises why, and goes on with the next
        push. Samples of the wrong shape are refused and change nothing.
        """
        windows = self._cut(self._checked(samples))
        releases: list[Release] = []
        first: TacitError | None = None
        for window in windows:
            self.n_windows += 1
            try:
                # A spent budget stays spent: later windows need not be encoded.
                if isinstance(first, BudgetExceeded):
                    raise first
                releases.append(self._release(window))
            except TacitError as error:
                self.refused += 1
                first = error if first is None or isinstance(error, BudgetExceeded) else first
        if first is not None and not releases:
            raise first
        return releases

    def _release(self, window: Floats) -> Release:
        cube = self.model.check_series(window[None], where="the window")
        summary = self.model.head.summarise(cube)
        self.budget.debit(self.person, epsilon=self.model.guarantee.epsilon)
        return self.model.randomize(summary, source=self.source)

    def _checked(self, samples: Any) -> Floats:
        array = np.asarray(samples)
        if array.dtype.kind not in "fiub":
            raise TacitError(
                f"samples hold {array.dtype} values, not numbers; convert every value to a number."
            )
        channels = self.model.n_channels
        rows = array[None] if array.ndim == 1 and channels == 1 else array
        if rows.ndim != 2 or len(rows) != channels:
            raise TacitError(
                f"samples have shape {array.shape}, the model reads {channels} channels; give "
                f"({channels}, k) values, one row per channel."
            )
        return rows.astype(np.float64)

    def _cut(self, samples: Floats) -> list[Floats]:
        """The windows that are complete now; what later ones need stays."""
        dropped = min(self._skip, samples.shape[1])
        self._skip -= dropped
        self._kept = np.concatenate([self._kept, samples[:, dropped:]], axis=1)
        length, windows = self.model.n_timepoints, []
        start = 0
        while start + length <= self._kept.shape[1]:
            windows.append(self._kept[:, start : start + length].copy())
            start += self.stride
        self._skip += max(0, start - self._kept.shape[1])
        self._kept = self._kept[:, start:].copy()
        return windows
