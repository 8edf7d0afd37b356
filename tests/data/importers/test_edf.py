from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np
import pytest

from command import Outcome, assert_refused, tacit
from field_files import NIGHT, wave, write_edf, write_marks

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: Capture, source: object, *options: object) -> Outcome:
    return tacit(capsys, "data", "import", source, "--out", "out.npz", *options, "--json")


def test_a_night_becomes_windows_with_the_right_samples_and_labels(capsys: Capture) -> None:
    values = write_edf(Path("night.edf"), seconds=240, marks=NIGHT, patient="P07")
    made = run(capsys, "night.edf", "--window", "30s").json
    assert (made["series"], made["channels"], made["length"]) == (8, 2, 3000)
    assert made["class_counts"] == {"deep": 2, "light": 3, "wake": 3}
    assert (made["subjects"], made["dropped"], made["rate"]) == (1, {}, 100.0)
    with np.load("out.npz") as file:
        assert file["y"].tolist() == [text for _, _, text in NIGHT]
        assert set(file["subject"]) == {"P07"}
        assert file["channels"].tolist() == ["EEG Fpz-Cz", "EEG Pz-Oz"]
        step = 12 / 65535  # 16 bits over the physical range
        for k in range(8):
            for channel in range(2):
                there = values[channel][3000 * k : 3000 * (k + 1)]
                np.testing.assert_allclose(file["X"][k, channel], there, atol=step)


def test_stride_channels_and_new_class_names(capsys: Capture) -> None:
    values = write_edf(Path("night.edf"), seconds=240, marks=NIGHT)
    words = ["--window", "20s", "--stride", "1000", "--channels", "pz-oz"]
    made = run(capsys, "night.edf", *words, "--classes", "wake=awake,deep=asleep,light=asleep").json
    # wake 0-60, asleep 60-210 (three stretches put together), wake 210-240: every 10 s.
    assert made["class_counts"] == {"asleep": 14, "awake": 7}
    assert made["channel_names"] == ["EEG Pz-Oz"]
    with np.load("out.npz") as file:
        np.testing.assert_allclose(file["X"][1, 0], values[1][1000:3000], atol=2e-4)


def test_a_grid_gives_each_window_the_label_of_its_greater_part(capsys: Capture) -> None:
    marks = [(0.0, 45.0, "a"), (45.0, 35.0, "b")]
    write_edf(Path("x.edf"), seconds=120, marks=marks)
    made = run(capsys, "x.edf", "--window", "20s", "--cut", "grid").json
    assert made["class_counts"] == {"a": 2, "b": 2}
    assert made["dropped"] == {"no label": 2}
    Path("out.npz").unlink()
    made = run(capsys, "x.edf", "--window", "20s", "--cut", "grid", "--window-label", "pure").json
    assert made["class_counts"] == {"a": 2, "b": 1}
    assert made["dropped"] == {"more than one label": 1, "no label": 2}


def test_resampling_keeps_a_tone_and_its_place(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=240, marks=NIGHT, names=("a", "b"), rates=(100.0, 64.0))
    made = run(capsys, "x.edf", "--window", "30s", "--rate", "50").json
    assert (made["length"], made["rate"]) == (1500, 50.0)
    with np.load("out.npz") as file:
        X = file["X"]
    clean = np.sin(2 * np.pi * np.arange(1500) / 50)
    for k in range(8):
        for channel in range(2):
            assert np.corrcoef(X[k, channel], clean)[0, 1] > 0.9


def test_resampling_by_pieces_equals_resampling_at_once() -> None:
    from scipy.signal import resample_poly

    from tacit.data.importers.recording import signal_of
    from tacit.data.importers.resample import resampled

    values = 9.8 + wave(10_000)
    for new in (50.0, 64.0, 256.0, 30.0):
        signal = resampled(signal_of(values, name="a", rate=100.0), new, where="x")
        whole = resample_poly(values, *_ratio(new), padtype="edge")[: signal.n_samples]
        pieces = [signal.read(k, min(k + 777, len(whole))) for k in range(0, len(whole), 777)]
        np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-9)
        assert abs(whole[0] - 9.8) < 2


