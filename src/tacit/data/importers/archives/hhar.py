"""HHAR: nine persons with phones and watches of many rates; brought to 50 Hz here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.importers.archives.defaults import find, need, refuse_columns, with_defaults
from tacit.data.importers.archives.recipe import Made, Recipe
from tacit.data.importers.marks import wanted_runs
from tacit.data.importers.options import ImportOptions, Span
from tacit.data.importers.recording import Material, Recording, choose_channels, signal_of
from tacit.data.importers.tables.clock import evened, last_before
from tacit.errors import TacitError

NAME = "hhar"
REPEATED = "repeated time step"
SENSORS = (
    "Phones_accelerometer", "Phones_gyroscope", "Watch_accelerometer", "Watch_gyroscope",
)  # fmt: skip
_COLUMNS = ("Creation_Time", "x", "y", "z", "User", "Device", "gt")
_CHUNK = 500_000
_BREAK = 2.0  # seconds without a sample: the recording was stopped
_FEWEST = 10  # samples


def recognises(files: Sequence[Path]) -> bool:
    """Whether one of the sensors' files is there."""
    return any(find(files, f"{sensor}.csv") for sensor in SENSORS)


def read(files: Sequence[Path], options: ImportOptions) -> Made:
    """Windows of 128 samples at 50 Hz of one sensor; --array names another sensor."""
    refuse_columns(options, archive=NAME)
    options = with_defaults(options, window=Span(128, False), rate=50.0)
    sensor = options.array or SENSORS[0]
    if sensor not in SENSORS:
        raise TacitError(f"--array for {NAME} is one of {', '.join(SENSORS)}, got {sensor!r}.")
    table = _Table(need(files, f"{sensor}.csv", archive=NAME))
    notes = (("sensor", sensor), ("labels", "column 'gt'"), ("subjects", "column 'User'"),
             ("recordings by", "User and Device"))  # fmt: skip
    groups = table.groups()
    items = _recordings(table, groups, options)
    return Material(format="HHAR", items=items, n_items=len(groups), notes=notes), options


class _Table:
    """The columns that matter, in few bytes, because the files have 13 million rows."""

    def __init__(self, path: Path) -> None:
        import pandas as pd

        try:
            chunks = [self._packed(chunk) for chunk in self._chunks(pd, path)]
        except (ValueError, OSError, UnicodeDecodeError) as error:
            raise TacitError(
                f"{path.name} is not the table of {NAME} ({error}); unpack the archive again."
            ) from error
        if not chunks:
            raise TacitError(f"{path.name} has no rows; unpack the archive again.")
        self.time, self.axes = (np.concatenate([c[k] for c in chunks], axis=-1) for k in (0, 1))
        self.person, self.device, self.label = (
            np.concatenate([c[k] for c in chunks]) for k in (2, 3, 4)
        )

    @staticmethod
    def _chunks(pd: Any, path: Path) -> Iterator[Any]:
        numbers = dict.fromkeys("xyz", np.float32) | {"Creation_Time": np.int64}
        texts = dict.fromkeys(("User", "Device", "gt"), str)
        return iter(
            pd.read_csv(
                path, usecols=list(_COLUMNS), dtype=numbers | texts, chunksize=_CHUNK,
                keep_default_na=False,
            )
        )  # fmt: skip

    @staticmethod
    def _packed(chunk: Any) -> tuple[Integers, NDArray[np.float32], Any, Any, Any]:
        texts = [chunk[name].to_numpy().astype("U12") for name in ("User", "Device", "gt")]
        axes = np.stack([chunk[name].to_numpy() for name in "xyz"])
        return chunk["Creation_Time"].to_numpy(), axes, texts[0], texts[1], texts[2]

    def groups(self) -> list[Integers]:
        """The rows of each person with each device."""
        keys = np.stack([np.unique(c, return_inverse=True)[1].reshape(-1)
                         for c in (self.person, self.device)])  # fmt: skip
        code = keys[0] * (int(keys[1].max()) + 1) + keys[1]
        order = np.argsort(code, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def _recordings(
    table: _Table, groups: list[Integers], options: ImportOptions
) -> Iterator[Recording]:
    for rows in groups:
        yield from _group(table, rows, options)


def _group(table: _Table, rows: Integers, options: ImportOptions) -> Iterator[Recording]:
    ordered = rows[np.argsort(table.time[rows], kind="stable")]
    seconds = (table.time[ordered] - table.time[ordered[0]]) / 1e9
    fresh = np.concatenate(([True], np.diff(seconds) > 0))
    dropped = Counter({REPEATED: int(np.count_nonzero(~fresh))})
    ordered, seconds = ordered[fresh], seconds[fresh]
    steps = np.diff(seconds)
    if len(steps) < _FEWEST:
        return
    native = 1.0 / float(np.median(steps))
    # An even grid at a whole rate, never coarser than the samples or what is asked for.
    rate = float(max(round(native), options.rate or 0, 1))
    pieces = np.split(np.arange(len(ordered)), np.flatnonzero(steps > _BREAK) + 1)
    for piece in pieces:
        if len(piece) >= _FEWEST:
            yield _recording(table, ordered[piece], seconds[piece], rate, options, dropped)
            dropped = Counter()


def _recording(
    table: _Table,
    rows: Integers,
    seconds: Floats,
    rate: float,
    options: ImportOptions,
    dropped: Counter[str],
) -> Recording:
    labels = table.label[rows][last_before(seconds, 1.0 / rate)]
    labels = np.where(labels == "null", "", labels)
    stretches, excluded = wanted_runs(labels, options, rate=rate)
    signals = [
        signal_of(
            evened(seconds, table.axes[k, rows].astype(np.float64), 1.0 / rate),
            name=name,
            rate=rate,
        )
        for k, name in enumerate("xyz")
    ]
    person = str(table.person[rows[0]])
    return Recording(
        where=f"{NAME} {person} {table.device[rows[0]]}",
        signals=choose_channels(signals, options.channels, rate=options.rate, where=NAME),
        subject=None if options.subject == "none" else person,
        stretches=stretches,
        excluded=excluded,
        dropped=dropped,
    )


RECIPE = Recipe(NAME, recognises, read)
