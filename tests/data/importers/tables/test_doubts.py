"""Tables whose columns could be taken for something that they are not: asked about, not guessed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from command import Outcome, assert_refused, tacit
from field_files import wave

Capture = pytest.CaptureFixture[str]
Rows = Sequence[Sequence[object]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(header: Sequence[object], rows: Rows, name: str = "t.csv") -> str:
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows] if header else rows)
    return name


def run(capsys: Capture, source: str, *words: str) -> Outcome:
    Path("out.npz").unlink(missing_ok=True)
    return tacit(capsys, "data", "import", source, "--out", "out.npz", *words, "--json")


def steps_within_series() -> float:
    """The largest step from one sample to the next in what was imported."""
    with np.load("out.npz") as file:
        return float(np.abs(np.diff(file["X"], axis=2)).max())


def two_devices(name: str, first: object, second: object, *, person: bool) -> str:
    """Two streams, far apart in value, reported in turn."""
    rows = [
        [*(["ann"] if person else []), device, round(0.02 * t + 0.01 * k, 2),
         100 * k + np.sin(t / 7), "AB"[t // 500]]
        for t in range(1000)
        for k, device in enumerate((first, second))
    ]  # fmt: skip
    return write([*(["user_id"] if person else []), name, "time", "ax", "label"], rows)


@pytest.mark.parametrize("name", ["mac", "tag_id", "phone_id", "serial"])
def test_two_devices_in_one_table_are_never_one_stream(capsys: Capture, name: str) -> None:
    path = two_devices(name, "aa:01", "aa:02", person=False)
    assert_refused(run(capsys, path, "--window", "100"), f"'{name}' has 2 values", "--series")
    made = run(capsys, path, "--window", "100", "--series", name).json
    assert (made["series"], made["rate"]) == (20, 50.0)
    assert steps_within_series() < 0.2


@pytest.mark.parametrize("devices", [("left", "right"), (1, 2)])
def test_devices_of_one_person_are_told_apart(
    capsys: Capture, devices: tuple[object, object]
) -> None:
    path = two_devices("device", *devices, person=True)
    assert_refused(run(capsys, path, "--window", "100"), "'device' has 2 values", "--series")
    made = run(capsys, path, "--window", "100", "--series", "device").json
    assert (made["series"], made["channel_names"], made["subjects"]) == (20, ["ax"], 1)
    assert steps_within_series() < 0.2


def test_identifiers_that_mix_nothing_are_left_out(capsys: Capture) -> None:
    rows = [[k, f"tag{k % 2}", t, np.sin(t / 7 + k), "AB"[k % 2]]
            for k in range(20) for t in range(50)]  # fmt: skip
    made = run(capsys, write(["window", "tag_id", "step", "ax", "label"], rows)).json
    assert (made["series"], made["understood"]["left out"]) == (20, "'tag_id'")
    rows = [[t // 500, "AB"[t // 500], 0.02 * t, np.sin(t / 7)] for t in range(1000)]
    path = write(["activity_id", "activity", "time", "ax"], rows)
    assert run(capsys, path, "--window", "100").json["channel_names"] == ["ax"]


@pytest.mark.parametrize(("name", "first"), [("mrn", 100_234), ("driver", 1), ("age", 30)])
def test_numbers_of_persons_are_no_channels(capsys: Capture, name: str, first: int) -> None:
    rows = [[k, t, *wave(1, seed=128 * k + t), first + k // 5, "AB"[k % 2]]
            for k in range(20) for t in range(64)]  # fmt: skip
    path = write(["window", "step", "ax", name, "label"], rows)
    assert_refused(run(capsys, path), f"'{name}' keeps one number", "--subject", "--ignore")
    refused = tacit(capsys, "data", "show", path)
    assert_refused(refused, f"'{name}' keeps one number", "tacit data import")
    made = run(capsys, path, "--subject", name).json
    assert (made["channels"], made["subjects"]) == (1, 4)
    assert run(capsys, path, "--channels", f"ax,{name}").json["channels"] == 2


def test_numbers_of_recordings_are_no_channels(capsys: Capture) -> None:
    for numbers, words in (
        ([t // 300 for t in range(1200)], "keeps one whole number"),
        ([40_700 + t // 300 % 2 for t in range(1200)], "keeps one whole number"),
        ([1 + t % 3 for t in range(1200)], "in turn"),
    ):
        rows = [[0.02 * t, np.sin(t / 7), numbers[t], "AB"[t // 600]] for t in range(1200)]
        path = write(["time", "ax", "foo", "label"], rows)
        assert_refused(run(capsys, path, "--window", "100"), "'foo'", words)
    pulse = [[0.02 * t, np.sin(t / 7), 70 + round(2 * np.sin(t / 200)), "AB"[t // 600]]
             for t in range(1200)]  # fmt: skip
    made = run(capsys, write(["time", "ax", "pulse", "label"], pulse), "--window", "100").json
    assert made["channel_names"] == ["ax", "pulse"]


def test_short_series_are_not_taken_for_time_steps(capsys: Capture) -> None:
    months = [f"m{k}" for k in range(1, 13)]
    rows = [[k // 2, *wave(12, seed=k), "AB"[k // 2 % 2]] for k in range(200)]
    path = write(["id", *months, "label"], rows)
    for refused in (run(capsys, path), tacit(capsys, "data", "show", path)):
        assert_refused(refused, "200 series of length 12", "--form wide or --form long")
    made = run(capsys, path, "--form", "wide").json
    assert (made["series"], made["length"], made["subjects"]) == (200, 12, 100)
    dated = [[k // 2, f"2024-{1 + k % 12:02d}-01", *row[1:]] for k, row in enumerate(rows)]
    assert_refused(run(capsys, write(["user_id", "date", *months, "label"], dated)), "--form wide")
    axes = [f"{c}_{t}" for c in ("ax", "ay", "az") for t in range(10)]
    rows = [[k // 8, k // 4, *wave(30, seed=k), "AB"[k // 4 % 2]] for k in range(40)]
    path = write(["user_id", "session", *axes, "label"], rows)
    assert_refused(run(capsys, path), "40 series of length 10", "--form")
    made = run(capsys, path, "--form", "wide").json
    assert (made["series"], made["channels"], made["length"]) == (40, 3, 10)
    words = [[k // 2, *wave(3, seed=k), "AB"[k // 2 % 2]] for k in range(200)]
    assert_refused(run(capsys, write(["id", "warm", "wet", "windy", "label"], words)), "--form")


def test_numbered_sensors_with_a_fast_clock_are_time_steps(capsys: Capture) -> None:
    rows = [[0.002 * t, *wave(8, seed=t), "AB"[t // 500]] for t in range(1000)]
    path = write(["time", *(f"emg{k}" for k in range(8)), "label"], rows)
    made = run(capsys, path, "--window", "100").json
    assert (made["channels"], made["rate"], made["series"]) == (8, 500.0, 10)


def test_rows_of_one_person_are_known_as_such(capsys: Capture) -> None:
    steps = [f"v{t}" for t in range(60)]
    rows = [[k // 4, *wave(60, seed=k), "AB"[k % 2]] for k in range(40)]
    path = write(["id", *steps, "label"], rows)
    shown = tacit(capsys, "data", "show", path, "--json").json
    assert shown["subjects"]["in_both"] == 0
    assert run(capsys, path).json["subjects"] == 10
    for name in ("session", "tag_id", "trial"):
        path = write([name, *steps, "label"], rows)
        assert_refused(run(capsys, path), f"'{name}' is shared", f"--subject {name}", "--ignore")
        assert run(capsys, path, "--subject", name).json["subjects"] == 10
        assert run(capsys, path, "--ignore", name).json["subjects"] == 0
    rows = [[k % 2, *wave(60, seed=k), "AB"[k % 2]] for k in range(40)]
    assert run(capsys, write(["class_id", *steps, "label"], rows)).json["subjects"] == 0


def test_a_number_beside_series_without_a_header_is_asked_about(capsys: Capture) -> None:
    rows = [[k // 4, *wave(60, seed=k), "AB"[k % 2]] for k in range(40)]
    path = write([], rows)
    assert_refused(run(capsys, path), "column 1 holds whole numbers", "--subject 1", "--ignore 1")
    assert_refused(tacit(capsys, "data", "show", path), "column 1 holds whole numbers")
    made = run(capsys, path, "--subject", "1").json
    assert (made["length"], made["subjects"]) == (60, 10)
    made = run(capsys, path, "--ignore", "1").json
    assert (made["length"], made["subjects"]) == (60, 0)
    assert_refused(run(capsys, path, "--ignore", "63"), "no column '63'")
    path = write([], [[*row[1:], row[0]] for row in rows])
    assert_refused(run(capsys, path), "column 62 holds whole numbers", "--subject 62")


def test_a_number_beside_series_in_an_array_is_asked_about(capsys: Capture) -> None:
    from scipy.io import savemat

    values = np.random.default_rng(0).normal(size=(40, 100))
    labels = np.arange(40) % 2
    for place in (0, 100):
        data = np.insert(values, place, np.arange(40) // 4, axis=1)
        savemat("m.mat", {"data": data, "y": labels})
        assert_refused(run(capsys, "m.mat"), f"sample {place + 1} of every series", "m.mat")
    savemat("m.mat", {"data": np.insert(values, 0, 0, axis=1), "y": labels})
    assert run(capsys, "m.mat").json["length"] == 101


@pytest.mark.parametrize("name", ["driver", "name", "Operator", "City", "firmware"])
def test_names_of_persons_and_things_are_no_classes(capsys: Capture, name: str) -> None:
    rows = [[0.02 * t, np.sin(t / 7), "abcdef"[t // 200]] for t in range(1200)]
    path = write(["time", "ax", name], rows)
    assert_refused(run(capsys, path, "--window", "100"), f"'{name}' may say who or what", "--label")
    words = ["--window", "100", "--label", name]
    assert len(run(capsys, path, *words).json["classes"]) == 6
    made = [[k, t, np.sin(t / 7), f"p{k}"] for k in range(4) for t in range(200)]
    path = write(["user", "step", "ax", "what"], made)
    assert_refused(run(capsys, path, "--window", "100"), "'what' may say who or what")


@pytest.mark.parametrize("name", ["series", "window", "recording", "subject", "sensor_id"])
def test_columns_of_whole_series_are_never_keys(capsys: Capture, name: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = {name: [wave(50, seed=k).tolist() for k in range(20)], "label": ["a", "b"] * 10}
    pq.write_table(pa.table(table), "t.parquet")
    made = run(capsys, "t.parquet").json
    assert (made["series"], made["length"], made["channel_names"]) == (20, 50, [name])


def test_codes_for_missing_values_are_no_samples(capsys: Capture) -> None:
    rows = [[k // 4, *wave(60, seed=k), "AB"[k % 2]] for k in range(40)]
    for row in rows[::5]:
        row[8] = -9999
    rows[1][3] = 32767
    path = write(["user_id", *(f"v{t}" for t in range(60)), "label"], rows)
    assert run(capsys, path).json["series"] == 40
    made = run(capsys, path, "--missing-code=-9999,32767").json
    assert (made["series"], made["dropped"]) == (31, {"missing values": 9})
    words = ["--missing-code=-9999,32767", "--missing", "interpolate", "--max-gap", "1"]
    assert run(capsys, path, *words).json["series"] == 40
    with np.load("out.npz") as file:
        assert np.abs(file["X"]).max() < 6
    assert_refused(run(capsys, path, "--missing-code", "none"), "--missing-code", "'none'")
    times = 0.02 * np.cumsum(np.random.default_rng(0).uniform(0.5, 1.5, size=1000))
    uneven = [[time, -9999 if t % 100 == 50 else np.sin(time), "AB"[t // 500]]
              for t, time in enumerate(times.tolist())]  # fmt: skip
    path = write(["time", "ax", "label"], uneven)
    made = run(capsys, path, "--window", "20", "--rate", "50", "--missing-code=-9999").json
    assert 30 <= made["series"] <= 42
    with np.load("out.npz") as file:
        assert np.abs(file["X"]).max() < 2


def test_codes_for_missing_values_in_recordings(capsys: Capture) -> None:
    from scipy.io import savemat

    values = wave(1000)[:, np.newaxis]
    values[500] = -9999
    savemat("m.mat", {"signal": values, "label": np.repeat([1, 2], 500), "fs": 50.0})
    made = run(capsys, "m.mat", "--window", "100", "--missing-code=-9999").json
    assert (made["series"], made["dropped"]) == (9, {"missing values": 1})


def other_units(first: str, second: str, factor: float) -> str:
    import edfio

    for name, unit, scale in (("a", first, 1.0), ("b", second, factor)):
        Path("units").mkdir(exist_ok=True)
        signal = edfio.EdfSignal(
            scale * wave(12_000), 100, label="C3", physical_dimension=unit,
            physical_range=(-6 * scale, 6 * scale),
        )  # fmt: skip
        marks = [edfio.EdfAnnotation(30 * k, 30, "AB"[k % 2]) for k in range(4)]
        edfio.Edf([signal], annotations=marks).write(f"units/{name}.edf")
    return "units"


def test_volts_of_several_sizes_become_one(capsys: Capture) -> None:
    made = run(capsys, other_units("uV", "mV", 1e-3), "--window", "30s").json
    assert made["series"] == 8
    with np.load("out.npz") as file:
        np.testing.assert_allclose(file["X"][:4], file["X"][4:], atol=1e-3)
    for unit in ("g", ""):
        refused = run(capsys, other_units("uV", unit, 1.0), "--window", "30s")
        assert_refused(refused, f"'C3' in {unit or 'no unit'}", "a.edf in uV", "--channels")


def test_millivolts_of_wfdb_records_become_one_unit(capsys: Capture) -> None:
    import wfdb

    signal = wave(10_000, rate=250)[:, np.newaxis]
    for name, unit, scale in (("r0", "mV", 1.0), ("r1", "uV", 1000.0)):
        wfdb.wrsamp(name, fs=250, units=[unit], sig_name=["ECG"], fmt=["16"],
                    p_signal=scale * signal)  # fmt: skip
        beats = np.arange(300, 9500, 200)
        wfdb.wrann(name, "atr", beats, symbol=["NV"[k % 2] for k in range(len(beats))])
    made = run(capsys, ".", "--window", "100", "--points", "onset").json
    with np.load("out.npz") as file:
        half = made["series"] // 2
        np.testing.assert_allclose(file["X"][:half], file["X"][half:], atol=1e-3)
