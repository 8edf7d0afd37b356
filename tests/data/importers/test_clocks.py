"""The time column: units, clocks that start again, offsets, forms of dates, files that differ."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from command import Outcome, assert_refused, tacit

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(header: Sequence[object], rows: Sequence[Sequence[object]], name: str = "t.csv") -> str:
    Path(name).parent.mkdir(exist_ok=True)
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return name


def run(capsys: Capture, source: str, *words: str) -> Outcome:
    Path("out.npz").unlink(missing_ok=True)
    return tacit(capsys, "data", "import", source, "--out", "out.npz", *words, "--json")


def imported() -> NDArray[Any]:
    with np.load("out.npz") as file:
        return np.asarray(file["X"][:, 0])


def jittered(n: int, seed: int, jitter: float = 0.05) -> list[float]:
    steps = np.random.default_rng(seed).uniform(1 - jitter, 1 + jitter, size=n)
    return [round(float(time), 6) for time in 0.02 * np.cumsum(steps)]


def restarting(jitter: float = 0.05, first: float = 0.0) -> list[list[object]]:
    """Four persons in one table, none of whom is named, each with a constant of their own."""
    return [[first + time, 100 * k + 0.5, "AB"[t // 500]]
            for k in range(4) for t, time in enumerate(jittered(1000, k, jitter))]  # fmt: skip


@pytest.mark.parametrize(
    ("jitter", "first", "words"),
    [(0.05, 0.0, []), (0.05, 1.7e9, []), (0.5, 0.0, ["--rate", "50"])],
)
def test_a_clock_that_starts_again_starts_another_recording(
    capsys: Capture, jitter: float, first: float, words: list[str]
) -> None:
    path = write(["time", "ax", "label"], restarting(jitter, first))
    made = run(capsys, path, "--window", "100", *words).json
    assert 32 <= made["series"] <= 40
    assert float(np.ptp(imported(), axis=1).max()) < 1e-6


def test_series_whose_clock_starts_again_are_refused(capsys: Capture) -> None:
    rows = [["s1", *row] for row in restarting()]
    refused = run(capsys, write(["session", "time", "ax", "label"], rows), "--window", "100")
    assert_refused(refused, "falls back 3 times, first in row 1001", "--series")


def test_late_samples_and_parts_out_of_order_are_put_into_place(capsys: Capture) -> None:
    rows = [[round(0.02 * t, 2), float(t), "AB"[t // 500]] for t in range(1000)]
    late = [*rows[:300], rows[301], rows[302], rows[300], *rows[303:]]
    made = run(capsys, write(["time", "ax", "label"], late), "--window", "100").json
    assert made["series"] == 10
    assert np.all(np.diff(imported(), axis=1) == 1)
    parts = [["s1", *row] for row in [*rows[500:], *rows[:500]]]
    made = run(capsys, write(["session", "time", "ax", "label"], parts), "--window", "100").json
    assert made["series"] == 10
    assert np.all(np.diff(imported(), axis=1) == 1)
    mixed = [rows[(7 * k) % 1000] for k in range(1000)]
    mixed = [mixed[(333 * k) % 1000] for k in range(1000)]
    path = write(["time", "ax", "label"], mixed)
    refused = run(capsys, path, "--window", "100", "--time", "time")
    assert_refused(refused, "falls back", "sort the table")


def test_offsets_from_universal_time_are_applied(capsys: Capture) -> None:
    start = np.datetime64("2024-10-27T00:30:00", "ms")
    rows: list[list[object]] = []
    for t in range(4000):
        universal = start + np.timedelta64(700 * t, "ms")
        summer = universal < np.datetime64("2024-10-27T01:00:00")
        local = universal + np.timedelta64(2 if summer else 1, "h")
        offset = "+02:00" if summer else "+0100"
        rows.append([f"{local}{offset}", t + 0.5, "AB"[t // 2000]])
    made = run(capsys, write(["timestamp", "ax", "label"], rows), "--window", "100").json
    assert (made["series"], made["dropped"]) == (40, {})
    assert np.all(np.diff(imported(), axis=1) == 1)
    rows[7][0] = str(rows[7][0]).split("+", 1)[0]
    refused = run(capsys, write(["timestamp", "ax", "label"], rows), "--window", "100")
    assert_refused(refused, "row 8", "no offset from universal time")


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("time_min", 60), ("Time (min)", 60), ("minutes", 60), ("Time (h)", 3600),
     ("elapsed_hours", 3600), ("time [m]", 60), ("time_s", 1)],
)  # fmt: skip
def test_minutes_and_hours_are_no_seconds(capsys: Capture, name: str, seconds: int) -> None:
    rows = [[t / seconds, np.sin(t / 7), "AB"[t // 300]] for t in range(600)]
    made = run(capsys, write([name, "ax", "label"], rows), "--window", "20s").json
    assert (made["rate"], made["length"], made["series"]) == (1.0, 20, 30)


def test_an_unknown_unit_is_asked_for(capsys: Capture) -> None:
    rows = [[t / 3600, np.sin(t / 7), "AB"[t // 300]] for t in range(600)]
    path = write(["Time (Std.)", "ax", "label"], rows)
    assert_refused(run(capsys, path, "--window", "20"), "'Std.'", "--time-unit")
    assert run(capsys, path, "--window", "20", "--time-unit", "h").json["rate"] == 1.0
    rows = [[1.7e9 + t, *row[1:]] for t, row in enumerate(rows)]
    assert run(capsys, write(["Time (UTC)", "ax", "label"], rows), "--window", "20s").code == 0


def test_a_time_of_day_is_a_clock_also_past_midnight(capsys: Capture) -> None:
    def moment(t: int) -> str:
        ticks = (24 * 3600 * 50 - 700 + t) % (24 * 3600 * 50)
        return f"{ticks // 180000:02d}:{ticks // 3000 % 60:02d}:{ticks % 3000 / 50:05.2f}"

    rows = [[moment(t), t + 0.5, "AB"[t // 1000]] for t in range(2000)]
    made = run(capsys, write(["time", "ax", "label"], rows), "--window", "2s").json
    assert (made["rate"], made["series"], made["dropped"]) == (50.0, 20, {})
    assert np.all(np.diff(imported(), axis=1) == 1)
    rows = [[moment(t).replace(".", ","), 0.5 * t, "AB"[t // 1000]] for t in range(2000)]
    assert run(capsys, write(["time", "ax", "label"], rows), "--window", "2s").json["rate"] == 50.0


@pytest.mark.parametrize(
    "moment",
    ["01.05.2024 08:00:{:06.3f}", "5/1/2024 8:00:{:06.3f} AM", "2024/05/01 08:00:{:06.3f}"],
)
def test_dates_of_other_countries_are_named_and_refused(capsys: Capture, moment: str) -> None:
    rows = [[moment.format(0.02 * t), np.sin(t / 7), "AB"[t // 500]] for t in range(1000)]
    refused = run(capsys, write(["Zeit", "ax", "label"], rows), "--window", "50")
    assert_refused(refused, f"row 1, column 'Zeit' is '{rows[0][0]}'", "2024-05-01 12:00:00.25")


def test_files_whose_clocks_have_other_steps_are_refused(capsys: Capture) -> None:
    for name, step in (("a", 1), ("b", 20)):
        rows = [[step * t, np.sin(t / 7), "AB"[t // 500]] for t in range(1000)]
        write(["t", "ax", "label"], rows, f"mix/{name}.csv")
    refused = run(capsys, "mix", "--window", "50")
    assert_refused(refused, "b.csv has steps in time of 20", "a.csv of 1", "--time-unit")
    assert_refused(run(capsys, "mix", "--window", "50", "--time-unit", "ms"), "50 Hz", "--rate")


def test_files_of_a_folder_whose_rates_or_channels_differ_are_refused(capsys: Capture) -> None:
    def log(name: str, hertz: int, channels: list[str]) -> None:
        rows = [[t / hertz, *([np.sin(t / 7)] * len(channels)), "AB"[t // 200]] for t in range(400)]
        write(["time", *channels, "label"], rows, f"logs/{name}.csv")

    log("a", 50, ["ax", "ay"])
    log("b", 100, ["ax", "ay"])
    assert_refused(run(capsys, "logs", "--window", "50"), "b.csv has 100 Hz and a.csv has 50 Hz")
    assert run(capsys, "logs", "--window", "1s", "--rate", "50").json["series"] == 8 + 4
    log("b", 50, ["ay", "ax"])
    refused = run(capsys, "logs", "--window", "50")
    assert_refused(refused, "b.csv has the channels ay, ax", "--channels")
    made = run(capsys, "logs", "--window", "50", "--channels", "ax,ay").json
    assert (made["series"], made["channel_names"]) == (16, ["ax", "ay"])
    log("b", 50, ["ax"])
    assert_refused(run(capsys, "logs", "--window", "50"), "b.csv has the channels ax and")


def test_arrays_of_a_folder_whose_rates_or_channels_differ_are_refused(capsys: Capture) -> None:
    from scipy.io import savemat

    values = np.random.default_rng(0).normal(size=(4000, 2))
    Path("bench").mkdir()
    savemat("bench/a.mat", {"signal": values, "fs": 100.0, "label": np.repeat([1, 2], 2000)})
    for other, word in (
        ({"signal": values, "fs": 200.0}, "b.mat has 200 Hz and a.mat has 100 Hz"),
        ({"signal": values[:, 0], "fs": 100.0}, "b.mat has the channels channel 1 and"),
    ):
        savemat("bench/b.mat", {**other, "label": np.repeat([1, 2], 2000)})
        assert_refused(run(capsys, "bench", "--window", "100", "--form", "long"), word)
