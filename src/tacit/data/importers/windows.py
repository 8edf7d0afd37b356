"""Cut recordings into windows of one length, and say why a window was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import Batch, Recording, Signal
from tacit.data.importers.resample import fill_gaps, filled, resampled
from tacit.data.validate import HUGE
from tacit.errors import TacitError

MISSING = "missing values"
NO_LABEL = "no label"
MIXED = "no label for more than half of the window"
IMPURE = "more than one label"
SHORT = "labelled stretch shorter than a window"
SHORT_RECORDING = "recording shorter than a window"
PAST_END = "window runs past the recording"
_BLOCK = 1 << 18  # samples of a channel to hold at a time
_NEARLY = 1e-6  # of a sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Some windows of one recording: X (n, channels, length) with a label each ("": none)."""

    X: Floats
    y: NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class _Plan:
    starts: Integers
    labels: NDArray[np.str_]


def cut_recording(
    recording: Recording, options: ImportOptions, dropped: Counter[str]
) -> Iterator[Windows]:
    """The windows of a recording, a few at a time; `dropped` counts the others by reason."""
    dropped.update(recording.dropped)
    signals = _prepared(recording, options)
    rate = signals[0].rate
    n_samples = min(signal.n_samples for signal in signals)
    if options.window is None:
        raise TacitError(
            f"{recording.where} is a recording of {n_samples} samples, and nothing says how to cut "
            "it; pass --window, for example --window 30s or --window 256."
        )
    length = options.window.samples(rate, name="--window")
    stride = options.stride.samples(rate, name="--stride") if options.stride else length
    if n_samples < length:
        dropped[SHORT_RECORDING] += 1
        return
    plan = _planned(recording, options, dropped, (n_samples, length, stride))
    for part in _blocks(plan.starts, length):
        starts = plan.starts[part]
        X = _read(signals, starts, length, recording.where)
        whole = np.isfinite(X).all(axis=(1, 2))
        dropped[MISSING] += int(np.count_nonzero(~whole))
        if whole.any():
            labels = plan.labels[part]
            yield Windows(X=X if whole.all() else X[whole], y=labels[whole])


def _prepared(recording: Recording, options: ImportOptions) -> list[Signal]:
    signals = []
    for signal in recording.signals:
        if options.missing == "interpolate":
            signal = filled(signal, max_gap=max_gap(options, signal.rate))
        signals.append(resampled(signal, options.rate, where=recording.where))
    return signals


def max_gap(options: ImportOptions, rate: float | None) -> int:
    """The longest gap to fill, in samples; a tenth of a window unless said otherwise."""
    if options.max_gap is not None:
        return options.max_gap.samples(rate, name="--max-gap")
    if options.window is None:
        raise TacitError(
            "--missing interpolate needs to know the longest gap to fill; pass --max-gap."
        )
    return max(1, options.window.samples(rate, name="--window") // 10)


def _planned(
    recording: Recording,
    options: ImportOptions,
    dropped: Counter[str],
    sizes: tuple[int, int, int],
) -> _Plan:
    n_samples, length, stride = sizes
    clock = options.rate or recording.rate or 1.0
    if options.unlabelled:
        starts = np.arange(0, n_samples - length + 1, stride)
        return _Plan(starts, np.full(len(starts), "", dtype=np.str_))
    if recording.points:
        return _around_points(recording, options, dropped, (n_samples, length), clock)
    if options.cut == "grid":
        return _on_grid(recording, options, dropped, sizes, clock)
    return _along_stretches(recording, dropped, sizes, clock)


def _along_stretches(
    recording: Recording, dropped: Counter[str], sizes: tuple[int, int, int], clock: float
) -> _Plan:
    """Windows side by side inside every labelled stretch, so that none has two labels."""
    n_samples, length, stride = sizes
    starts: list[Integers] = []
    labels: list[NDArray[np.str_]] = []
    for stretch in recording.stretches:
        first = int(np.ceil(stretch.start * clock - _NEARLY))
        last = min(n_samples, int(np.floor(stretch.stop * clock + _NEARLY)))
        if last - first < length:
            dropped[SHORT] += 1
            continue
        found = np.arange(first, last - length + 1, stride)
        starts.append(found)
        labels.append(np.full(len(found), stretch.label))
    _count_unused(recording, dropped, n_samples / clock, length / clock)
    if not starts:
        return _Plan(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.str_))
    return _Plan(np.concatenate(starts), np.concatenate(labels))


