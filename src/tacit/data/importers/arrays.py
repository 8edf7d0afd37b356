"""Named arrays, as .mat, .h5 and .npz files hold them: which are samples, labels and persons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.importers.axes import find_axes, ordered
from tacit.data.importers.marks import OTHER_CLASS, wanted_runs
from tacit.data.importers.naming import is_file_rule, name_from
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import (
    Batch,
    Material,
    Recording,
    Signal,
    Stretch,
    choose_channels,
    signal_of,
)
from tacit.data.importers.tables.doubts import is_key_beside_fractions
from tacit.data.validate import label_text
from tacit.errors import TacitError

_SAMPLES = re.compile(
    r"x|data|signals?|values|samples|series|eeg|ecg|emg|acc|accel|vibration|windows", re.IGNORECASE
)
_LABELS = re.compile(r"y|labels?|class|targets?|activity|activities|stages?", re.IGNORECASE)
_PERSONS = re.compile(
    r"(subjects?|users?|persons?|patients?|participants?|groups?)(_?ids?)?", re.IGNORECASE
)
_RATES = re.compile(
    r"fs|rate|sfreq|srate|sampling_?(rate|frequency)|sample_?rate|samp_?rate", re.IGNORECASE
)
_NAMES = re.compile(r"channels?|channel_?names?|ch_?names?|sig_?names?|leads?", re.IGNORECASE)
_FEWEST_TO_JUDGE = 5  # series, and samples of each
_TOPICS = {"--label": "labels", "--subject": "subjects"}


@dataclass(frozen=True, slots=True)
class Entry:
    """An array that is read when it is needed; `cells` holds recordings of different lengths."""

    shape: tuple[int, ...]
    is_number: bool
    load: Callable[[], NDArray[Any]] = field(repr=False)
    cells: tuple[NDArray[Any], ...] = field(default=(), repr=False)


def entry_of(values: NDArray[Any]) -> Entry:
    """An array that is at hand."""
    return Entry(values.shape, values.dtype.kind in "fiub", lambda: values)


Entries = Mapping[str, Entry]


def read_arrays(
    files: Sequence[Path],
    root: Path,
    options: ImportOptions,
    *,
    format: str,
    open_file: Callable[[Path], Entries],
) -> Material:
    """Series or recordings out of files with named arrays."""
    notes: dict[str, str] = {}

    def items() -> Iterator[Recording | Batch]:
        for path in files:
            label = subject = None
            if is_file_rule(options.label):
                assert options.label is not None
                label = name_from(options.label, path, root, option="--label")
            if is_file_rule(options.subject):
                assert options.subject is not None
                subject = name_from(options.subject, path, root, option="--subject")
            yield from _File(path.name, open_file(path), options, label, subject, notes).items()

    made = items()
    first = list(islice(made, 1))
    return Material(
        format=format,
        items=chain(first, made),
        n_items=len(files),
        notes=tuple(notes.items()),
    )


@dataclass(frozen=True, slots=True)
class _File:
    where: str
    entries: Entries
    options: ImportOptions
    label: str | None
    subject: str | None
    notes: dict[str, str]

    def items(self) -> Iterator[Recording | Batch]:
        lower = {name.lower(): name for name in self.entries}
        if {"x_train", "y_train", "x_test", "y_test"} <= set(lower) and not self.options.array:
            for part in ("train", "test"):
                yield from self._items(lower[f"x_{part}"], part)
        else:
            yield from self._items(self._samples_name(), "")

    def _items(self, name: str, part: str) -> Iterator[Recording | Batch]:
        entry = self.entries[name]
        self.notes.setdefault("samples", f"array {name!r} {_shape(entry)}")
        labels = self._labels(part)
        subjects = self._subjects(part)
        if entry.cells:
            yield from self._cells(entry, labels, subjects, part)
            return
        values = entry.load()
        axes = find_axes(
            values.shape,
            n_labels=None if labels is None else len(labels),
            options=self.options,
            where=self.where,
        )
        if "series" in axes:
            self.notes.setdefault("axes", ", ".join(axes))
            yield self._batch(ordered(values, axes), labels, subjects, part)
        else:
            yield self._recording(ordered(values, axes)[0], labels, subjects, part)

    def _samples_name(self) -> str:
        said = self.options.array
        if said is not None:
            if said not in self.entries:
                raise TacitError(f"{self.where} has no array {said!r}; it holds {self._told()}.")
            return said
        numeric = {
            name: entry
            for name, entry in self.entries.items()
            if (entry.is_number and np.prod(entry.shape) > 1) or entry.cells
        }
        named = [name for name in numeric if _SAMPLES.fullmatch(name.rsplit(".", 1)[-1])]
        others = [
            name
            for name in numeric
            if not any(kind.fullmatch(name.rsplit(".", 1)[-1])
                       for kind in (_LABELS, _PERSONS, _RATES, _NAMES))
        ]  # fmt: skip
        found = named or others
        if len(found) != 1:
            raise TacitError(
                f"{self.where} holds {self._told()}, and nothing says which array has the samples; "
                "choose with --array."
            )
        return found[0]

    def _told(self) -> str:
        shown = [f"{name} {_shape(entry)}" for name, entry in self.entries.items()]
        return ", ".join(shown[:12]) or "no arrays"

    def _find(
        self, said: str | None, kind: re.Pattern[str], part: str, option: str
    ) -> Entry | None:
        if said is not None:
            if said not in self.entries:
                raise TacitError(
                    f"{self.where} has no array {said!r} for {option}; it holds {self._told()}."
                )
            self.notes.setdefault(_TOPICS[option], f"array {said!r}")
            return self.entries[said]
        ending = f"_{part}" if part else ""
        for name, entry in self.entries.items():
            last = name.rsplit(".", 1)[-1]
            if last.lower().endswith(ending) and kind.fullmatch(last[: len(last) - len(ending)]):
                self.notes.setdefault(_TOPICS[option], f"array {name!r}")
                return entry
        return None

    def _labels(self, part: str) -> NDArray[np.str_] | None:
        options = self.options
        if options.unlabelled or self.label is not None:
            return None
        entry = self._find(options.label, _LABELS, part, "--label")
        if entry is None:
            raise TacitError(
                f"{self.where} holds {self._told()}, and nothing says which array has the labels; "
                "pass --label with its name, folder, file, a regular expression with one group, or "
                "none."
            )
        codes = _column(entry, "labels", self.where)
        return np.array([label_text(text) for text in self._decoded(codes)], dtype=np.str_)

    def _decoded(self, codes: NDArray[Any]) -> list[Any]:
        """Whole numbers are names of classes where the file has a list of these."""
        names = self.entries.get("classes")
        whole = codes.dtype.kind in "iu" and names is not None and not names.is_number
        if not whole or names is None or not 0 <= codes.min() <= codes.max() < names.shape[0]:
            return list(codes.tolist())
        return list(names.load().reshape(-1)[codes].tolist())

    def _subjects(self, part: str) -> NDArray[np.str_] | None:
        if self.options.subject == "none" or self.subject is not None:
            return None
        entry = self._find(self.options.subject, _PERSONS, part, "--subject")
        if entry is None or entry.cells:
            return None
        texts = _column(entry, "subjects", self.where)
        return np.array([label_text(text) for text in texts.tolist()], dtype=np.str_)

    def _rate(self) -> float | None:
        if self.options.source_rate is not None:
            return self.options.source_rate
        for name, entry in self.entries.items():
            if _RATES.fullmatch(name.rsplit(".", 1)[-1]) and np.prod(entry.shape) == 1:
                rate = float(entry.load().reshape(()))
                return rate if np.isfinite(rate) and rate > 0 else None
        return None

    def _channel_names(self, count: int) -> tuple[str, ...]:
        for name, entry in self.entries.items():
            last = name.rsplit(".", 1)[-1]
            if _NAMES.fullmatch(last) and not entry.is_number and np.prod(entry.shape) == count:
                return tuple(str(text) for text in entry.load().reshape(-1).tolist())
        return tuple(f"channel {k + 1}" for k in range(count))

    def _batch(
        self,
        X: NDArray[Any],
        labels: NDArray[np.str_] | None,
        subjects: NDArray[np.str_] | None,
        part: str,
    ) -> Batch:
        n_series, n_channels, _ = X.shape
        for kind, found in (("labels", labels), ("subjects", subjects)):
            if found is not None and len(found) != n_series:
                raise TacitError(
                    f"{self.where} has {n_series} series and {len(found)} {kind}; give one each."
                )
        _refuse_keys(X, self.where)
        names = self._channel_names(n_channels)
        X, names = self._chosen(X, names)
        y = np.full(n_series, self.label) if self.label is not None else labels
        if subjects is None and self.subject is not None:
            subjects = np.full(n_series, self.subject)
        batch = Batch(
            where=self.where, X=X, channel_names=names, y=y, subject=subjects,
            rate=self._rate(), part=part,
        )  # fmt: skip
        return _renamed(batch, self.options)

    def _chosen(
        self, X: NDArray[Any], names: tuple[str, ...]
    ) -> tuple[NDArray[Any], tuple[str, ...]]:
        if not self.options.channels:
            return X, names
        places = [_place(name, names, self.where) for name in self.options.channels]
        return X[:, places], tuple(names[place] for place in places)

    def _recording(
        self,
        values: NDArray[Any],
        labels: NDArray[np.str_] | None,
        subjects: NDArray[np.str_] | None,
        part: str,
    ) -> Recording:
        rate = self._rate()
        n_samples = values.shape[1]
        names = self._channel_names(len(values))
        signals = [signal_of(row, name=name, rate=rate)
                   for row, name in zip(values, names, strict=True)]  # fmt: skip
        subject = self.subject
        if subjects is not None and len(set(subjects.tolist())) == 1:
            subject = str(subjects[0])
        elif subjects is not None:
            raise TacitError(
                f"{self.where} is one recording and names {len(set(subjects.tolist()))} subjects; "
                "pass --subject none, or a file per subject."
            )
        label = self.label
        if labels is not None and len(labels) == 1:
            label = str(labels[0])
        stretches: tuple[Stretch, ...] = ()
        excluded: tuple[Stretch, ...] = ()
        if label is not None:
            stretches = (Stretch(0.0, n_samples / (rate or 1.0), label),)
        elif labels is not None:
            stretches, excluded = wanted_runs(labels, self.options, rate=rate)
        return Recording(
            where=self.where,
            signals=self._chosen_signals(signals),
            subject=subject,
            stretches=stretches,
            excluded=excluded,
            part=part,
        )

    def _chosen_signals(self, signals: list[Signal]) -> tuple[Signal, ...]:
        options = self.options
        return choose_channels(signals, options.channels, rate=options.rate, where=self.where)

    def _cells(
        self,
        entry: Entry,
        labels: NDArray[np.str_] | None,
        subjects: NDArray[np.str_] | None,
        part: str,
    ) -> Iterator[Recording]:
        for found in (labels, subjects):
            if found is not None and len(found) != len(entry.cells):
                raise TacitError(
                    f"{self.where} has {len(entry.cells)} recordings and {len(found)} labels or "
                    "subjects; give one each."
                )
        for number, values in enumerate(entry.cells):
            if values.ndim == 1:
                values = values[np.newaxis]
            if values.ndim == 2 and values.shape[0] > values.shape[1]:
                values = values.T
            label = None if labels is None else labels[number : number + 1]
            subject = None if subjects is None else subjects[number : number + 1]
            made = self._recording(values, label, subject, part)
            yield replace(made, where=f"{self.where} cell {number + 1}")


def _refuse_keys(X: NDArray[Any], where: str) -> None:
    """A matrix whose first or last column numbers labels or persons."""
    n_series, n_channels, n_samples = X.shape
    if n_channels > 1 or min(n_series, n_samples) < _FEWEST_TO_JUDGE or X.dtype.kind != "f":
        return
    for place, inner in ((0, X[:, 0, 1:]), (-1, X[:, 0, :-1])):
        if is_key_beside_fractions(X[:, 0, place]) and (inner != np.round(inner)).any(axis=0).all():
            raise TacitError(
                f"{where} has whole numbers in sample {place % n_samples + 1} of every series and "
                "nowhere else, so they may be labels or persons; move them into an array of their "
                "own, named y or subject."
            )


def _place(name: str, names: tuple[str, ...], where: str) -> int:
    for place, known in enumerate(names):
        if known.lower() == name.lower():
            return place
    raise TacitError(
        f"{where} has no channel {name!r}; --channels takes names out of: {', '.join(names)}."
    )


def _renamed(batch: Batch, options: ImportOptions) -> Batch:
    if not options.classes or batch.y is None:
        return batch
    y = np.array([options.classes.get(text, "") for text in batch.y.tolist()], dtype=np.str_)
    keep = y != ""
    batch.dropped[OTHER_CLASS] += int(np.count_nonzero(~keep))
    return replace(
        batch,
        X=batch.X[keep],
        y=y[keep],
        subject=None if batch.subject is None else batch.subject[keep],
    )


def _column(entry: Entry, kind: str, where: str) -> NDArray[Any]:
    values = entry.load()
    if values.ndim > 1 and max(values.shape, default=0) != values.size:
        raise TacitError(
            f"{where} has {kind} of shape {values.shape}; give one value per series or sample."
        )
    return values.reshape(-1)


def _shape(entry: Entry) -> str:
    if entry.cells:
        return f"({len(entry.cells)} recordings)"
    return f"({' x '.join(str(size) for size in entry.shape)})"