def _ratio(new: float) -> tuple[int, int]:
    from fractions import Fraction

    ratio = Fraction(new) / 100
    return ratio.numerator, ratio.denominator


@pytest.mark.parametrize(
    ("points", "counts", "first"),
    [("onset", {"N": 2, "V": 1}, 1000), ("centre", {"N": 2, "V": 1}, 900)],
)
def test_events_get_a_window_each(
    capsys: Capture, points: str, counts: dict[str, int], first: int
) -> None:
    marks = [(10.0, None, "N"), (20.0, None, "V"), (30.0, None, "N"), (59.9, None, "V")]
    values = write_edf(Path("x.edf"), seconds=60, marks=marks)
    assert_refused(run(capsys, "x.edf", "--window", "2s"), "4 annotations", "--points onset")
    made = run(capsys, "x.edf", "--window", "2s", "--points", points).json
    assert made["class_counts"] == counts
    assert made["dropped"] == {"window runs past the recording": 1}
    with np.load("out.npz") as file:
        np.testing.assert_allclose(file["X"][0, 0], values[0][first : first + 200], atol=2e-4)


def test_annotations_with_durations_may_be_taken_as_events(capsys: Capture) -> None:
    marks = [(10.0, 4.0, "N"), (20.0, 4.0, "V"), (30.0, 4.0, "N")]
    values = write_edf(Path("x.edf"), seconds=60, marks=marks)
    made = run(capsys, "x.edf", "--window", "2s", "--points", "centre").json
    assert made["class_counts"] == {"N": 2, "V": 1}
    with np.load("out.npz") as file:
        np.testing.assert_allclose(file["X"][0, 0], values[0][1100:1300], atol=2e-4)


def test_one_person_is_imported_and_the_way_on_is_told(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=240, marks=NIGHT, patient="P07")
    made = run(capsys, "x.edf", "--window", "10s").json
    assert "--subject none" in made["understood"]["note"]
    assert_refused(tacit(capsys, "data", "show", "out.npz"), "one subject, 'P07'")
    Path("out.npz").unlink()
    assert run(capsys, "x.edf", "--window", "10s", "--subject", "none").json["subjects"] == 0
    shown = tacit(capsys, "data", "show", "out.npz", "--json").json
    assert (shown["n_train"] + shown["n_test"], shown["subjects"]) == (24, None)


def test_a_label_may_hold_until_the_next(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=60, marks=[(0.0, None, "(N"), (30.0, None, "(AFIB")])
    made = run(capsys, "x.edf", "--window", "10s", "--points", "until-next").json
    assert made["class_counts"] == {"(AFIB": 3, "(N": 3}


def test_remarks_beside_scored_stretches_are_left_out(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=240, marks=[*NIGHT, (70.0, None, "lights off")])
    made = run(capsys, "x.edf", "--window", "30s").json
    assert made["series"] == 8
    assert made["dropped"] == {"annotation without a duration": 1}


def test_a_folder_gives_a_label_and_a_person_by_its_names(capsys: Capture) -> None:
    for label in ("rest", "task"):
        for person in (1, 2, 3):
            write_edf(Path("lab") / label / f"s{person}_run1.edf", seconds=20)
    words = ["--window", "5s", "--label", "folder", "--subject", r"s(\d)_"]
    made = run(capsys, "lab", *words).json
    assert made["class_counts"] == {"rest": 12, "task": 12}
    assert made["subjects"] == 3
    shown = tacit(capsys, "data", "show", "out.npz", "--json").json
    assert shown["subjects"] == {"train": 2, "test": 1, "in_both": 0}
    assert shown["channel_names"] == ["EEG Fpz-Cz", "EEG Pz-Oz"]