def _count_unused(
    recording: Recording, dropped: Counter[str], seconds: float, window: float
) -> None:
    """Whole windows in stretches left out, by their reason, and between all stretches."""
    reached = 0.0
    for stretch in sorted((*recording.stretches, *recording.excluded)):
        dropped[NO_LABEL] += _fits(stretch.start - reached, window)
        reached = max(reached, stretch.stop)
    dropped[NO_LABEL] += _fits(seconds - reached, window)
    for stretch in recording.excluded:
        dropped[stretch.label] += _fits(min(stretch.stop, seconds) - stretch.start, window)


def _fits(seconds: float, window: float) -> int:
    return max(0, int(seconds / window + _NEARLY))


def _on_grid(
    recording: Recording,
    options: ImportOptions,
    dropped: Counter[str],
    sizes: tuple[int, int, int],
    clock: float,
) -> _Plan:
    """Windows at even distances from the start, each with the label that covers it."""
    n_samples, length, stride = sizes
    starts = np.arange(0, n_samples - length + 1, stride)
    classes = sorted({stretch.label for stretch in recording.stretches})
    if not classes:
        dropped[NO_LABEL] += len(starts)
        return _Plan(starts[:0], np.empty(0, dtype=np.str_))
    cover = np.stack([_coverage(recording, label, starts, length, clock) for label in classes])
    total, best = cover.sum(axis=0), cover.max(axis=0)
    enough = length - 0.5 if options.window_label == "pure" else length / 2 + _NEARLY
    keep = best >= enough
    empty = total < 0.5
    dropped[NO_LABEL] += int(np.count_nonzero(empty))
    reason = IMPURE if options.window_label == "pure" else MIXED
    dropped[reason] += int(np.count_nonzero(~keep & ~empty))
    return _Plan(starts[keep], np.array(classes)[cover.argmax(axis=0)[keep]])


def _coverage(
    recording: Recording, label: str, starts: Integers, length: int, clock: float
) -> Floats:
    """How many samples of each window lie in stretches of a label."""
    edges, covered = [0.0], [0.0]
    for stretch in recording.stretches:
        if stretch.label == label:
            edges += [stretch.start * clock, stretch.stop * clock]
            covered += [covered[-1], covered[-1] + edges[-1] - edges[-2]]
    return np.asarray(
        np.interp(starts + length, edges, covered) - np.interp(starts, edges, covered)
    )


def _around_points(
    recording: Recording,
    options: ImportOptions,
    dropped: Counter[str],
    sizes: tuple[int, int],
    clock: float,
) -> _Plan:
    """One window at every event: from it on, or around it."""
    n_samples, length = sizes
    moments = np.array([moment for moment, _ in recording.points])
    labels = np.array([label for _, label in recording.points])
    starts = np.rint(moments * clock).astype(np.int64)
    if options.points == "centre":
        starts -= length // 2
    inside = (starts >= 0) & (starts + length <= n_samples)
    dropped[PAST_END] += int(np.count_nonzero(~inside))
    return _Plan(starts[inside], labels[inside])


