"""Files as users in the field have them, written for a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def wave(n: int, *, rate: float = 100.0, seed: int = 0, hertz: float = 1.0) -> Floats:
    """Something like a signal: a tone with noise, within [-5, 5]."""
    rng = np.random.default_rng(seed)
    tone = np.sin(2 * np.pi * hertz * np.arange(n) / rate)
    signal: Floats = np.clip(tone + 0.3 * rng.standard_normal(n), -5.0, 5.0)
    return signal


def write_edf(
    path: Path,
    *,
    seconds: int = 120,
    rates: Sequence[float] = (100.0, 100.0),
    names: Sequence[str] = ("EEG Fpz-Cz", "EEG Pz-Oz"),
    marks: Sequence[tuple[float, float | None, str]] = (),
    patient: str = "X",
) -> list[Floats]:
    """An EDF (EDF+ if it has annotations); returns the samples of each channel."""
    import edfio

    values = [wave(int(seconds * rate), rate=rate, seed=k) for k, rate in enumerate(rates)]
    signals = [
        edfio.EdfSignal(x, rate, label=name, physical_dimension="uV", physical_range=(-6, 6))
        for x, rate, name in zip(values, rates, names, strict=True)
    ]
    annotations = [edfio.EdfAnnotation(*mark) for mark in marks] or None
    edf = edfio.Edf(signals, patient=edfio.Patient(code=patient), annotations=annotations)
    path.parent.mkdir(parents=True, exist_ok=True)
    edf.write(path)
    return values


def write_marks(path: Path, marks: Sequence[tuple[float, float | None, str]]) -> None:
    """An EDF+ with annotations alone, as hypnograms are."""
    import edfio

    path.parent.mkdir(parents=True, exist_ok=True)
    edfio.Edf([], annotations=[edfio.EdfAnnotation(*mark) for mark in marks]).write(path)


NIGHT = tuple(
    (30.0 * k, 30.0, text)
    for k, text in enumerate(["wake", "wake", "light", "light", "deep", "deep", "light", "wake"])
)