def test_patients_are_subjects_and_several_nights_of_one_are_one(capsys: Capture) -> None:
    for name, patient in (("a", "P1"), ("b", "P1"), ("c", "P2")):
        write_edf(Path("lab") / f"{name}.edf", seconds=240, marks=NIGHT, patient=patient)
    made = run(capsys, "lab", "--window", "30s").json
    assert made["subjects"] == 2
    assert made["understood"]["subjects"] == "patient field of the header"


def test_a_recording_with_gaps_is_cut_at_them(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=100, marks=[(0.0, 160.0, "a"), (160.0, 40.0, "b")])
    content = bytearray(Path("x.edf").read_bytes())
    # Records 50 to 99 began 100 s later than they would have without a gap.
    content[192:236] = b"EDF+D".ljust(44)
    for record in range(50, 100):
        old, new = b"+%d\x14\x14\x00" % record, b"+%d\x14\x14\x00" % (record + 100)
        place = content.index(old, 256 * 4)
        if record == 99:  # an annotation follows here, and moves on by a byte
            content[place:] = new + content[place + len(old) : -1]
        else:
            content[place : place + len(old) + 1] = new
    Path("x.edf").write_bytes(content)
    made = run(capsys, "x.edf", "--window", "20s").json
    # By the clock: samples at 0-50 s and 150-200 s; a until 160 s, b from there on.
    assert made["class_counts"] == {"a": 2, "b": 2}
    assert made["dropped"]["labelled stretch shorter than a window"] == 1


