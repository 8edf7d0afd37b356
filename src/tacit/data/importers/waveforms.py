"""WFDB records (PhysioNet): a .hea header, its signal files, and annotations beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.data.importers.marks import Labelled, Mark, label_marks
from tacit.data.importers.naming import check_rule, is_file_rule, name_from
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import (
    Material,
    Recording,
    Signal,
    Stretch,
    choose_channels,
    signal_of,
    unique_names,
)
from tacit.errors import TacitError
from tacit.system.extras import needs

ENDINGS = (".hea",)
_BEATS = frozenset("NLRBAaJSVrFejnE/fQ?")
_ANNOTATIONS = (".atr", ".ari", ".qrs", ".ann", ".hyp", ".st", ".ecg", ".apn")
_ANY_ERROR = (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError)


def read_waveforms(files: Sequence[Path], root: Path, options: ImportOptions) -> Material:
    """Records with labels from annotations: beats, or rhythms that hold until the next."""
    words = ("annotations", "rhythm", "none")
    check_rule(options.label, words, option="--label", format="WFDB")
    check_rule(options.subject, ("none",), option="--subject", format="WFDB")
    subject = options.subject or ("file" if len(files) > 1 else "none")

    def items() -> Iterator[Recording]:
        for path in files:
            record = _Record(path)
            yield Recording(
                where=path.name,
                signals=choose_channels(
                    record.signals(), options.channels, rate=options.rate, where=path.name
                ),
                subject=None
                if subject == "none"
                else name_from(subject, path, root, option="--subject"),
                **_labels(record, root, options),
            )

    said = "one per file (--subject says otherwise)" if options.subject is None else subject
    notes = (("labels", options.label or "annotations"), ("subjects", said))
    return Material(format="WFDB", items=items(), n_items=len(files), notes=notes, dtype=np.float32)


def whole_records(files: Sequence[Path]) -> list[Path]:
    """Headers of records, without those of the segments of other records."""
    segments: set[Path] = set()
    for path in files:
        lines = [line for line in _text(path) if line and not line.startswith("#")]
        if lines and "/" in lines[0].split()[0]:
            segments |= {path.with_name(f"{line.split()[0]}.hea") for line in lines[1:]}
    return [path for path in files if path not in segments]


def read_record(path: Path) -> tuple[Signal, ...]:
    """The channels of a record."""
    return _Record(path).signals()


def _text(path: Path) -> list[str]:
    return path.read_text(encoding="latin-1").splitlines()


def _labels(record: _Record, root: Path, options: ImportOptions) -> dict[str, Any]:
    path = record.path
    if options.unlabelled:
        return {}
    if is_file_rule(options.label):
        assert options.label is not None
        text = name_from(options.label, path, root, option="--label")
        return {"stretches": (Stretch(0.0, record.seconds, text),)}
    found = _marked(record, options)
    return {
        "stretches": found.stretches,
        "points": found.points,
        "excluded": found.excluded,
        "dropped": found.dropped,
    }


def _marked(record: _Record, options: ImportOptions) -> Labelled:
    from dataclasses import replace

    path = record.path
    marks = record.rhythms() if options.label == "rhythm" else record.beats(options)
    if not marks:
        raise TacitError(
            f"{path.name} has no annotations that label it; pass --label rhythm, folder, file, a "
            "regular expression with one group, or none."
        )
    if options.label == "rhythm":
        options = replace(options, points="until-next")
    return label_marks(marks, options, seconds=record.seconds, where=path.name)


class _Record:
    """One record, opened with the library; every failure of it becomes one sentence."""

    def __init__(self, path: Path) -> None:
        needs("import", "wfdb", what="reading WFDB")
        import wfdb

        self.path = path
        self._wfdb: Any = wfdb
        self._name = str(path.with_suffix(""))
        self._refuse_other_folders()
        self._header = self._call(wfdb.rdheader, self._name)
        if not self._header.sig_len or not self._header.n_sig or not self._header.fs:
            raise TacitError(
                f"{path.name} names no signals, or not how long they are; check that it is whole."
            )

    @property
    def seconds(self) -> float:
        """How long it is."""
        return float(self._header.sig_len) / float(self._header.fs)

    def signals(self) -> tuple[Signal, ...]:
        """Its channels, read piece by piece if all have one rate."""
        header = self._header
        frames = getattr(header, "samps_per_frame", None)
        if frames and max(frames) > 1:
            return self._at_own_rates(frames)
        first = self._call(self._wfdb.rdrecord, self._name, sampto=1)
        self._read(0, 0, int(header.sig_len), last_only=True)
        names = _names(first.sig_name)
        return tuple(self._signal(k, name, first.units[k]) for k, name in enumerate(names))

    def _signal(self, channel: int, name: str, unit: str) -> Signal:
        return Signal(
            name=name,
            rate=float(self._header.fs),
            n_samples=int(self._header.sig_len),
            read=lambda start, stop: self._read(channel, start, stop),
            unit=unit or "",
        )

    def _read(self, channel: int, start: int, stop: int, *, last_only: bool = False) -> Floats:
        start = stop - 1 if last_only else start
        record = self._call(
            self._wfdb.rdrecord, self._name, sampfrom=start, sampto=stop, channels=[channel]
        )
        values = np.asarray(record.p_signal[:, 0], dtype=np.float64)
        if len(values) != stop - start:
            raise TacitError(f"{self.path.name} is truncated; copy it again with its signal files.")
        return values

    def _at_own_rates(self, frames: Sequence[int]) -> tuple[Signal, ...]:
        record = self._call(self._wfdb.rdrecord, self._name, smooth_frames=False)
        rate = float(self._header.fs)
        names = _names(record.sig_name)
        return tuple(
            signal_of(values, name=name, rate=rate * count, unit=unit or "")
            for values, name, count, unit in zip(
                record.e_p_signal, names, frames, record.units, strict=True
            )
        )

    def beats(self, options: ImportOptions) -> list[Mark]:
        """Annotations by their symbols; those that are no beats only if asked for."""
        found = self._annotations()
        wanted = set(options.classes) or _BEATS
        return [Mark(at, 0.0, symbol) for at, symbol, _ in found if symbol in wanted]

    def rhythms(self) -> list[Mark]:
        """Notes such as (AFIB, which say what holds from there on."""
        notes = ((at, note.rstrip("\x00").strip()) for at, _, note in self._annotations())
        return [Mark(at, 0.0, note.lstrip("(")) for at, note in notes if note.startswith("(")]

    def _annotations(self) -> list[tuple[float, str, str]]:
        beside = [e for e in _ANNOTATIONS if self.path.with_suffix(e).is_file()]
        if not beside:
            return []
        found = self._call(self._wfdb.rdann, self._name, beside[0][1:])
        rate = float(self._header.fs)
        notes = found.aux_note or [""] * len(found.sample)
        return [
            (int(at) / rate, str(symbol), str(note))
            for at, symbol, note in zip(found.sample, found.symbol, notes, strict=True)
        ]

    def _refuse_other_folders(self) -> None:
        for line in _text(self.path)[1:]:
            name = line.split()[0] if line.split() and not line.startswith("#") else ""
            if "/" in name or "\\" in name or name.startswith(".."):
                raise TacitError(
                    f"{self.path.name} names the signal file {name!r} in another folder; put its "
                    "files beside it."
                )

    def _call(self, function: Any, *words: Any, **named: Any) -> Any:
        try:
            return function(*words, **named)
        except _ANY_ERROR as error:
            raise TacitError(
                f"{self.path.name} cannot be read with its signal and annotation files ({error}); "
                "check that they are there and whole."
            ) from error


def _names(found: Sequence[str | None]) -> list[str]:
    return unique_names([name or f"channel {k}" for k, name in enumerate(found, start=1)])
