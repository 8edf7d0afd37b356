"""EDF, EDF+ (with gaps too) and BDF, with their annotations, read piece by piece."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats
from tacit.data.importers.marks import Labelled, Mark, label_marks, shifted
from tacit.data.importers.naming import check_rule, is_file_rule, name_from
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import (
    Material,
    Recording,
    Signal,
    Stretch,
    choose_channels,
    unique_names,
)
from tacit.errors import TacitError
from tacit.system.extras import needs

if TYPE_CHECKING:
    from edfio import Edf

ENDINGS = (".edf", ".bdf", ".rec")
_SAME_MOMENT = 1e-3  # seconds; records that are apart by less follow each other
_FIELDS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)  # bytes per signal, in the order of the header
_ANY_ERROR = (
    OSError, ValueError, KeyError, IndexError, TypeError, OverflowError, ArithmeticError,
    AttributeError, AssertionError, StopIteration, NameError,
)  # fmt: skip


def read_edf(files: Sequence[Path], root: Path, options: ImportOptions) -> Material:
    """Recordings of EDF files: labels from annotations, persons from the patient field."""
    check_rule(options.label, ("annotations", "none"), option="--label", format="EDF")
    check_rule(options.subject, ("patient", "none"), option="--subject", format="EDF")
    rule, said = _subject_rule(files, options)

    def items() -> Iterator[Recording]:
        for path in files:
            yield from _recordings(path, root, options, rule)

    labels = options.label or "annotations"
    return Material(
        format="EDF",
        items=items(),
        n_items=len(files),
        notes=(("labels", labels), ("subjects", said)),
        dtype=np.float32,
    )


def _subject_rule(files: Sequence[Path], options: ImportOptions) -> tuple[str, str]:
    if options.subject is not None:
        return options.subject, options.subject
    if all(patient_code(path) for path in files):
        return "patient", "patient field of the header"
    if len(files) == 1:
        return "none", "none: the header names no patient"
    return "file", "one per file, because the headers name no patient (--subject says otherwise)"


def patient_code(path: Path) -> str:
    """The code of the person in the header, or "" where it was taken out."""
    with path.open("rb") as file:
        words = file.read(88)[8:].decode("latin-1").split()
    return "" if not words or words[0] in {"X", "-", "?"} else words[0].replace("_", " ")


def _recordings(
    path: Path, root: Path, options: ImportOptions, subject_rule: str
) -> Iterator[Recording]:
    opened = open_edf(path)
    signals = choose_channels(opened.signals, options.channels, rate=options.rate, where=path.name)
    labelled = _labels(opened, root, options)
    for number, (start, stop, offset) in enumerate(opened.pieces):
        yield Recording(
            where=path.name,
            signals=tuple(_piece(signal, start, stop) for signal in signals),
            subject=_subject(path, root, subject_rule),
            stretches=shifted(labelled.stretches, offset, offset + stop - start),
            excluded=shifted(labelled.excluded, offset, offset + stop - start),
            points=tuple(
                (moment - offset, label)
                for moment, label in labelled.points
                if offset <= moment < offset + stop - start
            ),
            dropped=Counter() if number else labelled.dropped,
        )


def _subject(path: Path, root: Path, rule: str) -> str | None:
    if rule == "none":
        return None
    if rule != "patient":
        return name_from(rule, path, root, option="--subject")
    code = patient_code(path)
    if not code:
        raise TacitError(
            f"{path.name} has no patient in its header; pass --subject file, folder, none or a "
            "regular expression with one group."
        )
    return code


def _labels(opened: OpenedEdf, root: Path, options: ImportOptions) -> Labelled:
    path = opened.path
    if options.unlabelled:
        return Labelled()
    if is_file_rule(options.label):
        assert options.label is not None
        text = name_from(options.label, path, root, option="--label")
        return Labelled((Stretch(0.0, opened.seconds, text),))
    if not opened.marks:
        raise TacitError(
            f"{path.name} has no annotations, so nothing says its labels; pass --label folder, "
            "--label file, a regular expression with one group, or --label none."
        )
    return label_marks(opened.marks, options, seconds=opened.seconds, where=path.name)


@dataclass(frozen=True, slots=True)
class OpenedEdf:
    """A file whose header has been checked; `pieces` are (start, stop, onset) in seconds.

    Start and stop count along the samples, the onset along the clock: they differ after a gap.
    """

    path: Path
    signals: tuple[Signal, ...]
    marks: tuple[Mark, ...]
    pieces: tuple[tuple[float, float, float], ...]

    @property
    def seconds(self) -> float:
        """From the first sample to the last, by the clock."""
        start, stop, onset = self.pieces[-1]
        return onset + stop - start


def open_edf(path: Path) -> OpenedEdf:
    """Open a file of either kind, refusing what is truncated or only called EDF."""
    edf = _library_opens(path)
    pieces = _pieces(path, edf)
    return OpenedEdf(path, _signals(path, edf), _marks(path, edf), pieces)


def read_marks(path: Path) -> tuple[Mark, ...]:
    """The annotations of a file, which may have nothing else."""
    return _marks(path, _library_opens(path))


def _library_opens(path: Path) -> Edf:
    needs("import", "edfio", what="reading EDF")
    import edfio

    with path.open("rb") as file:
        version = file.read(8)
    is_bdf = version == b"\xffBIOSEMI"
    if not is_bdf and version != b"0       ":
        raise TacitError(
            f"{path.name} is named {path.suffix} but is not an EDF file (it begins with "
            f"{version!r}); check what wrote it."
        )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            opened: Any = (
                edfio.read_bdf(path, header_encoding="latin-1")
                if is_bdf
                else edfio.read_edf(path, header_encoding="latin-1")
            )
            n_promised = _promised_records(path)
        except _ANY_ERROR as error:
            # The library reads such a file as if its samples had no rate, and stumbles.
            timeless = isinstance(error, NameError)
            reason = "its data records last no time" if timeless else error
            raise TacitError(
                f"{path.name} is not a readable EDF file ({reason}); copy or export it again."
            ) from error
    texts = [str(warning.message) for warning in told]
    beyond = n_promised == opened.num_data_records
    if beyond and any("data record" in text for text in texts):
        raise TacitError(
            f"{path.name} has bytes after the {n_promised} data records that its header promises, "
            "so one of them is damaged; copy or export it again."
        )
    if n_promised >= 0 and any("data record" in text for text in texts):
        raise TacitError(
            f"{path.name} is truncated or damaged: its header promises {n_promised} data records "
            f"and it holds {opened.num_data_records}; copy or export it again."
        )
    result: Edf = opened
    return result


def _promised_records(path: Path) -> int:
    with path.open("rb") as file:
        return int(file.read(244)[236:])


def _signals(path: Path, edf: Edf) -> tuple[Signal, ...]:
    names = unique_names([signal.label or "unnamed" for signal in edf.signals])
    return tuple(
        _signal(path, name, signal, edf.num_data_records)
        for name, signal in zip(names, edf.signals, strict=True)
    )


def _signal(path: Path, name: str, signal: Any, n_records: int) -> Signal:
    try:
        low, high = float(signal.digital_min), float(signal.digital_max)
        gain = (signal.physical_max - signal.physical_min) / (high - low)
        offset = signal.physical_min - gain * low
        rate = float(signal.sampling_frequency)
        n_samples = int(signal.samples_per_data_record) * n_records
    except _ANY_ERROR as error:
        raise TacitError(
            f"{path.name} does not say how to turn the numbers of {name!r} into values ({error}); "
            "export it again."
        ) from error
    if gain == 0 or rate <= 0:
        raise TacitError(
            f"{path.name} gives {name!r} a range of nothing or a rate of {rate:g} Hz; leave it out "
            "with --channels, or export the file again."
        )

    def read(start: int, stop: int) -> Floats:
        # By seconds, because that is how the library reads a part; it rounds to whole samples.
        digital = signal.get_digital_slice(start / rate, stop / rate)
        values: Floats = digital * gain + offset
        return values

    return Signal(
        name=name, rate=rate, n_samples=n_samples, read=read, unit=signal.physical_dimension
    )


def _marks(path: Path, edf: Edf) -> tuple[Mark, ...]:
    try:
        found = edf.annotations
    except _ANY_ERROR as error:
        raise TacitError(
            f"{path.name} has annotations that cannot be read ({error}); export it again."
        ) from error
    return tuple(Mark(float(a.onset), float(a.duration or 0.0), a.text) for a in found)


def _pieces(path: Path, edf: Edf) -> tuple[tuple[float, float, float], ...]:
    duration, n_records = float(edf.data_record_duration), edf.num_data_records
    whole = ((0.0, duration * n_records, 0.0),)
    if not re.match(r"[EB]DF\+D", edf.reserved) or not edf.signals:
        return whole
    onsets = _record_onsets(path, n_records, bytes_per_sample=3 if edf.reserved[0] == "B" else 2)
    breaks = np.flatnonzero(np.abs(np.diff(onsets) - duration) > _SAME_MOMENT) + 1
    edges = [0, *breaks.tolist(), n_records]
    return tuple(
        (first * duration, last * duration, float(onsets[first] - onsets[0]))
        for first, last in pairwise(edges)
    )


def _record_onsets(path: Path, n_records: int, *, bytes_per_sample: int) -> Floats:
    """When each data record began: the first entry of its annotation signal."""
    with path.open("rb") as file:
        n_signals = int(file.read(256)[252:])
        head = file.read(256 * n_signals)
    starts = np.concatenate(([0], np.cumsum(_FIELDS))) * n_signals
    labels = [head[16 * k : 16 * k + 16].strip() for k in range(n_signals)]
    counts = [int(head[starts[8] + 8 * k : starts[8] + 8 * k + 8]) for k in range(n_signals)]
    place = next(k for k, label in enumerate(labels) if label.endswith(b" Annotations"))
    sizes = np.array(counts) * bytes_per_sample
    records = np.memmap(path, np.uint8, "r", 256 * (n_signals + 1), (n_records, int(sizes.sum())))
    first = int(sizes[:place].sum())
    onsets = np.empty(n_records)
    for number in range(n_records):
        text = records[number, first : first + int(sizes[place])].tobytes()
        match = re.match(rb"[+-]\d+(\.\d+)?", text)
        if match is None:
            raise TacitError(
                f"{path.name} is an EDF+ file with gaps and does not say when record {number + 1} "
                "began; export it again."
            )
        onsets[number] = float(match.group())
    return onsets


def _piece(signal: Signal, start: float, stop: float) -> Signal:
    rate = signal.rate or 1.0
    first, last = round(start * rate), round(stop * rate)
    if first == 0 and last >= signal.n_samples:
        return signal

    def read(begin: int, end: int) -> Floats:
        return signal.read(first + begin, first + end)

    return Signal(
        name=signal.name, rate=signal.rate, n_samples=last - first, read=read, unit=signal.unit
    )
