"""Recordings as docs/reference/data.md imports them, so that its lines can be typed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from field_files import NIGHT, wave, write_edf, write_marks

STAGES = {"wake": "W", "light": "2", "deep": "3"}


def write_recordings() -> None:
    """A night, a wrist, a plant, heart beats and an archive of nights, in this folder."""
    write_edf(Path("night.edf"), seconds=240, names=("Fpz-Cz", "Pz-Oz"), marks=NIGHT)
    _write_wrist(Path("wrist.csv"))
    for state in ("good", "worn"):
        for press in (3, 4, 5):
            _write_press(Path("plant") / state / f"press{press}.csv", seed=press)
    _write_beats("100", folder="mitdb")
    for night in ("SC4001E0", "SC4011E0"):
        write_edf(Path("nights") / f"{night}-PSG.edf", seconds=240)
        stages = [(start, length, f"Sleep stage {STAGES[text]}") for start, length, text in NIGHT]
        write_marks(Path("nights") / f"{night[:7]}C-Hypnogram.edf", stages)
    with zipfile.ZipFile("sleep-edf.zip", "w") as archive:
        for file in sorted(Path("nights").iterdir()):
            archive.write(file, file.name)


def _write_wrist(path: Path) -> None:
    lines = ["user_id,time,ax,ay,az,activity"]
    for person in range(3):
        for part, activity in enumerate(("rest", "walk")):
            axes = [wave(1000, rate=50.0, seed=10 * person + part + k) for k in range(3)]
            for step, values in enumerate(np.stack(axes, axis=1)):
                cells = ",".join(f"{value:.5f}" for value in values)
                lines.append(f"u{person},{20 * part + step / 50:.2f},{cells},{activity}")
    path.write_text("\n".join(lines) + "\n")


def _write_press(path: Path, *, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        f"{k / 200:.3f},{value:.5f}" for k, value in enumerate(wave(600, rate=200.0, seed=seed))
    ]
    path.write_text("\n".join(["time,vibration", *rows]) + "\n")


def _write_beats(name: str, *, folder: str) -> None:
    import wfdb

    Path(folder).mkdir()
    signal = wave(60 * 360, rate=360.0)[:, np.newaxis]
    beats = np.arange(360, 59 * 360, 360)
    wfdb.wrsamp(
        name, fs=360, units=["mV"], sig_name=["MLII"], p_signal=signal, fmt=["16"], write_dir=folder
    )
    symbols = ["V" if k % 4 == 3 else "N" for k in range(len(beats))]
    wfdb.wrann(name, "atr", beats, symbol=symbols, write_dir=folder)
