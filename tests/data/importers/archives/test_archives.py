"""Recipes on small archives in the layouts of the real ones, as folder and as archive."""

from __future__ import annotations

import csv
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from command import Outcome, assert_refused, tacit
from field_files import wave, write_edf, write_marks
from tacit.data import load_dataset

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: Capture, source: object, *options: object) -> Outcome:
    Path("out.npz").unlink(missing_ok=True)
    return tacit(capsys, "data", "import", source, "--out", "out.npz", *options, "--json")


def uci_har() -> Path:
    root = Path("raw/UCI HAR Dataset")
    names = ["WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING"]
    rng = np.random.default_rng(0)
    for part, persons in (("train", [1, 3, 5]), ("test", [2, 4])):
        n = 6 * len(persons)
        (root / part / "Inertial Signals").mkdir(parents=True)
        for sensor in ("body_acc", "body_gyro", "total_acc"):
            for axis in "xyz":
                rows = rng.normal(size=(n, 128))
                text = "\n".join(" " + "  ".join(f"{v: .7e}" for v in row) for row in rows)
                name = f"{sensor}_{axis}_{part}.txt"
                (root / part / "Inertial Signals" / name).write_text(text + "\n")
        (root / part / f"y_{part}.txt").write_text("".join(f"{k % 6 + 1}\n" for k in range(n)))
        people = "".join(f"{person}\n" for person in np.repeat(persons, 6))
        (root / part / f"subject_{part}.txt").write_text(people)
        (root / part / f"X_{part}.txt").write_text("  1.0  2.0\n" * n)
    (root / "activity_labels.txt").write_text(
        "".join(f"{k} {name}\n" for k, name in enumerate(names, start=1))
    )
    (root / "README.txt").write_text("see www.smartlab.ws")
    return Path("raw")


def wisdm() -> Path:
    lines = []
    for person in (33, 17, 20):
        time = 49_105_962_326_000
        for activity in ("Jogging", "Walking"):
            signal = [wave(600, rate=20, seed=person + k) for k in range(3)]
            for t in range(600):
                time += 50_000_000
                xyz = ",".join(f"{axis[t]:.7f}" for axis in signal)
                lines.append(f"{person},{activity},{time},{xyz};")
    lines[5] = lines[5] + lines[6]
    lines[6] = ""
    lines[40] = lines[40].rsplit(",", 1)[0] + ",;"  # z is missing
    lines[700] = "17,Walking,0,0,0,0;"
    lines[900] = lines[900].replace(";", ",;")
    folder = Path("raw/WISDM_ar_v1.1")
    folder.mkdir(parents=True)
    (folder / "WISDM_ar_v1.1_raw.txt").write_text("\n".join(lines) + "\n")
    (folder / "WISDM_ar_v1.1_raw_about.txt").write_text("about")
    return Path("raw")


