"""Annotations, made into stretches with one label each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import Stretch
from tacit.errors import TacitError

NO_DURATION = "annotation without a duration"
OTHER_CLASS = "label not among --classes"
_TOUCHING = 1e-3  # seconds; scoring programs round


@dataclass(frozen=True, slots=True)
class Mark:
    """An annotation as it stands in a file; an event has duration 0."""

    onset: float
    duration: float
    text: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """Stretches and moments with labels, and what was left out: stretches, and counts of events."""

    stretches: tuple[Stretch, ...] = ()
    points: tuple[tuple[float, str], ...] = ()
    excluded: tuple[Stretch, ...] = ()
    dropped: Counter[str] = field(default_factory=Counter)


def label_marks(
    marks: Iterable[Mark], options: ImportOptions, *, seconds: float, where: str
) -> Labelled:
    """Choose, rename and check the annotations of a recording that lasts `seconds`."""
    dropped: Counter[str] = Counter()
    marks = sorted(marks, key=lambda mark: mark.onset)
    chosen = list(_renamed(marks, options))
    excluded = _unwanted(marks, options, seconds, dropped)
    scored = [mark for mark in chosen if mark.duration > 0]
    if options.points is None and scored:
        # Beside scored stretches, events are remarks ("lights off"), not labels.
        dropped[NO_DURATION] += len(chosen) - len(scored)
        chosen = scored
    _check_inside(chosen, seconds, where)
    if options.points is None and len(scored) == len(chosen):
        return Labelled(stretches_of(chosen, seconds, where), (), excluded, dropped)
    if options.points is None:
        raise TacitError(
            f"{where} has {len(chosen)} annotations and none has a duration, so they do not say "
            "which samples they label; pass --points onset (a window begins there), centre (a "
            "window lies around it) or until-next (the label holds until the next one)."
        )
    if options.points == "until-next":
        ends = [mark.onset for mark in chosen[1:]] + [seconds]
        held = [Mark(m.onset, end - m.onset, m.text) for m, end in zip(chosen, ends, strict=True)]
        kept = [mark for mark in held if mark.duration > 0]
        return Labelled(stretches_of(kept, seconds, where), (), excluded, dropped)
    half = 0.5 if options.points == "centre" else 0.0
    points = tuple((mark.onset + half * mark.duration, mark.text) for mark in chosen)
    return Labelled((), points, excluded, dropped)


def _renamed(marks: Iterable[Mark], options: ImportOptions) -> Iterable[Mark]:
    for mark in marks:
        text = mark.text.strip()
        if text and (not options.classes or text in options.classes):
            yield Mark(mark.onset, mark.duration, options.classes.get(text, text))


def _unwanted(
    marks: Iterable[Mark], options: ImportOptions, seconds: float, dropped: Counter[str]
) -> tuple[Stretch, ...]:
    """Stretches whose label is not asked for; events are counted."""
    found = []
    for mark in marks:
        if not options.classes or mark.text.strip() in options.classes:
            continue
        start, stop = max(mark.onset, 0.0), min(mark.onset + mark.duration, seconds)
        if stop > start:
            found.append(Stretch(start, stop, OTHER_CLASS))
        elif mark.duration <= 0:
            dropped[OTHER_CLASS] += 1
    return tuple(found)


def _check_inside(marks: Iterable[Mark], seconds: float, where: str) -> None:
    for mark in marks:
        if (
            mark.onset < -_TOUCHING
            or mark.onset > seconds
            or (mark.onset == seconds and mark.duration)
        ):
            raise TacitError(
                f"{where} lasts {seconds:g} s and its annotation {mark.text!r} begins at "
                f"{mark.onset:g} s, outside of it; check that the annotations belong to this "
                "recording, or choose the labels to use with --classes."
            )


def stretches_of(marks: Sequence[Mark], seconds: float, where: str) -> tuple[Stretch, ...]:
    """Cut to the recording, put touching ones of one label together, refuse two labels at once."""
    merged: list[Stretch] = []
    for mark in sorted(marks, key=lambda mark: mark.onset):
        new = Stretch(max(mark.onset, 0.0), min(mark.onset + mark.duration, seconds), mark.text)
        last = merged[-1] if merged else None
        if last is None or new.start > last.stop + _TOUCHING:
            merged.append(new)
        elif new.label == last.label:
            merged[-1] = Stretch(last.start, max(last.stop, new.stop), last.label)
        elif new.start < last.stop - _TOUCHING:
            raise TacitError(
                f"{where} has the annotations {last.label!r} and {new.label!r} at {new.start:g} s "
                "at once, so a window would have two labels; choose the labels to use with "
                "--classes."
            )
        else:
            merged.append(new)
    return tuple(merged)


def runs_of(labels: NDArray[np.str_], *, rate: float | None) -> tuple[Stretch, ...]:
    """A label per sample, as stretches; empty labels label nothing."""
    if not len(labels):
        return ()
    edges = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    starts, stops = [0, *edges.tolist()], [*edges.tolist(), len(labels)]
    clock = rate or 1.0
    return tuple(
        Stretch(start / clock, stop / clock, str(labels[start]))
        for start, stop in zip(starts, stops, strict=True)
        if labels[start]
    )


def wanted_runs(
    labels: NDArray[np.str_], options: ImportOptions, *, rate: float | None
) -> tuple[tuple[Stretch, ...], tuple[Stretch, ...]]:
    """A label per sample as stretches: those asked for, renamed, and the others."""
    runs = runs_of(labels, rate=rate)
    if not options.classes:
        return runs, ()
    wanted = [
        Stretch(run.start, run.stop, options.classes[run.label])
        for run in runs
        if run.label in options.classes
    ]
    others = [run for run in runs if run.label not in options.classes]
    return tuple(wanted), tuple(Stretch(run.start, run.stop, OTHER_CLASS) for run in others)


def shifted(stretches: Iterable[Stretch], start: float, stop: float) -> tuple[Stretch, ...]:
    """What lies between two moments, counted from the first."""
    return tuple(
        Stretch(max(s.start, start) - start, min(s.stop, stop) - start, s.label)
        for s in stretches
        if s.stop > start and s.start < stop
    )
