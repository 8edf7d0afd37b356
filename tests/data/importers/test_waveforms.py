from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from command import Outcome, assert_refused, tacit
from field_files import wave

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: Capture, source: object, *options: object) -> Outcome:
    Path("out.npz").unlink(missing_ok=True)
    return tacit(capsys, "data", "import", source, "--out", "out.npz", *options, "--json")


def write_record(
    name: str, *, folder: str = ".", seconds: int = 60, rate: int = 360
) -> NDArray[Any]:
    """A two-lead record like those of MIT-BIH: beats, and rhythms in the notes."""
    import wfdb

    Path(folder).mkdir(parents=True, exist_ok=True)
    signal = np.stack([wave(seconds * rate, rate=rate, seed=k) for k in range(2)], axis=1)
    wfdb.wrsamp(
        name, fs=rate, units=["mV", "mV"], sig_name=["MLII", "V5"], p_signal=signal,
        fmt=["16", "16"], write_dir=folder,
    )  # fmt: skip
    beats = np.arange(rate, seconds * rate - rate, rate)
    symbols = ["V" if k % 4 == 3 else "N" for k in range(len(beats))]
    samples = np.concatenate(([10, seconds * rate // 2 + 5], beats))
    notes = ["(N", "(AFIB", *[""] * len(beats)]
    order = np.argsort(samples)
    wfdb.wrann(
        name, "atr", samples[order], symbol=[["+", "+", *symbols][k] for k in order],
        aux_note=[notes[k] for k in order], write_dir=folder,
    )  # fmt: skip
    return signal


def test_beats_get_a_window_each(capsys: Capture) -> None:
    signal = write_record("100")
    assert_refused(run(capsys, "100.hea", "--window", "0.5s"), "--points onset")
    made = run(capsys, "100.hea", "--window", "0.5s", "--points", "centre").json
    assert made["class_counts"] == {"N": 44, "V": 14}
    assert (made["channel_names"], made["rate"], made["length"]) == (["MLII", "V5"], 360.0, 180)
    with np.load("out.npz") as file:
        np.testing.assert_allclose(file["X"][0], signal[270:450].T, atol=1e-3)


def test_rhythms_hold_until_the_next(capsys: Capture) -> None:
    write_record("100")
    made = run(capsys, "100.hea", "--window", "5s", "--label", "rhythm").json
    assert made["class_counts"] == {"AFIB": 5, "N": 5}


def test_a_folder_of_records_is_a_person_each(capsys: Capture) -> None:
    for name in ("100", "101", "102"):
        write_record(name, folder="mit")
    words = ["--window", "1s", "--points", "centre", "--channels", "V5", "--rate", "90"]
    made = run(capsys, "mit", *words).json
    assert (made["subjects"], made["channels"], made["length"]) == (3, 1, 90)


def test_channels_of_their_own_rates(capsys: Capture) -> None:
    import wfdb

    wfdb.wrsamp(
        "x", fs=50, units=["mV", "mV"], sig_name=["ECG", "resp"], samps_per_frame=[4, 1],
        e_p_signal=[wave(8000, rate=200), wave(2000, rate=50)], fmt=["16", "16"],
        adc_gain=[1000.0, 1000.0], baseline=[0, 0],
    )  # fmt: skip
    words = ["--window", "2s", "--label", "none"]
    assert_refused(run(capsys, "x.hea", *words), "200 Hz: ECG", "50 Hz: resp")
    made = run(capsys, "x.hea", *words, "--channels", "ECG").json
    assert (made["series"], made["length"], made["rate"]) == (20, 400, 200.0)
    assert run(capsys, "x.hea", *words, "--rate", "50").json["channels"] == 2


def test_windows_longer_than_the_record_are_refused(capsys: Capture) -> None:
    write_record("100")
    for words in (["--points", "centre"], ["--label", "rhythm"], ["--label", "none"]):
        refused = run(capsys, "100.hea", "--window", "90s", *words)
        assert_refused(refused, "no window is left", "--window")
    assert not Path("out.npz").exists()


def test_damaged_records_are_refused(capsys: Capture) -> None:
    write_record("100")
    words = ["--window", "1s", "--points", "centre"]
    content = Path("100.dat").read_bytes()
    Path("100.dat").write_bytes(content[: len(content) // 2])
    assert_refused(run(capsys, "100.hea", *words), "100.hea")
    Path("100.dat").unlink()
    assert_refused(run(capsys, "100.hea", *words), "100.hea")
    Path("100.hea").write_text("100 2 360 21600\n../secret.dat 16 200 16 0 0 0 0 MLII\n")
    assert_refused(run(capsys, "100.hea", *words), "another folder")
    Path("100.hea").write_text("not a header\n")
    assert_refused(run(capsys, "100.hea", *words), "100.hea")
    write_record("101")
    Path("101.atr").unlink()
    assert_refused(run(capsys, "101.hea", *words), "no annotations", "--label")
    assert not Path("out.npz").exists()


def test_annotations_past_the_end_and_records_that_differ_are_refused(capsys: Capture) -> None:
    import wfdb

    write_record("a", folder="mit")
    wfdb.wrann("a", "atr", np.array([400, 90_000]), symbol=["N", "V"], write_dir="mit")
    words = ["--window", "1s", "--points", "onset"]
    assert_refused(run(capsys, "mit", *words), "'V' begins at 250 s", "lasts 60 s")
    write_record("a", folder="mit")
    write_record("b", folder="mit", rate=250)
    assert_refused(run(capsys, "mit", *words), "b.hea has 250 Hz and a.hea has 360 Hz", "--rate")
    wfdb.wrsamp("b", fs=360, units=["mV"], sig_name=["V5"], fmt=["16"], write_dir="mit",
                p_signal=wave(21_600, rate=360)[:, np.newaxis])  # fmt: skip
    assert_refused(run(capsys, "mit", *words), "b.hea has the channels V5", "--channels")