def damaged(kind: str) -> str:
    write_edf(Path("x.edf"), seconds=240, marks=NIGHT)
    content = Path("x.edf").read_bytes()
    changed = {
        "truncated": content[: len(content) // 2],
        "header only": content[:512],
        "empty": b"",
        "text": b"time,value\n0,1\n",
        "zipped": b"PK\x03\x04" + content,
        "numbers": content[:252] + b"zzzz" + content[256:],
        "longer": content + 400 * b"x",
        "timeless": content[:244] + b"0       " + content[252:],
    }
    Path("x.edf").write_bytes(changed[kind])
    return "x.edf"


@pytest.mark.parametrize(
    "kind",
    ["truncated", "header only", "empty", "text", "zipped", "numbers", "longer", "timeless"],
)
def test_what_is_damaged_or_no_edf_is_refused(capsys: Capture, kind: str) -> None:
    words = {"timeless": "last no time", "longer": "bytes after the 240 data records"}
    assert_refused(run(capsys, damaged(kind), "--window", "30s"), "x.edf", words.get(kind, ""))
    assert not Path("out.npz").exists()
    assert [file.name for file in Path().iterdir()] == ["x.edf"]


def test_mistakes_get_one_sentence_with_the_way_out(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=60)
    assert_refused(run(capsys, "x.edf", "--window", "5s"), "no annotations", "--label folder")
    write_edf(Path("late.edf"), seconds=60, marks=[(0.0, 30.0, "a"), (70.0, 30.0, "b")])
    assert_refused(run(capsys, "late.edf", "--window", "5s"), "'b' begins at 70 s", "lasts 60 s")
    write_edf(Path("two.edf"), seconds=60, marks=[(0.0, 40.0, "a"), (20.0, 30.0, "b")])
    assert_refused(run(capsys, "two.edf", "--window", "5s"), "two labels", "--classes")
    write_edf(Path("one.edf"), seconds=60, marks=[(0.0, 60.0, "a")])
    assert_refused(run(capsys, "one.edf", "--window", "5s"), "one class 'a'", "--label none")
    assert_refused(run(capsys, "one.edf", "--window", "2min"), "shorter than a window: 1")
    assert_refused(run(capsys, "one.edf"), "--window 30s")
    assert_refused(run(capsys, "one.edf", "--window", "5s", "--channels", "EMG"), "EEG Pz-Oz")
    assert_refused(run(capsys, "one.edf", "--window", "5s", "--channels", "EEG"), "2 channels")
    assert_refused(run(capsys, "one.edf", "--window", "5x"), "'5x'", "30s")
    assert_refused(run(capsys, "one.edf", "--window", "5s", "--label", "stage"), "no columns")
    write_edf(Path("rates.edf"), seconds=60, rates=(100.0, 1.0), marks=[(0.0, 60.0, "a")])
    assert_refused(run(capsys, "rates.edf", "--window", "5s"), "100 Hz: EEG Fpz-Cz", "--rate HZ")
    write_marks(Path("marks.edf"), [(0.0, 30.0, "a")])
    assert_refused(run(capsys, "marks.edf", "--window", "5s"), "no channels")
    assert not Path("out.npz").exists()


def test_files_that_differ_are_refused(capsys: Capture) -> None:
    write_edf(Path("lab/a.edf"), seconds=240, marks=NIGHT)
    write_edf(Path("lab/b.edf"), seconds=240, marks=NIGHT, rates=(128.0, 128.0))
    assert_refused(run(capsys, "lab", "--window", "30s"), "b.edf has 128 Hz", "a.edf has 100 Hz")
    made = run(capsys, "lab", "--window", "30s", "--rate", "64").json
    assert (made["series"], made["length"]) == (16, 1920)
    write_edf(Path("lab/c.edf"), seconds=240, marks=NIGHT, names=("EEG Fpz-Cz", "EMG"))
    Path("out.npz").unlink()
    refused = run(capsys, "lab", "--window", "30s", "--rate", "64")
    assert_refused(refused, "c.edf has the channels EEG Fpz-Cz, EMG", "--channels")
    assert sorted(file.name for file in Path().iterdir()) == ["lab"]


def test_the_result_is_never_overwritten(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=240, marks=NIGHT)
    Path("out.npz").write_text("mine")
    assert_refused(run(capsys, "x.edf", "--window", "30s"), "exists already")
    assert Path("out.npz").read_text() == "mine"
    refused = tacit(capsys, "data", "import", "x.edf", "--out", "x.txt", "--window", "30s")
    assert_refused(refused, ".npz")


@pytest.mark.parametrize("room", [100_000, 192_100])  # windows alone take 192,000 bytes
def test_a_full_disk_leaves_nothing_behind(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    # Bytecode written under the limit would stay truncated for later runs.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_edf(Path("x.edf"), seconds=240, marks=NIGHT)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        refused = run(capsys, "x.edf", "--window", "30s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_refused(refused, "cannot write to", "nothing was imported", "--out")
    assert [file.name for file in Path().iterdir()] == ["x.edf"]
    assert run(capsys, "x.edf", "--window", "30s").json["series"] == 8


def test_people_see_what_was_understood(capsys: Capture) -> None:
    write_edf(Path("x.edf"), seconds=240, marks=NIGHT, patient="P07")
    shown = tacit(capsys, "data", "import", "x.edf", "--out", "out.npz", "--window", "30s")
    assert shown.code == 0
    for word in ("EDF", "annotations", "EEG Fpz-Cz", "deep (2)", "P07", "8 of 3000", "out.npz"):
        assert word in shown.out


@pytest.mark.seconds
def test_a_day_is_imported_quickly_and_in_little_memory(tmp_path: Path) -> None:
    """A 24-hour file of 35 MB: below 5 s of processor time, and three times the file."""
    import subprocess

    marks = [(30.0 * k, 30.0, f"stage {k // 20 % 5}") for k in range(2880)]
    write_edf(tmp_path / "day.edf", seconds=86_400, marks=marks)
    code = (
        "import json, re, resource, sys\n"
        "from tacit.cli.app import run\n"
        "assert run(sys.argv[1:]) == 0\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        # ru_maxrss would be that of the process that started this one.
        "peak = re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())\n"
        "print(json.dumps([used.ru_utime + used.ru_stime, int(peak.group(1)) * 1024]))\n"
    )
    words = ["data", "import", "day.edf", "--out", "day.npz", "--window", "30s", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    made, (seconds, peak) = (json.loads(line) for line in done.stdout.splitlines())
    assert made["series"] == 2880
    assert seconds < 5.0
    assert peak < 3 * (tmp_path / "day.edf").stat().st_size
