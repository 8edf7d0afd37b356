"""Files as clinics, plants and makers of wearables hand them over: each imported, or one sentence.

The files are written here, with the libraries and the habits of the programs that write the real
ones: units in brackets, remarks on top, decimal commas, anonymised headers, cells of cells.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from field_files import NIGHT, wave, write_edf
from tacit.data import load_dataset

Capture = pytest.CaptureFixture[str]
Rows = Sequence[Sequence[object]]


@dataclass(frozen=True)
class Case:
    """A file with the words that import it, and what must come of it: a shape or a sentence."""

    write: Callable[[], str]
    words: str = ""
    shape: tuple[int, int, int] | None = None
    classes: dict[str, int] = field(default_factory=dict)
    subjects: int = 0
    rate: float | None = None
    dropped: dict[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


def table(name: str, header: Sequence[object], rows: Rows, *, delimiter: str = ",") -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows] if header else rows)
    return name


def sleep_laboratory() -> str:
    write_edf(Path("night.edf"), seconds=240, marks=NIGHT, patient="MCH-0234567")
    return "night.edf"


def eeg_amplifier() -> str:
    """24-bit BDF, a folder per condition, the person in the file's name."""
    import edfio

    for condition in ("eyes_open", "eyes_closed"):
        for person in (1, 2):
            path = Path(f"study/{condition}/sub-{person:02d}_eeg.bdf")
            path.parent.mkdir(parents=True, exist_ok=True)
            signals = [
                edfio.BdfSignal(wave(5120, rate=256, seed=person), 256, label=name,
                                physical_range=(-6, 6), physical_dimension="uV")
                for name in ("O1", "O2")
            ]  # fmt: skip
            edfio.Bdf(signals).write(path)
    return "study"


def motor_imagery() -> str:
    """Trials at odd moments, as in the recordings of brain-computer interfaces."""
    marks = [(4.2 * k, 4.1, f"T{k % 3}") for k in range(28)]
    for person in ("S001", "S002"):
        write_edf(
            Path(f"bci/{person}/{person}R04.edf"), seconds=120, rates=(160.0,) * 2, marks=marks
        )
    return "bci"


def holter() -> str:
    import wfdb

    for name in ("100", "101"):
        wfdb.wrsamp(
            name, fs=250, units=["mV"], sig_name=["ECG"], fmt=["16"],
            p_signal=wave(15_000, rate=250, seed=int(name))[:, np.newaxis], write_dir=".",
        )  # fmt: skip
        beats = np.arange(200, 14_800, 210)
        symbols = ["N" if k % 5 else "V" for k in range(len(beats))]
        wfdb.wrann(name, "atr", beats, symbol=symbols, write_dir=".")
    return "."


def wristband() -> str:
    start = np.datetime64("2024-05-01T08:00:00")
    rows = [
        [person, str(start + np.timedelta64(31_250 * t, "us")), *np.round(xyz, 3), label]
        for person in ("P01", "P02", "P03")
        for t, (xyz, label) in enumerate(
            zip(wave(1920, rate=32).repeat(3).reshape(-1, 3), ["rest"] * 960 + ["run"] * 960,
                strict=True)
        )
    ]  # fmt: skip
    return table("wrist.csv", ["Participant ID", "Timestamp", "X", "Y", "Z", "Activity"], rows)


def phone_logger() -> str:
    """Milliseconds since 1970, remarks on top, a hole where the phone slept."""
    times = [1_714_550_400_000 + 20 * t for t in range(3000)]
    rows = [[time, *np.round([np.sin(time / 300), 0.1, 9.81], 4), "bus" if t < 1500 else "bike"]
            for t, time in enumerate(times) if not 200 <= t < 210]  # fmt: skip
    table("log.csv", ["timestamp", "accX", "accY", "accZ", "mode"], rows)
    Path("log.csv").write_text("# Sensor Logger 2.1\n# Pixel 8\n" + Path("log.csv").read_text())
    return "log.csv"


def spreadsheet() -> str:
    rows = [
        [f"{v:.3f}".replace(".", ",") for v in wave(24, seed=k)] + [("schlecht", "gut")[k % 2]]
        for k in range(12)
    ]
    return table("messung.csv", [*(f"Wert {k}" for k in range(24)), "Klasse"], rows, delimiter=";")


def smart_meters() -> str:
    header = ["meter_id", *(f"{h:02d}:{m:02d}" for h in range(24) for m in (0, 30)), "tariff"]
    rows = [[f"M{k // 5:03d}", *np.round(wave(48, seed=k), 3), "flat" if k % 2 else "peak"]
            for k in range(40)]  # fmt: skip
    return table("meters.csv", header, rows)


def windows_of_a_paper() -> str:
    header = ["", *(f"{c}_{t}" for c in ("acc_x", "acc_y", "acc_z") for t in range(32))]
    rows = [[k, *np.round(wave(96, seed=k), 4), k % 4, "AB"[k % 2]] for k in range(16)]
    return table("windows.csv", [*header[1:], "subject", "label"], [row[1:] for row in rows])


