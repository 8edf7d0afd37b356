"""UCI HAR: 10,299 windows of 128 samples at 50 Hz, nine channels, split by person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.importers.archives.defaults import find, need, refuse_columns
from tacit.data.importers.archives.recipe import Made, Recipe
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import Batch, Material
from tacit.errors import TacitError

NAME = "uci-har"
_LENGTH = 128
_SIGNALS = tuple(
    f"{sensor}_{axis}" for sensor in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"
)


def recognises(files: Sequence[Path]) -> bool:
    """Whether the inertial signals are there."""
    return find(files, "train/Inertial Signals/body_acc_x_train.txt") is not None


def read(files: Sequence[Path], options: ImportOptions) -> Made:
    """The published windows and the published split, persons apart."""
    refuse_columns(options, archive=NAME)
    names = options.channels or _SIGNALS
    for name in names:
        if name not in _SIGNALS:
            raise TacitError(
                f"{NAME} has no channel {name!r}; --channels takes names out of: "
                f"{', '.join(_SIGNALS)}."
            )
    classes = _classes(need(files, "activity_labels.txt", archive=NAME))

    def items() -> Iterator[Batch]:
        for part in ("train", "test"):
            yield _part(files, part, names, classes, options)

    notes = (("labels", "activity_labels.txt"), ("subjects", "subject_train.txt, subject_test.txt"),
             ("split", "the published one, by person"))  # fmt: skip
    return Material(format="UCI HAR", items=items(), n_items=2, notes=notes), options


def _part(
    files: Sequence[Path],
    part: str,
    names: Sequence[str],
    classes: dict[str, str],
    options: ImportOptions,
) -> Batch:
    signals = [
        _table(need(files, f"{part}/Inertial Signals/{name}_{part}.txt", archive=NAME))
        for name in names
    ]
    codes = _words(need(files, f"{part}/y_{part}.txt", archive=NAME))
    persons = _words(need(files, f"{part}/subject_{part}.txt", archive=NAME))
    counts = {len(codes), len(persons), *(len(signal) for signal in signals)}
    if len(counts) > 1:
        raise TacitError(
            f"{NAME} {part} has files of {min(counts)} to {max(counts)} rows; unpack it again."
        )
    unknown = set(codes.tolist()) - set(classes)
    if unknown:
        raise TacitError(
            f"{NAME} y_{part}.txt has the code {min(unknown)!r}, which activity_labels.txt does "
            "not name; unpack it again."
        )
    return Batch(
        where=f"{NAME} {part}",
        X=np.stack(signals, axis=1),
        channel_names=tuple(names),
        y=np.array([classes[code] for code in codes.tolist()]),
        subject=None if options.subject == "none" else persons,
        rate=50.0,
        part=part,
    )


def _classes(path: Path) -> dict[str, str]:
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return {row[0]: row[-1] for row in rows}


def _words(path: Path) -> NDArray[np.str_]:
    return np.array(path.read_text(encoding="utf-8").split(), dtype=np.str_)


def _table(path: Path) -> Floats:
    words = path.read_text(encoding="utf-8").split()
    try:
        values = np.array(words, dtype=np.float64)
    except ValueError as error:
        raise TacitError(
            f"{path.name} holds something other than numbers ({error}); unpack the archive again."
        ) from error
    if len(values) == 0 or len(values) % _LENGTH:
        raise TacitError(
            f"{path.name} has {len(values)} values, which is not a multiple of {_LENGTH}; unpack "
            "the archive again."
        )
    return values.reshape(-1, _LENGTH)


RECIPE = Recipe(NAME, recognises, read)
