"""Sleep-EDF: nights in EDF with hypnograms beside them, in epochs of 30 s and five stages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from tacit.data.importers.archives.defaults import refuse_columns, with_defaults
from tacit.data.importers.archives.recipe import Made, Recipe
from tacit.data.importers.edf import open_edf, read_marks
from tacit.data.importers.marks import label_marks
from tacit.data.importers.options import ImportOptions, Span
from tacit.data.importers.recording import Material, Recording, Stretch, choose_channels
from tacit.errors import TacitError

NAME = "sleep-edf"
FAR_WAKE = "wake more than 30 min from sleep"
STAGES = {
    "Sleep stage W": "W",
    "Sleep stage 1": "N1",
    "Sleep stage 2": "N2",
    "Sleep stage 3": "N3",
    "Sleep stage 4": "N3",
    "Sleep stage R": "REM",
}
_PSG = re.compile(r"((S[CT])\d(\d\d)\d[A-Z])[A-Z0-9]-PSG\.edf", re.IGNORECASE)
_HYPNOGRAM = re.compile(r"(S[CT]\d\d\d\d[A-Z])[A-Z0-9]-Hypnogram\.edf", re.IGNORECASE)
_EDGE = 1800.0  # seconds of wake to keep around the night; recordings last a day
_EPOCH = 30.0


def recognises(files: Sequence[Path]) -> bool:
    """Whether there are nights and hypnograms under the archive's names."""
    names = [path.name for path in files]
    return any(_PSG.fullmatch(n) for n in names) and any(_HYPNOGRAM.fullmatch(n) for n in names)


def read(files: Sequence[Path], options: ImportOptions) -> Made:
    """Epochs of Fpz-Cz in the stages W, N1, N2, N3 and REM; movement and ? are left out."""
    refuse_columns(options, archive=NAME)
    options = with_defaults(
        options, window=Span(_EPOCH, True), channels=("EEG Fpz-Cz",), classes=STAGES
    )
    pairs = list(_pairs(files))

    def items() -> Iterator[Recording]:
        for night, hypnogram, person in pairs:
            yield _recording(night, hypnogram, person, options)

    notes = (("labels", "hypnograms, stages 3 and 4 as N3"), ("subjects", "file names"),
             ("wake", "kept within 30 min of sleep"))  # fmt: skip
    return (
        Material(
            format="Sleep-EDF", items=items(), n_items=len(pairs), notes=notes, dtype=np.float32
        ),
        options,
    )


def _pairs(files: Sequence[Path]) -> Iterator[tuple[Path, Path, str]]:
    hypnograms: dict[str, Path] = {}
    for path in files:
        match = _HYPNOGRAM.fullmatch(path.name)
        if match:
            hypnograms[match.group(1).upper()] = path
    found = False
    for path in files:
        match = _PSG.fullmatch(path.name)
        if match is None:
            continue
        found = True
        if match.group(1).upper() not in hypnograms:
            raise TacitError(
                f"{path.name} has no {match.group(1)}?-Hypnogram.edf beside it; add it, or take "
                "the night out."
            )
        yield path, hypnograms[match.group(1).upper()], match.group(2).upper() + match.group(3)
    if not found:
        raise TacitError(f"{NAME} needs files such as SC4001E0-PSG.edf, and there are none.")


def _recording(night: Path, hypnogram: Path, person: str, options: ImportOptions) -> Recording:
    opened = open_edf(night)
    marks = read_marks(hypnogram)
    scored = label_marks(marks, options, seconds=opened.seconds, where=night.name)
    stretches, far = _near_sleep(scored.stretches)
    return Recording(
        where=night.name,
        signals=choose_channels(
            opened.signals, options.channels, rate=options.rate, where=night.name
        ),
        subject=None if options.subject == "none" else person,
        stretches=stretches,
        excluded=(*scored.excluded, *far),
        dropped=scored.dropped,
    )


def _near_sleep(
    stretches: tuple[Stretch, ...],
) -> tuple[tuple[Stretch, ...], tuple[Stretch, ...]]:
    """Wake is cut to the half hours before and after the night, as is usual; and what is cut."""
    asleep = [s for s in stretches if s.label != "W"]
    if not asleep:
        return stretches, ()
    first, last = asleep[0].start - _EDGE, asleep[-1].stop + _EDGE
    near: list[Stretch] = []
    far: list[Stretch] = []
    for s in stretches:
        edges = sorted({s.start, s.stop, min(max(first, s.start), s.stop),
                        min(max(last, s.start), s.stop)})  # fmt: skip
        for start, stop in pairwise(edges):
            inside = start >= first and stop <= last
            (near if inside else far).append(Stretch(start, stop, s.label if inside else FAR_WAKE))
    return tuple(near), tuple(far)


RECIPE = Recipe(NAME, recognises, read)
