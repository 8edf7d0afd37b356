"""Paderborn bearings (MFD): vibration at 64 kHz of healthy bearings and of damaged rings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.importers.archives.defaults import refuse_columns, with_defaults
from tacit.data.importers.archives.recipe import Made, Recipe
from tacit.data.importers.marks import OTHER_CLASS
from tacit.data.importers.matlab import load_variables
from tacit.data.importers.options import ImportOptions, Span
from tacit.data.importers.recording import (
    Material,
    Recording,
    Signal,
    Stretch,
    choose_channels,
    signal_of,
)
from tacit.errors import TacitError

NAME = "paderborn"
BOTH_RINGS = "measurement of a bearing with both rings damaged"
KINDS = {"K": "healthy", "KA": "outer", "KI": "inner"}
_FILE = re.compile(r"N\d\d_M\d\d_F\d\d_(K[ABI]?)(\d{2,3})_(\d+)\.mat", re.IGNORECASE)
_RATES = {"hostservice": 64_000.0, "mech_4khz": 4_000.0, "temp_1hz": 1.0}


def recognises(files: Sequence[Path]) -> bool:
    """Whether measurements are there under the archive's names."""
    return any(_FILE.fullmatch(path.name) for path in files)


def read(files: Sequence[Path], options: ImportOptions) -> Made:
    """Windows of 5,120 samples every 4,096; a bearing is a subject, the ring the class."""
    refuse_columns(options, archive=NAME)
    options = with_defaults(
        options, window=Span(5120, False), stride=Span(4096, False), channels=("vibration_1",)
    )
    found = [(path, match) for path in files if (match := _FILE.fullmatch(path.name))]
    if not found:
        packed = any(path.suffix.lower() == ".rar" for path in files)
        step = "unpack the .rar files first" if packed else "there are none"
        raise TacitError(f"{NAME} needs files such as N15_M07_F10_K001_1.mat; {step}.")
    mixed = [path for path, match in found if match.group(1).upper() not in KINDS]
    single = [(path, match) for path, match in found if match.group(1).upper() in KINDS]

    def items() -> Iterator[Recording]:
        dropped = Counter({BOTH_RINGS: len(mixed)})
        for path, match in single:
            kind = match.group(1).upper()
            yield _recording(path, kind, kind + match.group(2), options, dropped)
            dropped = Counter()

    notes = (("labels", "bearing code: K healthy, KA outer ring, KI inner ring"),
             ("subjects", "bearing code"))  # fmt: skip
    return (
        Material(
            format="Paderborn bearings", items=items(), n_items=len(single), notes=notes,
            dtype=np.float32,
        ),
        options,
    )  # fmt: skip


def _recording(
    path: Path, kind: str, bearing: str, options: ImportOptions, dropped: Counter[str]
) -> Recording:
    signals = _signals(path)
    chosen = choose_channels(signals, options.channels, rate=options.rate, where=path.name)
    label = options.classes.get(KINDS[kind], "") if options.classes else KINDS[kind]
    seconds = min(signal.n_samples / (signal.rate or 1.0) for signal in chosen)
    return Recording(
        where=path.name,
        signals=chosen,
        subject=None if options.subject == "none" else bearing,
        stretches=(Stretch(0.0, seconds, label),) if label else (),
        excluded=() if label else (Stretch(0.0, seconds, OTHER_CLASS),),
        dropped=dropped,
    )


def _signals(path: Path) -> list[Signal]:
    variables = load_variables(path)
    content = next((value for value in variables.values() if isinstance(value, dict)), {})
    rows: Any = content.get("Y", [])
    rows = [rows] if isinstance(rows, dict) else list(rows)
    signals = []
    for row in rows:
        if not isinstance(row, dict) or "Name" not in row or "Data" not in row:
            continue
        values = np.asarray(row["Data"], dtype=np.float64).reshape(-1)
        rate = _RATES.get(str(row.get("Raster", "")).lower(), 64_000.0)
        signals.append(signal_of(values, name=str(row["Name"]), rate=rate))
    if not signals:
        raise TacitError(
            f"{path.name} has no measurements under Y, as the files of {NAME} do; unpack it again."
        )
    return signals


RECIPE = Recipe(NAME, recognises, read)
