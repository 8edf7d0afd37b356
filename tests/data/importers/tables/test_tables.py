from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from command import Outcome, assert_refused, tacit
from field_files import wave
from tacit.data import load_dataset
from tacit.errors import TacitError

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: Capture, source: object, *options: object) -> Outcome:
    return tacit(capsys, "data", "import", source, "--out", "out.npz", *options, "--json")


def write(name: str, header: Sequence[object], rows: Sequence[Sequence[object]]) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows] if header else rows)
    return path


def cube(n: int, channels: int = 3, length: int = 128, seed: int = 0) -> NDArray[Any]:
    return np.round(np.random.default_rng(seed).normal(size=(n, channels, length)), 4)


def loaded(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """All series of a data set, in the order of their first values, with their labels."""
    data = load_dataset(path)
    X = np.concatenate([data.X_train, data.X_test])
    order = np.argsort(X[:, 0, 0])
    return X[order], np.concatenate([data.y_train, data.y_test])[order]


def same_series(path: Path, X: NDArray[Any], y: Sequence[str]) -> None:
    found, labels = loaded(path)
    order = np.argsort(X[:, 0, 0])
    np.testing.assert_allclose(found, X[order], atol=1e-6)
    assert labels.tolist() == [y[k] for k in order]


LABELS = ["walk", "sit"] * 15


def test_a_user_id_is_a_subject_and_no_sample() -> None:
    X = cube(30, channels=1, length=20)
    rows = [[k % 5, LABELS[k], *X[k, 0]] for k in range(30)]
    path = write("t.csv", ["user_id", "label", *range(20)], rows)
    same_series(path, X, LABELS)
    data = load_dataset(path)
    assert data.subject_train is not None
    assert data.subject_test is not None
    assert not set(data.subject_train) & set(data.subject_test)
    assert "by subject" in data.note


def long_rows(X: NDArray[Any], y: Sequence[str]) -> list[list[object]]:
    return [[k, t, *X[k, :, t], y[k]] for k in range(len(X)) for t in range(X.shape[2])]


def test_a_long_table_is_one_series_per_window() -> None:
    X = cube(30)
    path = write("t.csv", ["window", "t", "ax", "ay", "az", "label"], long_rows(X, LABELS))
    same_series(path, X, LABELS)
    assert load_dataset(path).channel_names == ("ax", "ay", "az")


@pytest.mark.parametrize("name", ["{c}_{t}", "{c}.{t}", "{c}[{t}]", "{c}{t:03d}", "{c} {t}"])
def test_numbered_columns_of_several_channels_are_channels(name: str) -> None:
    X = cube(30)
    header = [name.format(c=c, t=t) for c in ("ax", "ay", "az") for t in range(128)]
    path = write("t.csv", [*header, "label"], [[*X[k].ravel(), LABELS[k]] for k in range(30)])
    same_series(path, X, LABELS)
    assert load_dataset(path).channel_names == ("ax", "ay", "az")
    by_time = [name.format(c=c, t=t) for t in range(128) for c in ("ax", "ay", "az")]
    rows = [[*X[k].T.ravel(), LABELS[k]] for k in range(30)]
    same_series(write("u.csv", [*by_time, "label"], rows), X, LABELS)


def test_channels_in_time_steps_without_a_hint_are_not_read_as_series() -> None:
    rows = [[*cube(1)[0, :, t % 128], LABELS[t // 64]] for t in range(640)]
    path = write("t.csv", ["ax", "ay", "az", "label"], rows)
    with pytest.raises(TacitError, match="--form wide or --form long"):
        load_dataset(path)
    with pytest.raises(TacitError, match="--form"):
        load_dataset(write("u.csv", [], rows))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("foo", list(range(100, 130)), "row numbers"),
        ("foo", [1.7e9 + 60 * k for k in range(30)], "timestamps"),
        ("foo", [1.7e12 + 6e4 * k for k in range(30)], "timestamps"),
        ("age", [30 + k % 7 for k in range(30)], "does not belong"),
        ("time", [k % 2 for k in range(30)], "named like a time"),
        ("note", ["x", "y", "z"] * 10, "texts in the columns"),
    ],
)
def test_what_is_no_sample_is_never_taken_as_one(
    name: str, values: list[object], words: str
) -> None:
    X = cube(30, channels=1, length=20)
    rows = [[values[k], *X[k, 0], LABELS[k]] for k in range(30)]
    # "note" leaves two texts if the label has another name.
    label = "kind" if name == "note" else "label"
    path = write("t.csv", [name, *[f"x{t}" for t in range(20)], label], rows)
    with pytest.raises(TacitError, match=words):
        load_dataset(path)


@pytest.mark.parametrize("name", ["id", "row_id", "uuid", "recordId", "serial", "timestamp"])
def test_identifiers_and_moments_beside_a_series_are_left_out(name: str) -> None:
    X = cube(30, channels=1, length=20)
    rows = [[7 * k, *X[k, 0], LABELS[k]] for k in range(30)]
    header = [name, *[f"x{t}" for t in range(20)], "label"]
    same_series(write("t.csv", header, rows), X, LABELS)


def test_columns_named_by_words_are_not_taken_for_time_steps(capsys: Capture) -> None:
    rows = [[20.5, 0.4 + 0.01 * k, 1013.0, LABELS[k % 30]] for k in range(40)]
    path = write("t.csv", ["temperature", "humidity", "pressure", "label"], rows)
    with pytest.raises(TacitError, match="40 series of length 3 or time steps of 3 channels"):
        load_dataset(path)
    made = run(capsys, path, "--form", "wide").json
    assert (made["series"], made["channels"], made["length"]) == (40, 1, 3)
    X = cube(30, channels=1, length=20)
    header = [*(f"{1000.5 + 2 * t}" for t in range(20)), "label"]
    same_series(write("u.csv", header, [[*X[k, 0], LABELS[k]] for k in range(30)]), X, LABELS)


def test_a_refusal_names_the_command_whose_options_it_names(capsys: Capture) -> None:
    series = cube(8, channels=1, length=8)[:, 0].tolist()
    rows = [[100_234 + 7 * k, *row, "ab"[k % 2]] for k, row in enumerate(series)]
    path = write("t.csv", ["MRN", *(f"t{k}" for k in range(8)), "label"], rows)
    assert_refused(run(capsys, path), "'MRN'", "--ignore")
    refused = tacit(capsys, "train", "softshape", "--data", path)
    assert_refused(refused, "'MRN'", "--ignore (options of 'tacit data import').")
    unsaid = write("u.csv", [], series)
    refused = tacit(capsys, "train", "softshape", "--data", unsaid)
    assert_refused(refused, "--label")
    assert "tacit data import" not in refused.err


def test_texts_that_are_no_labels_are_not_taken_as_such(capsys: Capture) -> None:
    header = [*(f"x{t}" for t in range(20)), "what"]
    files = [[*wave(20, seed=k), f"rec_{k:04d}.wav"] for k in range(60)]
    assert_refused(run(capsys, write("t.csv", header, files)), "identifier", "--ignore")
    days = [[*wave(20, seed=k), f"2024-05-{k % 28 + 1:02d} 10:00"] for k in range(28)]
    assert_refused(run(capsys, write("t.csv", header, days)), "which column is the label")
    values = [[*wave(20, seed=k), 0.01 * k] for k in range(200)]
    refused = run(capsys, write("t.csv", [*header[:-1], "target"], values))
    assert_refused(refused, "200 different labels")


def test_labels_that_say_there_is_none_drop_their_series(capsys: Capture) -> None:
    rows = [[*wave(10, seed=k), ("a", "b", "", "?", "nan", "None")[k % 6]] for k in range(24)]
    made = run(capsys, write("t.csv", [*(f"x{t}" for t in range(10)), "label"], rows)).json
    assert (made["class_counts"], made["dropped"]) == ({"a": 4, "b": 4}, {"no label": 16})


def test_classes_are_chosen_and_renamed_in_either_form(capsys: Capture) -> None:
    words = ["--classes", "walk=move,run=move"]
    rows = [[*wave(10, seed=k), ("walk", "run", "sit")[k % 3]] for k in range(24)]
    path = write("t.csv", [*(f"x{t}" for t in range(10)), "label"], rows)
    assert_refused(run(capsys, path, *words), "one class 'move'")
    made = run(capsys, path, "--classes", "walk=move,sit=rest").json
    assert made["class_counts"] == {"move": 8, "rest": 8}
    assert made["dropped"] == {"label not among --classes": 8}
    Path("out.npz").unlink()
    made = run(capsys, long_table(), "--window", "100", "--classes", "walk,run=hurry").json
    assert made["class_counts"] == {"hurry": 15, "walk": 15}
    Path("out.npz").unlink()
    rows = [[t, np.sin(t), ("a", "b", "c")[t // 200]] for t in range(600)]
    path = write("u.csv", ["time", "v", "label"], rows)
    made = run(capsys, path, "--window", "50", "--classes", "a,c").json
    assert made["dropped"] == {"label not among --classes": 4}


def test_missing_values_are_told_as_they_stand_there() -> None:
    for cell, shown in (("", r"\(nothing\)"), ("NaN", "NaN"), ("NA", "NA"), ("?", r"\?")):
        rows = [["a", 1, 2, 3], ["b", 4, cell, 6], ["a", 1, 2, 2], ["b", 4, 4, 4]]
        path = write("t.csv", ["label", "x0", "x1", "x2"], rows)
        with pytest.raises(TacitError, match=rf"row 2, step 2 .*column 'x1'\) is {shown}"):
            load_dataset(path)


def test_import_drops_or_fills_them_by_request(capsys: Capture) -> None:
    rows = [[k % 4, *wave(50, seed=k), "ab"[k % 2]] for k in range(12)]
    rows[3][10] = ""
    rows[5][10] = rows[5][11] = rows[5][12] = "NaN"
    path = write("t.csv", ["user", *[f"x{t}" for t in range(50)], "label"], rows)
    made = run(capsys, path).json
    assert (made["series"], made["dropped"]) == (10, {"missing values": 2})
    Path("out.npz").unlink()
    made = run(capsys, path, "--missing", "interpolate", "--max-gap", "2").json
    assert (made["series"], made["dropped"]) == (11, {"missing values": 1})
    with np.load("out.npz") as file:
        row = np.array(rows[3][1:51], dtype=object)
        expected = (float(row[8]) + float(row[10])) / 2
        assert abs(file["X"][3, 0, 9] - expected) < 1e-9


def recording(
    n: int, *, start: float = 0.0, step: float = 0.02, seed: int = 0
) -> list[list[object]]:
    axes = [wave(n, rate=50, seed=3 * seed + k) for k in range(3)]
    return [[round(start + step * t, 4), *(axis[t] for axis in axes)] for t in range(n)]


def long_table(name: str = "t.csv", *, n: int = 1000) -> Path:
    rows = [
        [person, *row, "walk" if t < n // 2 else "run"]
        for person in ("ann", "bob", "cem")
        for t, row in enumerate(recording(n, seed=len(person)))
    ]
    return write(name, ["user", "time_s", "ax", "ay", "az", "activity"], rows)


def test_a_long_recording_is_cut_along_its_labels(capsys: Capture) -> None:
    path = long_table()
    assert_refused(run(capsys, path), "label changes", "--window")
    made = run(capsys, path, "--window", "2s").json
    assert made["class_counts"] == {"run": 15, "walk": 15}
    assert (made["length"], made["rate"], made["subjects"]) == (100, 50.0, 3)
    assert made["understood"]["time"] == "column 'time_s'"
    with pytest.raises(TacitError, match="--window"):
        load_dataset(path)


def test_gaps_in_time_drop_windows_or_are_filled(capsys: Capture) -> None:
    rows: list[list[Any]] = [["ab"[t >= 500], *row] for t, row in enumerate(recording(1000))]
    kept = [row for t, row in enumerate(rows) if not 130 <= t < 133]
    path = write("t.csv", ["label", "time", "ax", "ay", "az"], kept)
    made = run(capsys, path, "--window", "50").json
    assert (made["series"], made["dropped"]) == (19, {"missing values": 1})
    Path("out.npz").unlink()
    made = run(capsys, path, "--window", "50", "--missing", "interpolate").json
    assert (made["series"], made["dropped"]) == (20, {})
    Path("out.npz").unlink()
    far = [*rows[:500], *([label, time + 3600, *xyz] for label, time, *xyz in rows[500:])]
    made = run(capsys, write("far.csv", ["label", "time", "ax", "ay", "az"], far), "--window", "50")
    assert made.json["series"] == 20


def test_windows_longer_than_the_recording_are_refused(capsys: Capture) -> None:
    rows = [["ab"[t >= 200], *row] for t, row in enumerate(recording(400))]
    path = write("t.csv", ["label", "time", "ax", "ay", "az"], rows)
    for window in ("401", "1h"):
        assert_refused(run(capsys, path, "--window", window), "no window is left", "--window")
    assert not Path("out.npz").exists()


def test_uneven_times_need_a_rate(capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.002, 0.04, size=3000))
    rows = [[t, np.sin(t), "ab"[k >= 1500]] for k, t in enumerate(times.tolist())]
    path = write("t.csv", ["time", "x", "label"], rows)
    assert_refused(run(capsys, path, "--window", "100"), "--rate HZ")
    made = run(capsys, path, "--window", "2s", "--rate", "25").json
    assert (made["length"], made["rate"]) == (50, 25.0)
    with np.load("out.npz") as file:
        assert np.abs(np.diff(file["X"][:, 0], axis=1)).max() < 0.06


def test_times_in_other_units(capsys: Capture) -> None:
    plain: list[list[Any]] = [["ab"[t >= 200], *row] for t, row in enumerate(recording(400))]
    forms: dict[str, list[Any]] = {
        "time_ms": [1000 * row[1] for row in plain],
        "timestamp": [1.7e9 + row[1] for row in plain],
        "Timestamp": [f"{np.datetime64('2024-05-01T10:00:00') + np.timedelta64(20 * t, 'ms')}"
                      for t in range(400)],
        "time [ms]": [20 * t for t in range(400)],
    }  # fmt: skip
    for name, times in forms.items():
        rows = [[label, time, *xyz] for (label, _, *xyz), time in zip(plain, times, strict=True)]
        made = run(capsys, write("t.csv", ["label", name, "a", "b", "c"], rows), "--window", "2s")
        assert (made.json["rate"], made.json["series"]) == (50.0, 4), name
        Path("out.npz").unlink()
    rows = [[label, 20 * t, *xyz] for t, (label, _, *xyz) in enumerate(plain)]
    path = write("t.csv", ["label", "t", "a", "b", "c"], rows)
    assert_refused(run(capsys, path, "--window", "2s"), "does not say its unit", "--time-unit")
    assert run(capsys, path, "--window", "2s", "--time-unit", "ms").json["rate"] == 50.0


def test_tables_of_other_countries_and_loggers(capsys: Capture) -> None:
    lines = ["# logger 3000", "# firmware 1.2", "label;x0;x1;x2;x3"]
    lines += [f"{'ab'[k % 2]};{k},5;1,25;-{k},0;1e0" for k in range(8)]
    Path("t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    X = np.array([[[k + 0.5, 1.25, -k, 1.0]] for k in range(8)])
    same_series(Path("t.csv"), X, [*"ab"] * 4)


def test_parquet_with_lists_in_cells_and_with_nulls(capsys: Capture) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = cube(30, channels=2, length=16)
    table = {
        "ax": [row.tolist() for row in X[:, 0]],
        "ay": [row.tolist() for row in X[:, 1]],
        "patient": [f"p{k % 6}" for k in range(30)],
        "label": pa.array(LABELS).dictionary_encode(),
    }
    pq.write_table(pa.table(table), "t.parquet")
    same_series(Path("t.parquet"), X, LABELS)
    assert load_dataset("t.parquet").summary()["subjects"]["in_both"] == 0
    columns = {f"x{t}": pa.array([None if (k, t) == (4, 3) else X[k, 0, t] for k in range(30)])
               for t in range(16)}  # fmt: skip
    pq.write_table(pa.table({**columns, "label": LABELS}), "u.parquet")
    with pytest.raises(TacitError, match=r"row 5, step 4 .* is null"):
        load_dataset("u.parquet")
    made = run(capsys, "u.parquet").json
    assert (made["series"], made["dropped"]) == (29, {"missing values": 1})


def test_a_folder_of_recordings_with_labels_in_names(capsys: Capture) -> None:
    for label in ("idle", "drill"):
        for unit in (1, 2, 3):
            write(f"plant/{label}/m{unit}.csv", ["time", "x", "y", "z"], recording(300, seed=unit))
    words = ["--window", "1s", "--label", "folder", "--subject", "file"]
    made = run(capsys, "plant", *words).json
    assert made["class_counts"] == {"drill": 18, "idle": 18}
    assert (made["subjects"], made["channels"], made["rate"]) == (3, 3, 50.0)
    Path("out.npz").unlink()
    assert_refused(run(capsys, "plant", "--window", "1s"), "does not say", "--label")


def test_named_columns_are_obeyed_and_mistyped_ones_refused(capsys: Capture) -> None:
    rows = [[k // 40, t, wave(40, seed=k // 40)[t % 40], 9, "pq"[k // 40 % 2], k // 80]
            for k, t in ((k, k % 40) for k in range(480))]  # fmt: skip
    path = write("t.csv", ["blk", "tk", "volt", "junk", "what", "who"], rows)
    words = ["--series", "blk", "--time", "tk", "--ignore", "junk", "--subject", "who"]
    made = run(capsys, path, *words).json
    assert (made["series"], made["channels"], made["length"], made["subjects"]) == (12, 1, 40, 6)
    Path("out.npz").unlink()
    assert_refused(run(capsys, path, "--label", "wat"), "'wat'", "did you mean 'what'")
    assert_refused(run(capsys, path, "--ignore", "x"), "'x'", "its columns are blk, tk")
    assert_refused(run(capsys, path, *words, "--channels", "amp"), "no channel 'amp'", "volt")


def test_an_axis_named_y_is_no_label(capsys: Capture) -> None:
    path = write("t.csv", ["time", "x", "y"], [row[:3] for row in recording(300)])
    assert_refused(run(capsys, path, "--window", "1s"), "y may be the label or a channel")
    rows = [[*row, "ab"[k >= 150]] for k, row in enumerate(recording(300))]
    path = write("t.csv", ["time", "x", "y", "z", "what"], rows)
    made = run(capsys, path, "--window", "1s").json
    assert (made["channel_names"], made["classes"]) == (["x", "y", "z"], ["a", "b"])


def test_two_possible_subjects_or_times_are_refused(capsys: Capture) -> None:
    X = cube(20, channels=1, length=20)
    header = [*[f"x{t}" for t in range(20)], "label"]
    rows = [[k % 5, k % 3, *X[k, 0], LABELS[k]] for k in range(20)]
    refused = run(capsys, write("t.csv", ["user", "patient", *header], rows))
    assert_refused(refused, "'user' and 'patient'", "--subject")
    rows = [[k, 2 * k, *X[k, 0], LABELS[k]] for k in range(20)]
    refused = run(capsys, write("t.csv", ["time", "timestamp", *header], rows))
    assert_refused(refused, "'time' and 'timestamp'", "--time")


def test_import_and_load_agree_on_plain_tables(capsys: Capture) -> None:
    X = cube(30)
    header = [f"{c}_{t}" for c in ("ax", "ay", "az") for t in range(128)]
    path = write("t.csv", [*header, "label"], [[*X[k].ravel(), LABELS[k]] for k in range(30)])
    assert run(capsys, path).json["series"] == 30
    first, second = loaded(path), loaded(Path("out.npz"))
    np.testing.assert_array_equal(first[0], second[0])
    assert first[1].tolist() == second[1].tolist()


@pytest.mark.seconds
def test_a_large_table_is_read_in_good_time(capsys: Capture) -> None:
    import time

    rows = [[k // 50_000, 0.02 * (k % 50_000), 1.5, 2.25, 9.81, "ab"[k // 1000 % 2]]
            for k in range(100_000)]  # fmt: skip
    path = write("t.csv", ["user", "time", "ax", "ay", "az", "label"], rows)
    start = time.process_time()
    made = run(capsys, path, "--window", "128").json
    assert made["subjects"] == 2
    assert time.process_time() - start < 8.0