def with_row_numbers() -> str:
    rows = [[k, *np.round(wave(32, seed=k), 4), "AB"[k % 2]] for k in range(16)]
    return table("pandas.csv", ["", *(f"t{t}" for t in range(32)), "label"], rows)


def bench() -> str:
    from scipy.io import savemat

    for state in ("good", "worn"):
        for machine in ("press1", "press2", "press3"):
            path = Path(f"bench/{state}/{machine}.mat")
            path.parent.mkdir(parents=True, exist_ok=True)
            savemat(path, {"Signal": wave(4000, rate=2000)[:, np.newaxis], "Fs": 2000.0})
    return "bench"


def eeglab_epochs() -> str:
    from scipy.io import savemat

    data = np.random.default_rng(0).normal(size=(8, 256, 30))  # channels x time x trials
    kinds = np.array(["target" if k % 3 == 0 else "other" for k in range(30)], dtype=object)
    savemat("epochs.mat", {"EEG": {"data": data, "srate": 128.0}, "labels": kinds})
    return "epochs.mat"


def daq_file() -> str:
    import h5py

    with h5py.File("daq.h5", "w") as file:
        group = file.create_group("acquisition")
        group.create_dataset("signals", data=np.random.default_rng(0).normal(size=(20, 4, 500)))
        group.create_dataset("labels", data=np.array([b"ok", b"fault"] * 10))
        group.create_dataset("machine", data=np.arange(20) // 4)
        group.attrs["sampling_rate"] = 1000
    return "daq.h5"


def data_lake_windows() -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {name: [wave(64, seed=k).tolist() for k in range(20)] for name in ("hr", "eda")}
    rows |= {"user_id": [k % 4 for k in range(20)], "stress": ["high", "low"] * 10}
    pq.write_table(pa.table(rows), "lake.parquet")
    return "lake.parquet"


def data_lake_stream() -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    moments = np.datetime64("2024-01-01", "ms") + np.arange(2000) * np.timedelta64(10, "ms")
    stream = {
        "ts": np.concatenate([moments, moments]),
        "device_id": ["d1"] * 2000 + ["d2"] * 2000,
        "pressure": np.concatenate([wave(2000), wave(2000, seed=1)]),
        "flow": np.concatenate([wave(2000, seed=2), wave(2000, seed=3)]),
        "state": (["open"] * 1000 + ["shut"] * 1000) * 2,
    }
    pq.write_table(pa.table(stream), "stream.parquet")
    return "stream.parquet"


def lossy_radio() -> str:
    rows: list[list[object]] = [[*np.round(wave(40, seed=k), 3), "AB"[k % 2]] for k in range(12)]
    rows[2][5] = rows[7][0] = ""
    return table("radio.csv", [*(f"s{t}" for t in range(40)), "label"], rows)


def cut_short() -> str:
    sleep_laboratory()
    content = Path("night.edf").read_bytes()
    Path("night.edf").write_bytes(content[:-5000])
    return "night.edf"


def other_night() -> str:
    write_edf(Path("night.edf"), seconds=240, marks=[*NIGHT, (3000.0, 30.0, "wake")])
    return "night.edf"


def without_labels() -> str:
    rows = [[round(0.01 * t, 2), *np.round(wave(1, seed=t), 3)] for t in range(500)]
    return table("raw.csv", ["time", "volt"], rows)


def excel() -> str:
    Path("data.xlsx").write_bytes(b"PK\x03\x04not a table of text")
    return "data.xlsx"


def two_amplifiers() -> str:
    write_edf(Path("lab/a.edf"), seconds=240, marks=NIGHT)
    write_edf(Path("lab/b.edf"), seconds=240, marks=NIGHT, rates=(200.0, 200.0))
    return "lab"


def short_recordings() -> str:
    for label in ("yes", "no"):
        table(f"short/{label}/1.csv", ["time", "v"], [[0.1 * t, 1.0] for t in range(20)])
    return "short"


CASES: dict[str, Case] = {
    "sleep laboratory, EDF+": Case(
        sleep_laboratory, "--window 30s", (8, 2, 3000), {"deep": 2, "light": 3, "wake": 3}, 1, 100.0
    ),
    "EEG amplifier, BDF": Case(
        eeg_amplifier, r"--window 2s --label folder --subject sub-(\d+)", (40, 2, 512),
        {"eyes_closed": 20, "eyes_open": 20}, 2, 256.0,
    ),
    "brain-computer interface, EDF+": Case(
        motor_imagery, "--window 4s --subject folder --classes T1=left,T2=right", (36, 2, 640),
        {"left": 18, "right": 18}, 2, 160.0, {"label not among --classes": 20},
    ),
    "Holter, WFDB": Case(
        holter, "--window 0.6s --points centre", (140, 1, 150), {"N": 112, "V": 28}, 2, 250.0
    ),
    "wristband, long CSV": Case(
        wristband, "--window 10s --stride 5s", (30, 3, 320), {"rest": 15, "run": 15}, 3, 32.0
    ),
    "phone logger, CSV with a hole": Case(
        phone_logger, "--window 2s", (29, 3, 100), {"bike": 15, "bus": 14}, 0, 50.0,
        {"missing values": 1},
    ),
    "the same, holes filled": Case(
        phone_logger, "--window 2s --missing interpolate --max-gap 200ms", (30, 3, 100),
        {"bike": 15, "bus": 15}, 0, 50.0,
    ),
    "spreadsheet, decimal commas": Case(
        spreadsheet, "", (12, 1, 24), {"gut": 6, "schlecht": 6}
    ),
    "smart meters, half-hours": Case(
        smart_meters, "", (40, 1, 48), {"flat": 20, "peak": 20}, 8
    ),
    "windows of a paper, wide CSV": Case(
        windows_of_a_paper, "", (16, 3, 32), {"A": 8, "B": 8}, 4
    ),
    "pandas with its index": Case(with_row_numbers, refused=("row numbers", "without its index")),
    "test bench, MATLAB": Case(
        bench, "--window 0.5s --label folder --subject file", (24, 1, 1000),
        {"good": 12, "worn": 12}, 3, 2000.0,
    ),
    "EEGLAB epochs, MATLAB": Case(
        eeglab_epochs, "", (30, 8, 256), {"other": 20, "target": 10}, 0, 128.0
    ),
    "data acquisition, HDF5": Case(
        daq_file, "--subject acquisition.machine", (20, 4, 500), {"fault": 10, "ok": 10}, 5, 1000.0
    ),
    "data lake, windows in Parquet": Case(
        data_lake_windows, "--label stress", (20, 2, 64), {"high": 10, "low": 10}, 4
    ),
    "data lake, stream in Parquet": Case(
        data_lake_stream, "--window 1s --rate 50", (40, 2, 50), {"open": 20, "shut": 20}, 2, 50.0
    ),
    "lossy radio, empty cells": Case(
        lossy_radio, "", (10, 1, 40), {"A": 5, "B": 5}, dropped={"missing values": 2}
    ),
    "EDF cut short": Case(cut_short, "--window 30s", refused=("truncated", "night.edf")),
    "annotations of another night": Case(
        other_night, "--window 30s", refused=("outside of it", "--classes")
    ),
    "recording without labels": Case(without_labels, "--window 1s", refused=("--label",)),
    "the same, without": Case(
        without_labels, "--window 1s --label none", (5, 1, 100), {}, 0, 100.0
    ),
    "Excel": Case(excel, refused=("data.xlsx", "no format that can be imported")),
    "two amplifiers": Case(two_amplifiers, "--window 30s", refused=("200 Hz", "100 Hz", "--rate")),
    "recordings below a window": Case(
        short_recordings, "--window 5s --label folder", refused=("shorter than a window: 2",)
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_there_are_twenty() -> None:
    assert len({case.write for case in CASES.values()}) >= 20


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_the_field(capsys: Capture, name: str) -> None:
    case = CASES[name]
    source = case.write()
    before = sorted(Path().rglob("*"))
    outcome = tacit(
        capsys, "data", "import", source, "--out", "made.npz", *case.words.split(), "--json"
    )
    if case.refused:
        assert_refused(outcome, *case.refused)
        assert sorted(Path().rglob("*")) == before
        return
    assert outcome.code == 0, outcome.err
    made: dict[str, Any] = json.loads(outcome.out)
    assert (made["series"], made["channels"], made["length"]) == case.shape
    assert made["class_counts"] == case.classes
    assert (made["subjects"], made["rate"]) == (case.subjects, case.rate)
    assert made["dropped"] == case.dropped
    assert sorted(Path().rglob("*")) == sorted([*before, Path("made.npz")])
    if case.classes and case.subjects != 1:
        data = load_dataset("made.npz")
        assert (data.channels, data.length) == case.shape[1:]
        assert set(data.classes) == set(case.classes)
        assert case.subjects == 0 or (data.subjects() or {})["in_both"] == 0


@pytest.mark.parametrize(
    ("library", "name"),
    [("edfio", "sleep laboratory, EDF+"), ("wfdb", "Holter, WFDB"),
     ("h5py", "data acquisition, HDF5"), ("pyarrow", "data lake, windows in Parquet")],
)  # fmt: skip
def test_a_missing_library_is_told_with_the_line_to_type(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, library: str, name: str
) -> None:
    import sys

    source = CASES[name].write()
    monkeypatch.setitem(sys.modules, library, None)
    words = CASES[name].words.split()
    refused = tacit(capsys, "data", "import", source, "--out", "made.npz", *words)
    assert_refused(refused, library, "pip install 'tacit-ts[import]'")
    assert not Path("made.npz").exists()