def _blocks(starts: Integers, length: int) -> Iterator[slice]:
    """Neighbouring windows that together stay below the block size."""
    most = max(1, _BLOCK // length)
    first = 0
    while first < len(starts):
        reach = int(np.searchsorted(starts, starts[first] + _BLOCK - length, side="right"))
        last = max(first + 1, min(reach, first + most))
        yield slice(first, last)
        first = last


def _read(signals: list[Signal], starts: Integers, length: int, where: str) -> Floats:
    low, high = int(starts[0]), int(starts[-1]) + length
    X = np.empty((len(starts), len(signals), length))
    for channel, signal in enumerate(signals):
        values = signal.read(low, high)
        _refuse_huge(values, signal.name, where)
        view = np.lib.stride_tricks.sliding_window_view(values, length)
        X[:, channel] = view[starts - low]
    return X


def _refuse_huge(values: Floats, name: str, where: str) -> None:
    if len(values) and np.nanmax(np.abs(values), initial=0.0) > HUGE:
        worst = float(values[np.nanargmax(np.abs(values))])
        if np.isfinite(worst):
            raise TacitError(
                f"{where} channel {name!r} holds {worst:g}, beyond {HUGE:g}; replace sentinels by "
                "missing values and choose a unit of ordinary size."
            )


def cut_batch(batch: Batch, options: ImportOptions, dropped: Counter[str]) -> Iterator[Batch]:
    """Finished series, without those that have gaps; with --window each is cut again."""
    dropped.update(batch.dropped)
    n_series, n_channels, n_samples = batch.X.shape
    most = max(1, _BLOCK // max(1, n_channels * n_samples))
    for first in range(0, n_series, most):
        yield from _cut_rows(batch, slice(first, first + most), options, dropped)


def _cut_rows(
    batch: Batch, rows: slice, options: ImportOptions, dropped: Counter[str]
) -> Iterator[Batch]:
    X = np.asarray(batch.X[rows], dtype=np.float64)
    X, rate = _whole_rows(X, batch, options)
    n_windows = 1
    if options.window is not None:
        length = options.window.samples(rate, name="--window")
        stride = options.stride.samples(rate, name="--stride") if options.stride else length
        if X.shape[-1] < length:
            dropped[SHORT_RECORDING] += len(X)
            return
        view = np.lib.stride_tricks.sliding_window_view(X, length, axis=-1)[:, :, ::stride]
        n_windows = view.shape[2]
        X = view.transpose(0, 2, 1, 3).reshape(-1, X.shape[1], length)
    keep = np.isfinite(X).all(axis=(1, 2))
    dropped[MISSING] += int(np.count_nonzero(~keep))
    labels = None if batch.y is None else np.repeat(batch.y[rows], n_windows)
    if labels is not None and not options.unlabelled:
        named = labels != ""
        dropped[NO_LABEL] += int(np.count_nonzero(keep & ~named))
        keep &= named
    for values, name in zip(X[keep].swapaxes(0, 1), batch.channel_names, strict=True):
        _refuse_huge(values.reshape(-1), name, batch.where)
    if keep.any():
        yield Batch(
            where=batch.where,
            X=X[keep],
            channel_names=batch.channel_names,
            y=None if labels is None else labels[keep],
            subject=None
            if batch.subject is None
            else np.repeat(batch.subject[rows], n_windows)[keep],
            rate=rate,
            part=batch.part,
        )


def _whole_rows(X: Floats, batch: Batch, options: ImportOptions) -> tuple[Floats, float | None]:
    """Series with short gaps filled and at the rate asked for."""
    if options.missing == "interpolate":
        limit = max_gap(options, batch.rate)
        X = np.stack([[fill_gaps(row, max_gap=limit) for row in one] for one in X])
    if options.rate is None:
        return X, batch.rate

    def channel(values: Floats) -> Signal:
        def read(start: int, stop: int) -> Floats:
            return values[start:stop]

        return Signal(name="", rate=batch.rate, n_samples=len(values), read=read)

    flat = [resampled(channel(row), options.rate, where=batch.where) for one in X for row in one]
    values = np.stack([signal.read(0, signal.n_samples) for signal in flat])
    return values.reshape(len(X), X.shape[1], -1), options.rate
