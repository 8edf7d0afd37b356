"""From a source to one file: find the reader, cut, check, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.importers.options import ImportOptions
from tacit.data.importers.output import SeriesFile
from tacit.data.importers.recording import Alike, Batch, Material, Recording
from tacit.data.importers.resample import with_missing
from tacit.data.importers.sources import opened_source
from tacit.data.importers.windows import NO_LABEL, cut_batch, cut_recording
from tacit.data.validate import NO_LABELS, label_text
from tacit.errors import TacitError
from tacit.system.progress import Progress, silent

_MANY_CLASSES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import made, and what it understood; `dropped` counts windows by reason."""

    out: Path
    format: str
    series: int
    channel_names: tuple[str, ...]
    length: int
    rate: float | None
    class_counts: dict[str, int]
    subject_counts: dict[str, int]
    dropped: dict[str, int]
    notes: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """As `tacit data import --json` prints it."""
        return {
            "series": self.series,
            "channels": len(self.channel_names),
            "channel_names": list(self.channel_names),
            "length": self.length,
            "rate": self.rate,
            "classes": list(self.class_counts),
            "class_counts": self.class_counts,
            "subjects": len(self.subject_counts),
            "dropped": self.dropped,
            "format": self.format,
            "understood": dict(self.notes),
            "out": self.out,
        }


def import_data(
    source: Path, out: Path, options: ImportOptions, *, progress: Progress = silent
) -> Imported:
    """Make one .npz of a file, folder or archive; on any refusal nothing is written."""
    if out.suffix.lower() != ".npz":
        raise TacitError(f"--out must end in .npz, got {out.name!r}.")
    if out.exists():
        raise TacitError(f"{out} exists already; choose another --out.")
    if not source.exists():
        raise TacitError(f"there is no file or folder {str(source)!r}; check the path.")
    with opened_source(source, options) as (material, told):
        return _import(material, out, told, progress)


def _import(material: Material, out: Path, options: ImportOptions, progress: Progress) -> Imported:
    dropped: Counter[str] = Counter()
    alike = Alike()
    with SeriesFile(out, dtype=material.dtype) as file:
        for done, found_item in enumerate(material.items):
            progress(min(done, material.n_items), material.n_items, found_item.where)
            item = alike.taken(with_missing(found_item, options.missing_codes), options)
            for found in _pieces(item, options, dropped):
                piece = found if options.unlabelled else _labelled(found, dropped)
                file.add(
                    piece.X,
                    y=None if options.unlabelled else piece.y,
                    subject=piece.subject,
                    part=piece.part,
                    where=piece.where,
                )
        progress(material.n_items, material.n_items, f"writing {out.name}")
        counts = {reason: count for reason, count in sorted(dropped.items()) if count}
        classes = _checked_classes(file, counts, options)
        file.publish(rate=alike.rate, channel_names=alike.channel_names)
        return Imported(
            out=out,
            format=material.format,
            series=file.n_series,
            channel_names=alike.channel_names,
            length=file.shape[1],
            rate=alike.rate,
            class_counts=classes,
            subject_counts=dict(sorted(file.subjects().items())),
            dropped=counts,
            notes=(*material.notes, *_advice(file)),
        )


def _advice(file: SeriesFile) -> Iterator[tuple[str, str]]:
    if len(file.subjects()) == 1:
        yield (
            "note",
            "one subject: to train, add others, or import with --subject none to split at random",
        )


def _pieces(
    item: Recording | Batch, options: ImportOptions, dropped: Counter[str]
) -> Iterator[Batch]:
    if isinstance(item, Batch):
        yield from cut_batch(item, options, dropped)
        return
    for windows in cut_recording(item, options, dropped):
        subject = None if item.subject is None else np.full(len(windows.X), item.subject)
        yield Batch(
            where=item.where,
            X=windows.X,
            channel_names=tuple(signal.name for signal in item.signals),
            y=np.array([label_text(label) for label in windows.y.tolist()], dtype=np.str_),
            subject=subject,
            part=item.part,
        )


def _labelled(batch: Batch, dropped: Counter[str]) -> Batch:
    """Without the windows whose label says that there is none, such as ? or nan."""
    assert batch.y is not None
    empty = np.array([label.lower() in NO_LABELS for label in batch.y.tolist()], dtype=np.bool_)
    if not empty.any():
        return batch
    dropped[NO_LABEL] += int(np.count_nonzero(empty))
    return replace(
        batch,
        X=batch.X[~empty],
        y=batch.y[~empty],
        subject=None if batch.subject is None else batch.subject[~empty],
    )


def _checked_classes(
    file: SeriesFile, dropped: dict[str, int], options: ImportOptions
) -> dict[str, int]:
    if not file.n_series:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items())
        raise TacitError(
            f"no window is left ({reasons or 'the source has none'}); change --window, --missing "
            "or the labels."
        )
    counts = dict(sorted(file.classes().items()))
    if len(counts) == 1 and not options.unlabelled:
        raise TacitError(
            f"all {file.n_series} windows have the one class {next(iter(counts))!r}, and a "
            "classifier needs two; add recordings, or pass --label none to import without labels."
        )
    if len(counts) > max(_MANY_CLASSES, file.n_series / 2):
        raise TacitError(
            f"the {file.n_series} windows have {len(counts)} different labels, too many "
            "for classes; name another --label, or group them with --classes."
        )
    return counts
