"""What readers hand over: recordings to be cut into windows, or batches of finished series.

Those of one import must be alike in channels, units and rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.importers.options import ImportOptions, same_rate
from tacit.errors import TacitError

_VOLTS = {"v": 1.0, "mv": 1e-3, "uv": 1e-6, "µv": 1e-6, "μv": 1e-6, "nv": 1e-9}
_SAME_STEP = 0.05  # clocks of unknown unit may differ by this much


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One channel: `read(start, stop)` gives its samples, NaN where they are missing.

    Samples are read when needed, because a night of them is larger than what is made of it.
    """

    name: str
    rate: float | None
    n_samples: int
    read: Callable[[int, int], Floats] = field(repr=False)
    unit: str = ""


def signal_of(values: NDArray[Any], *, name: str, rate: float | None, unit: str = "") -> Signal:
    """A channel whose samples are at hand."""

    def read(start: int, stop: int) -> Floats:
        return values[start:stop].astype(np.float64)

    return Signal(name=name, rate=rate, n_samples=len(values), read=read, unit=unit)


@dataclass(frozen=True, slots=True, order=True)
class Stretch:
    """A label and the time it applies to, in seconds (in samples where no rate is known)."""

    start: float
    stop: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Channels over the same time, of one person, with the stretches that have a label.

    `excluded` are stretches left out on purpose, with the reason as their label; `points` are
    moments at which one window each is to be cut; `dropped` counts what else the reader had to
    leave out, by reason; `step` is the usual step of a clock whose unit is not known.
    """

    where: str
    signals: tuple[Signal, ...]
    subject: str | None = None
    stretches: tuple[Stretch, ...] = ()
    excluded: tuple[Stretch, ...] = ()
    points: tuple[tuple[float, str], ...] = ()
    part: str = ""
    dropped: Counter[str] = field(default_factory=Counter)
    step: float | None = None

    @property
    def rate(self) -> float | None:
        """The rate of its channels, which `choose_channels` makes one."""
        return self.signals[0].rate

    @property
    def seconds(self) -> float:
        """How long it is (in samples where no rate is known)."""
        return min(signal.n_samples / (signal.rate or 1.0) for signal in self.signals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Series that are already cut: X (n, channels, length), a label and a person for each."""

    where: str
    X: NDArray[Any]
    channel_names: tuple[str, ...]
    y: NDArray[np.str_] | None = None
    subject: NDArray[np.str_] | None = None
    rate: float | None = None
    part: str = ""
    dropped: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A source as a reader understood it; `notes` are pairs of a topic and what was understood."""

    format: str
    items: Iterable[Recording | Batch]
    n_items: int
    notes: tuple[tuple[str, str], ...] = ()
    dtype: type[np.floating[Any]] = np.float64


def choose_channels(
    signals: Sequence[Signal], wanted: Sequence[str], *, rate: float | None, where: str
) -> tuple[Signal, ...]:
    """The channels asked for, in that order, or all; they must share a rate unless one is asked."""
    chosen = [_find(signals, name, where) for name in wanted] if wanted else list(signals)
    if not chosen:
        raise TacitError(f"{where} has no channels; check that it is the file with the signals.")
    rates = {f"{signal.rate:g}" for signal in chosen if signal.rate is not None}
    if len(rates) > 1 and rate is None:
        told = "; ".join(
            f"{value} Hz: {', '.join(s.name for s in chosen if f'{s.rate:g}' == value)}"
            for value in sorted(rates, key=float, reverse=True)
        )
        raise TacitError(
            f"{where} has channels of different rates ({told}); choose those of one rate with "
            "--channels, or give one rate for all with --rate HZ."
        )
    return tuple(chosen)


def _find(signals: Sequence[Signal], name: str, where: str) -> Signal:
    lower = name.lower()
    exact = [signal for signal in signals if signal.name.lower() == lower]
    found = exact or [signal for signal in signals if lower in signal.name.lower()]
    if len(found) == 1:
        return found[0]
    names = ", ".join(signal.name for signal in found or signals)
    raise TacitError(
        f"{where} has {len(found)} channels that match {name!r}; --channels takes names out of: "
        f"{names}."
        if found
        else f"{where} has no channel {name!r}; --channels takes names out of: {names}."
    )


def unique_names(names: Sequence[str]) -> list[str]:
    """The names, those that come twice with a number behind them."""
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result


class Alike:
    """What the first recording of an import has, and the others must have too."""

    def __init__(self) -> None:
        self.channel_names: tuple[str, ...] = ()
        self.rate: float | None = None
        self._units: tuple[str, ...] = ()
        self._step: float | None = None
        self._first = ""

    def taken(self, item: Recording | Batch, options: ImportOptions) -> Recording | Batch:
        """A recording in the units of the first one; refuse it if it differs otherwise."""
        units: tuple[str, ...] = ()
        step = None
        if isinstance(item, Batch):
            names = item.channel_names
        else:
            names = tuple(signal.name for signal in item.signals)
            units = tuple(signal.unit.strip() for signal in item.signals)
            step = item.step
        rate = options.rate or item.rate
        if not self._first:
            self._first, self.channel_names, self.rate = item.where, names, rate
            self._units, self._step = units, step
        if names != self.channel_names:
            raise TacitError(
                f"{item.where} has the channels {', '.join(names)} and {self._first} has "
                f"{', '.join(self.channel_names)}; choose channels that all files have with "
                "--channels."
            )
        if not same_rate(rate, self.rate):
            raise TacitError(
                f"{item.where} has {_hertz(rate)} and {self._first} has {_hertz(self.rate)}; "
                "bring all files to one rate with --rate HZ."
            )
        if rate is None:
            self._check_step(item.where, step)
        return item if isinstance(item, Batch) else self._in_units(item, units)

    def _check_step(self, where: str, step: float | None) -> None:
        if step is None or self._step is None:
            return
        if not math.isclose(step, self._step, rel_tol=_SAME_STEP):
            raise TacitError(
                f"{where} has steps in time of {step:g} and {self._first} of {self._step:g}, in an "
                "unknown unit; say it with --time-unit, and bring all files to one rate with "
                "--rate HZ."
            )

    def _in_units(self, item: Recording, units: tuple[str, ...]) -> Recording:
        if not self._units or units == self._units:
            return item
        signals = tuple(
            self._converted(signal, unit, wanted, item.where)
            for signal, unit, wanted in zip(item.signals, units, self._units, strict=True)
        )
        return replace(item, signals=signals)

    def _converted(self, signal: Signal, unit: str, wanted: str, where: str) -> Signal:
        if unit.lower() == wanted.lower():
            return signal
        if unit.lower() not in _VOLTS or wanted.lower() not in _VOLTS:
            raise TacitError(
                f"{where} has {signal.name!r} in {unit or 'no unit'} and {self._first} in "
                f"{wanted or 'no unit'}; leave the channel out with --channels, or export the "
                "files in one unit."
            )
        factor = _VOLTS[unit.lower()] / _VOLTS[wanted.lower()]

        def read(start: int, stop: int) -> Floats:
            return signal.read(start, stop) * factor

        return replace(signal, read=read, unit=wanted)


def _hertz(rate: float | None) -> str:
    return "an unknown rate" if rate is None else f"{rate:g} Hz"