def hhar() -> Path:
    folder = Path("raw/Activity recognition exp")
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    rows = []
    devices = (("nexus4_1", "nexus4", 200.0), ("s3mini_2", "s3mini", 100.0))
    for user in "abcd":
        for device, model, rate in devices:
            n = int(40 * rate)
            seconds = np.cumsum(rng.uniform(0.5, 1.5, size=n) / rate)
            axes = [np.sin(2 * np.pi * seconds + k) for k in range(3)]
            for t in range(n):
                moment = 1_424_696_638_740_000_000 + round(seconds[t] * 1e9)
                gt = "null" if t < 20 else "sit" if seconds[t] < 20 else "walk"
                xyz = [f"{axis[t]:.6f}" for axis in axes]
                rows.append([t, moment // 10**6, moment, *xyz, user, model, device, gt])
    with (folder / "Phones_accelerometer.csv").open("w", newline="") as file:
        header = ["Index", "Arrival_Time", "Creation_Time", *"xyz", "User", "Model", "Device", "gt"]
        csv.writer(file).writerows([header, *rows])
    return Path("raw")


def sleep_edf() -> Path:
    folder = Path("raw/sleep-edf-database-expanded-1.0.0/sleep-cassette")
    names = ("EEG Fpz-Cz", "EEG Pz-Oz", "EMG submental")
    stages = ["W"] * 4 + ["1", "2", "3", "4", "R", "2", "?", "R"] + ["W"] * 4
    stages = ["W"] * 60 + stages + ["W"] * 62
    for night in ("SC4001E0", "SC4002E0", "SC4011E0"):
        seconds = 30 * len(stages)
        write_edf(
            folder / f"{night}-PSG.edf", seconds=seconds, names=names, rates=(100.0, 100.0, 1.0)
        )
        marks: list[tuple[float, float | None, str]] = [
            (30.0 * k, 30.0, f"Sleep stage {stage}") for k, stage in enumerate(stages)
        ]
        marks.insert(70, (30.0 * 71 + 1, None, "Lights out"))
        # The real hypnograms go on after the recording has ended.
        marks.append((float(seconds), 6000.0, "Sleep stage ?"))
        write_marks(folder / f"{night[:7]}C-Hypnogram.edf", marks)
    (folder.parent / "SC-subjects.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    (folder.parent / "RECORDS").write_text("sleep-cassette/SC4001E0-PSG.edf\n")
    return Path("raw")


def paderborn() -> Path:
    from scipy.io import savemat

    fields = (
        ("force", "Mech_4kHz", 1000),
        ("phase_current_1", "HostService", 16_000),
        ("vibration_1", "HostService", 16_000),
        ("temp_2_bearing_module", "Temp_1Hz", 4),
    )
    for bearing in ("K001", "K002", "KA04", "KA15", "KI14", "KI16", "KB23"):
        folder = Path("raw") / bearing
        folder.mkdir(parents=True)
        for number in (1, 2):
            rows = np.zeros(len(fields), dtype=[(k, object) for k in ("Name", "Raster", "Data")])
            for k, (name, raster, n) in enumerate(fields):
                values = wave(n, rate=64_000, seed=k + number)
                rows[k] = (name, raster, values[np.newaxis].astype(np.float64))
            stem = f"N15_M07_F10_{bearing}_{number}"
            content = {"Info": {"Rotation": 1500}, "X": {"Name": "time"}, "Y": rows}
            savemat(folder / f"{stem}.mat", {stem: content})
    return Path("raw")


def ptb_xl() -> Path:
    import wfdb

    root = Path("raw/ptb-xl-1.0.3")
    folder = root / "records100" / "00000"
    folder.mkdir(parents=True)
    leads = ["I", "II", "III", "AVR", "AVL", "AVF", "V1", "V2", "V3", "V4", "V5", "V6"]
    codes = ["{'NORM': 100.0, 'SR': 0.0}", "{'IMI': 80.0}", "{'IMI': 15.0, 'NDT': 100.0}",
             "{'SR': 0.0}", "{'NDT': 50.0, 'SR': 0.0}"]  # fmt: skip
    rows = []
    for k in range(1, 41):
        signal = np.stack([wave(1000, seed=k + lead) for lead in range(12)], axis=1)
        if k != 40:
            wfdb.wrsamp(
                f"{k:05d}_lr", fs=100, units=["mV"] * 12, sig_name=leads, p_signal=signal,
                fmt=["16"] * 12, write_dir=str(folder),
            )  # fmt: skip
        fold = 10 if k > 30 else k % 9 + 1
        stem = f"00000/{k:05d}"
        report = "sinus rhythm,\nnormal"
        files = [f"records100/{stem}_lr", f"records500/{stem}_hr"]
        patient = f"{15000 + (k + 1) // 2}.0"
        rows.append([k, patient, 56.0, "1984-11-09 09:17:34", report, codes[k % 5], fold, *files])
    header = ["ecg_id", "patient_id", "age", "recording_date", "report", "scp_codes"]
    header += ["strat_fold", "filename_lr", "filename_hr"]
    with (root / "ptbxl_database.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    statements = [
        ["", "description", "diagnostic", "form", "rhythm", "diagnostic_class"],
        ["NORM", "normal ECG", "1.0", "", "", "NORM"],
        ["IMI", "inferior", "1.0", "", "", "MI"],
        ["NDT", "non-diagnostic T", "1.0", "1.0", "", "STTC"],
        ["SR", "sinus", "", "", "1.0", ""],
    ]
    with (root / "scp_statements.csv").open("w", newline="") as file:
        csv.writer(file).writerows(statements)
    return Path("raw")


# Per archive: what makes it, then series, channels, length, rate, subjects, class counts, dropped.
ARCHIVES: dict[str, tuple[Callable[[], Path], tuple[object, ...], dict[str, int], dict[str, int]]]
ARCHIVES = {
    "uci-har": (
        uci_har,
        (30, 9, 128, 50.0, 5),
        dict.fromkeys(
            ["LAYING", "SITTING", "STANDING", "WALKING", "WALKING_DOWNSTAIRS", "WALKING_UPSTAIRS"],
            5,
        ),
        {},
    ),
    "wisdm": (
        wisdm,
        (22, 3, 128, 20.0, 3),
        {"Jogging": 11, "Walking": 11},
        {"damaged line": 2, "missing values": 2},
    ),
    "hhar": (hhar, (112, 3, 128, 50.0, 4), {"sit": 56, "walk": 56}, {}),
    "sleep-edf": (
        sleep_edf,
        (3 * 127, 1, 3000, 100.0, 2),
        {"N1": 3, "N2": 6, "N3": 6, "REM": 6, "W": 360},
        # Of each night one epoch marked ?, and the remark about lights.
        {"label not among --classes": 6, "wake more than 30 min from sleep": 30},
    ),
    "paderborn": (
        paderborn,
        (36, 1, 5120, 64_000.0, 6),
        {"healthy": 12, "inner": 12, "outer": 12},
        {"measurement of a bearing with both rings damaged": 2},
    ),
    "ptb-xl": (
        ptb_xl,
        (23, 12, 1000, 100.0, 16),
        {"MI": 8, "NORM": 7, "STTC": 8},
        {"diagnoses of several classes": 8, "no diagnosis": 8, "record file missing": 1},
    ),
}


@pytest.mark.seconds
@pytest.mark.parametrize("name", ARCHIVES)
def test_a_raw_archive_is_recognised_and_cut_as_usual(capsys: Capture, name: str) -> None:
    make, shape, classes, dropped = ARCHIVES[name]
    folder = make()
    made = run(capsys, folder).json
    told = tuple(made[key] for key in ("series", "channels", "length", "rate", "subjects"))
    assert made["class_counts"] == classes
    assert told == shape
    assert made["dropped"] == {reason: count for reason, count in dropped.items() if count}
    data = load_dataset("out.npz")
    counts = data.summary()["subjects"]
    assert counts is not None
    assert counts["in_both"] == 0
    with zipfile.ZipFile("raw.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder))
    before = Path("out.npz").read_bytes()
    assert run(capsys, "raw.zip", "--format", name).code == 0
    assert _arrays(before, Path("out.npz").read_bytes())


def _arrays(first: bytes, second: bytes) -> bool:
    import io

    with np.load(io.BytesIO(first)) as a, np.load(io.BytesIO(second)) as b:
        assert a.files == b.files
        return all(np.array_equal(a[name], b[name]) for name in a.files)


def test_the_published_windows_and_split_of_uci_har(capsys: Capture) -> None:
    uci_har()
    assert run(capsys, "raw").code == 0
    data = load_dataset("out.npz")
    assert (len(data.y_train), len(data.y_test)) == (18, 12)
    assert data.subject_test is not None
    assert sorted(set(data.subject_test.tolist())) == ["2", "4"]
    text = Path("raw/UCI HAR Dataset/test/Inertial Signals/total_acc_y_test.txt").read_text()
    np.testing.assert_allclose(data.X_test[:, 7], np.array(text.split(), float).reshape(12, 128))
    assert data.y_test.tolist()[:2] == ["WALKING", "WALKING_UPSTAIRS"]
    assert data.channel_names[7] == "total_acc_y"


def test_samples_of_wisdm_and_sleep_edf_are_those_of_the_files(capsys: Capture) -> None:
    wisdm()
    assert run(capsys, "raw", "--window", "6.4s").code == 0
    with np.load("out.npz") as file:
        where = np.flatnonzero((file["subject"] == "33") & (file["y"] == "Walking"))[0]
        np.testing.assert_allclose(
            file["X"][where, 0], wave(600, rate=20, seed=33)[128:256], atol=1e-6
        )
    shutil.rmtree("raw")
    sleep_edf()
    assert run(capsys, "raw").code == 0
    with np.load("out.npz") as file:
        first = int(np.flatnonzero(file["y"] != "W")[0])
        assert (first, file["y"][first]) == (60, "N1")
        values = wave(3000 * 134, seed=0)
        np.testing.assert_allclose(file["X"][first, 0], values[64 * 3000 : 65 * 3000], atol=2e-4)
        assert sorted(set(file["subject"])) == ["SC00", "SC01"]


def test_hhar_is_brought_to_even_steps(capsys: Capture) -> None:
    hhar()
    made = run(capsys, "raw", "--window", "2s", "--rate", "25").json
    assert made["length"] == 50
    with np.load("out.npz") as file:
        X = file["X"]
    # A tone of 1 Hz over 2 s, whatever the device's own rate was.
    spectrum = np.abs(np.fft.rfft(X[:, 0] - X[:, 0].mean(axis=1, keepdims=True)))
    assert set(spectrum.argmax(axis=1)) == {2}
    assert_refused(run(capsys, "raw", "--array", "Radar"), "Phones_gyroscope")


def test_archives_zipped_twice_and_tarred(capsys: Capture) -> None:
    uci_har()
    shutil.make_archive("UCI HAR Dataset", "zip", "raw")
    with zipfile.ZipFile("download.zip", "w") as archive:
        archive.write("UCI HAR Dataset.zip")
        archive.writestr("__MACOSX/._x", "junk")
    assert run(capsys, "download.zip").json["series"] == 30
    shutil.rmtree("raw")
    wisdm()
    shutil.make_archive("WISDM_ar_latest", "gztar", "raw")
    assert run(capsys, "WISDM_ar_latest.tar.gz").json["series"] == 22


def test_archives_with_tricks_are_refused(capsys: Capture, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    for name in ("../escape.csv", "/tmp/escape.csv", "a/../../escape.csv", "..\\escape.csv"):
        with zipfile.ZipFile("bad.zip", "w") as archive:
            archive.writestr(name, "label,x0,x1\na,1,2\n")
        assert_refused(run(capsys, "bad.zip"), "leads out of the folder")
    with zipfile.ZipFile("bad.zip", "w") as archive:
        link = zipfile.ZipInfo("link.csv")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert_refused(run(capsys, "bad.zip"), "leads out of the folder")
    with tarfile.open("bad.tar", "w") as tar:
        member = tarfile.TarInfo("x.csv")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(member)
    assert_refused(run(capsys, "bad.tar"), "leads out of the folder")
    Path("bad.zip").write_bytes(b"PK\x03\x04 not really")
    assert_refused(run(capsys, "bad.zip"), "bad.zip")
    uci_har()
    shutil.make_archive("cut", "zip", "raw")
    content = Path("cut.zip").read_bytes()
    Path("cut.zip").write_bytes(content[: len(content) // 2])
    assert_refused(run(capsys, "cut.zip"), "cut.zip")
    assert not list(tmp_path.parent.glob("escape*"))
    assert not Path("out.npz").exists()


def test_an_archive_that_is_not_whole_is_refused(capsys: Capture) -> None:
    uci_har()
    Path("raw/UCI HAR Dataset/test/y_test.txt").unlink()
    assert_refused(run(capsys, "raw"), "y_test.txt")
    shutil.rmtree("raw")
    sleep_edf()
    next(Path("raw").rglob("SC4011EC-Hypnogram.edf")).unlink()
    assert_refused(run(capsys, "raw"), "SC4011E?-Hypnogram.edf")
    assert_refused(run(capsys, "raw", "--format", "wisdm"), "WISDM_ar_v1.1_raw.txt")
    assert_refused(run(capsys, "raw", "--format", "nonsense"), "sleep-edf", "parquet")
    assert_refused(run(capsys, "raw", "--label", "stage"), "--label can only be none")
    shutil.rmtree("raw")
    paderborn()
    bad = next(Path("raw").rglob("*KA15_2.mat"))
    bad.write_bytes(bad.read_bytes()[:3000])
    assert_refused(run(capsys, "raw"), bad.name)
    shutil.rmtree("raw")
    Path("raw").mkdir()
    Path("raw/K001.rar").write_bytes(b"Rar!")  # as the archive is offered
    assert_refused(run(capsys, "raw"), "K001.rar is a packed archive; unpack it first")
    assert_refused(run(capsys, "raw", "--format", "paderborn"), "unpack the .rar files first")
    assert not Path("out.npz").exists()
