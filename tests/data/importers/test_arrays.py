"""MATLAB, HDF5 and NumPy files: arrays by name, axes by what fits."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from command import Outcome, assert_refused, tacit
from field_files import wave

Capture = pytest.CaptureFixture[str]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3, 50))
Y = np.arange(24) % 2 + 1
WHO = np.repeat([11, 12, 13, 14], 6)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: Capture, source: object, *options: object) -> Outcome:
    Path("out.npz").unlink(missing_ok=True)
    return tacit(capsys, "data", "import", source, "--out", "out.npz", *options, "--json")


def write_mat(name: str, **variables: Any) -> str:
    from scipy.io import savemat

    Path(name).parent.mkdir(parents=True, exist_ok=True)
    savemat(name, variables)
    return name


def write_mat73(name: str, **variables: Any) -> str:
    """As MATLAB writes -v7.3: a head of 512 bytes, axes reversed, texts as code units."""
    import h5py

    with h5py.File(name, "w", userblock_size=512) as file:
        cells = file.create_group("#refs#")
        for key, value in variables.items():
            if isinstance(value, list):
                references = []
                for number, cell in enumerate(value):
                    item = cells.create_dataset(f"{key}{number}", data=_reversed(cell))
                    kind = b"char" if isinstance(cell, str) else b"double"
                    item.attrs["MATLAB_class"] = np.bytes_(kind)
                    references.append(item.ref)
                made = file.create_dataset(
                    key, data=np.array([references], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype
                )
                made.attrs["MATLAB_class"] = np.bytes_(b"cell")
            else:
                made = file.create_dataset(key, data=_reversed(value))
                made.attrs["MATLAB_class"] = np.bytes_(b"double")
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    with Path(name).open("r+b") as file:
        file.write(head)
    return name


def _reversed(value: Any) -> NDArray[Any]:
    if isinstance(value, str):
        return np.array([[ord(letter)] for letter in value], dtype=np.uint16)
    return np.atleast_2d(np.asarray(value, dtype=np.float64)).T


def written() -> dict[str, NDArray[Any]]:
    with np.load("out.npz") as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize("write", [write_mat, write_mat73])
@pytest.mark.parametrize(
    ("samples", "order"), [("X", (0, 1, 2)), ("data", (0, 2, 1)), ("signals", (2, 1, 0))]
)
def test_axes_are_found_by_labels_and_sizes(
    capsys: Capture, write: Any, samples: str, order: tuple[int, int, int]
) -> None:
    arrays = {samples: X.transpose(order), "labels": Y, "subject": WHO, "fs": 50.0}
    made = run(capsys, write("a.mat", **arrays)).json
    assert (made["series"], made["channels"], made["length"]) == (24, 3, 50)
    assert (made["rate"], made["subjects"], made["classes"]) == (50.0, 4, ["1", "2"])
    np.testing.assert_allclose(written()["X"], X)
    assert written()["subject"].tolist() == [str(who) for who in WHO]


@pytest.mark.parametrize("write", [write_mat, write_mat73])
def test_texts_and_structures(capsys: Capture, write: Any) -> None:
    names = ["rest" if y == 1 else "task" for y in Y]
    labels = np.array(names, dtype=object) if write is write_mat else names
    made = run(capsys, write("a.mat", X=X, y=labels)).json
    assert made["class_counts"] == {"rest": 12, "task": 12}
    if write is write_mat:
        nested = {"EEG": {"data": X, "srate": 128.0}, "y": Y}
        assert run(capsys, write("b.mat", **nested)).json["rate"] == 128.0


def test_cells_of_recordings_of_different_lengths(capsys: Capture) -> None:
    cells = np.empty(6, dtype=object)
    for k in range(6):
        cells[k] = np.stack([wave(300 + 40 * k, seed=k), wave(300 + 40 * k, seed=k + 9)], axis=1)
    path = write_mat("a.mat", data=cells, y=np.arange(6) % 2, fs=100.0, subject=np.arange(6) // 2)
    made = run(capsys, path, "--window", "1s").json
    assert (made["channels"], made["length"], made["subjects"]) == (2, 100, 3)
    assert made["series"] == sum((300 + 40 * k) // 100 for k in range(6))
    path = write_mat73("b.mat", data=list(cells), y=np.arange(6) % 2, fs=100.0)
    assert run(capsys, path, "--window", "1s").json["series"] == made["series"]


def test_recordings_with_labels_in_folder_names(capsys: Capture) -> None:
    for label in ("healthy", "worn"):
        for unit in ("A", "B"):
            signal = wave(5000, rate=1000, seed=len(label))[:, np.newaxis]
            write_mat(f"plant/{label}/{unit}.mat", vibration=signal, fs=1000.0)
    words = ["--window", "0.5s", "--label", "folder", "--subject", "file"]
    made = run(capsys, "plant", *words).json
    assert made["class_counts"] == {"healthy": 20, "worn": 20}
    assert (made["length"], made["subjects"]) == (500, 2)


def test_a_label_per_sample(capsys: Capture) -> None:
    labels = np.repeat([1, 2, 1], 400)
    path = write_mat("a.mat", emg=RNG.normal(size=(1200, 4)), label=labels)
    assert_refused(run(capsys, path, "--window", "100"), "--form wide or --form long")
    made = run(capsys, path, "--window", "100", "--form", "long").json
    assert made["class_counts"] == {"1": 8, "2": 4}
    assert made["channels"] == 4


def write_h5(name: str = "a.h5", **arrays: Any) -> str:
    import h5py

    with h5py.File(name, "w") as file:
        for key, value in arrays.items():
            file.create_dataset(f"study/{key}", data=value)
        file.attrs["sampling_rate"] = 64.0
        file.attrs["channel_names"] = ["ax", "ay", "az"]
    return name


def test_hdf5_with_groups_texts_and_attributes(capsys: Capture) -> None:
    labels = np.array([b"sit", b"walk"] * 12)
    made = run(capsys, write_h5(x=X, activity=labels, participant_id=WHO)).json
    assert (made["rate"], made["channel_names"]) == (64.0, ["ax", "ay", "az"])
    assert (made["classes"], made["subjects"]) == (["sit", "walk"], 4)
    made = run(capsys, "a.h5", "--channels", "az,ax", "--window", "25").json
    assert (made["series"], made["channel_names"]) == (48, ["az", "ax"])
    np.testing.assert_allclose(written()["X"][1], X[0, [2, 0], 25:])


def test_codes_get_the_names_that_the_file_lists(capsys: Capture) -> None:
    names = np.array(["rest", "task"])
    np.savez("a.npz", classes=names, X=X, y=Y - 1, subject=WHO)
    made = run(capsys, "a.npz").json
    assert made["class_counts"] == {"rest": 12, "task": 12}
    told = made["understood"]
    assert told["samples"] == "array 'X' (24 x 3 x 50)"
    assert (told["labels"], told["subjects"]) == ("array 'y'", "array 'subject'")
    assert told["axes"] == "series, channels, time"


def test_numpy_files_with_parts_keep_them(capsys: Capture) -> None:
    parts = {"X_train": X[:16], "y_train": Y[:16], "X_test": X[16:], "y_test": Y[16:]}
    np.savez("a.npz", **parts, subject_train=WHO[:16], subject_test=WHO[16:])
    made = run(capsys, "a.npz", "--source-rate", "50", "--rate", "25").json
    assert (made["series"], made["length"], made["rate"]) == (24, 25, 25.0)
    shown = tacit(capsys, "data", "show", "out.npz", "--json").json
    assert (shown["n_train"], shown["n_test"]) == (16, 8)


def test_what_is_unclear_is_refused_with_the_option(capsys: Capture) -> None:
    path = write_mat("a.mat", left=X, right=X, y=Y)
    assert_refused(run(capsys, path), "left (24 x 3 x 50)", "--array")
    assert run(capsys, path, "--array", "left").json["series"] == 24
    assert_refused(run(capsys, path, "--array", "lft"), "'lft'")
    path = write_mat("a.mat", X=X)
    assert_refused(run(capsys, path), "which array has the labels", "--label")
    assert_refused(run(capsys, path, "--label", "none"), "--axes series,channels,time")
    made = run(capsys, path, "--label", "none", "--axes", "series,channels,time").json
    assert (made["series"], made["classes"]) == (24, [])
    assert "y" not in written()
    path = write_mat("a.mat", X=RNG.normal(size=(24, 24, 50)), y=Y)
    assert_refused(run(capsys, path), "axes cannot be told apart", "--axes")
    assert_refused(run(capsys, path, "--axes", "time,series"), "3 axes")
    path = write_mat("a.mat", X=X, y=np.arange(7))
    assert_refused(run(capsys, path), "7 labels, which fit no axis")


@pytest.mark.parametrize("ending", ["mat", "h5"])
def test_damaged_files_are_refused(capsys: Capture, ending: str) -> None:
    path = Path(write_mat("a.mat", X=X, y=Y) if ending == "mat" else write_h5(x=X, y=Y))
    content = path.read_bytes()
    for bad in (b"", b"not at all", content[: len(content) // 2], content[:600]):
        path.write_bytes(bad)
        assert_refused(run(capsys, path), path.name)
    assert not Path("out.npz").exists()


def test_a_matlab_file_with_wrong_sizes_does_not_end_the_process(capsys: Capture) -> None:
    """SciPy alone crashes on these: a structure that claims 2,471 elements and has one."""
    path = Path(write_mat("a.mat", EEG={"data": X, "srate": 128.0}, y=Y))
    content = bytearray(path.read_bytes())
    place = content.index(b"\x01\x00\x00\x00\x01\x00\x00\x00", 128)
    content[place : place + 4] = (2471).to_bytes(4, "little")
    path.write_bytes(content)
    assert_refused(run(capsys, path), "a.mat is not a readable MATLAB file")


@pytest.mark.parametrize("compressed", [False, True])
def test_whole_matlab_files_of_all_kinds_pass_the_check(compressed: bool) -> None:
    from scipy.io import savemat
    from scipy.sparse import eye

    from tacit.data.importers.matlab_check import check_matlab

    cells = np.empty((2, 2), dtype=object)
    cells[:] = [["text", 1.0], [np.arange(5), {"deep": [1, 2]}]]
    kinds = {
        "c": cells, "s": {"a": "é", "b": {"c": np.arange(6).reshape(2, 3)}}, "z": 1 + 2j,
        "e": np.empty((0, 3)), "sparse": eye(4).tocsc(), "flag": True, "t": ["ab", "cde"],
        "i": np.int8(3), "f": np.float32(2.5), "none": "",
    }  # fmt: skip
    savemat("kinds.mat", kinds, do_compression=compressed)
    check_matlab(Path("kinds.mat"))
    content = Path("kinds.mat").read_bytes()
    for cut in range(1, len(content), 97):
        Path("cut.mat").write_bytes(content[:-cut])
        assert not _passes(Path("cut.mat")) or _is_whole(Path("cut.mat"), fewer_than=len(kinds))


def _passes(path: Path) -> bool:
    from tacit.data.importers.matlab_check import check_matlab

    try:
        check_matlab(path)
    except (ValueError, zlib.error):
        return False
    return True


def _is_whole(path: Path, *, fewer_than: int) -> bool:
    """What ends between two variables is a whole file with fewer of them."""
    from scipy.io import loadmat

    return sum(not name.startswith("__") for name in loadmat(path)) < fewer_than
