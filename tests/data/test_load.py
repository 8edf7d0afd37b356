from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.data import load_dataset
from tacit.data.load import EMBEDDED
from tacit.errors import TacitError

SHAPES = {
    "GunPoint": (50, 150, 1, 150, 2),
    "ArrowHead": (36, 175, 1, 251, 3),
    "ItalyPowerDemand": (67, 1029, 1, 24, 2),
    "OSULeaf": (200, 242, 1, 427, 6),
    "ACSF1": (100, 100, 1, 1460, 10),
    "BasicMotions": (40, 40, 6, 100, 4),
}


@pytest.fixture(autouse=True)
def _no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_DATA", raising=False)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_load_offline_with_the_published_shapes(name: str) -> None:
    data = load_dataset(name)
    n_train, n_test, channels, length, n_classes = SHAPES[name]
    assert data.X_train.shape == (n_train, channels, length)
    assert data.X_test.shape == (n_test, channels, length)
    assert data.X_train.dtype == np.float64
    assert len(data.classes) == n_classes
    assert set(data.y_train.tolist()) == set(data.classes)


def test_a_byte_order_mark_is_no_part_of_the_first_cell(tmp_path: Path) -> None:
    for name, header in (("a.csv", "label,t0,t1,t2\n"), ("b.csv", ""), ("c.txt", "")):
        (tmp_path / name).write_text("\ufeff" + header + ROWS, encoding="utf-8")
        assert load_dataset(tmp_path / name).classes == ("a", "b")


def test_a_lone_text_in_the_first_row_names_its_column_or_is_a_label(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for first in ("label,0,1,2", "y,t,u,v", "kind,0,1,2", "label,1.5,2.5,3.5"):
        path.write_text(first + "\n" + ROWS)
        assert load_dataset(path).classes == ("a", "b")
    path.write_text("y,1.5,2.5,3.5\n" + ROWS.replace("a,", "y,"))
    assert len(load_dataset(path).y_train) + len(load_dataset(path).y_test) == 7
    path.write_text("kind,9,8,7\n" + ROWS)
    with pytest.raises(TacitError, match="single series of class 'kind'"):
        load_dataset(path)


ROWS = "a,1,2,3\nb,4,5,6\na,1,2,4\nb,4,5,7\na,0,2,3\nb,4,4,6\n"


@pytest.mark.parametrize(
    ("name", "text", "label"),
    [
        ("header.csv", "class,t1,t2,t3\n" + ROWS, None),
        ("plain.csv", ROWS, None),
        ("named.csv", "kind,t1,t2,t3\n" + ROWS, "kind"),
        ("first.csv", ROWS.replace("a", "1").replace("b", "2"), "first"),
        ("last.csv", "".join(f"{r[2:]},{r[0]}\n" for r in ROWS.split()), None),
        ("tabs.tsv", ROWS.replace("a", "1").replace("b", "2").replace(",", "\t"), None),
        ("spaces.txt", ROWS.replace("a", " 1.0").replace("b", " 2.0").replace(",", "  "), None),
    ],
)
def test_text_formats_mean_the_same(
    tmp_path: Path, name: str, text: str, label: str | None
) -> None:
    (tmp_path / name).write_text(text)
    data = load_dataset(tmp_path / name, label=label)
    assert len(data.y_train) + len(data.y_test) == 6
    assert data.length == 3
    assert data.classes in {("a", "b"), ("1", "2")}
    rows = np.concatenate([data.X_train, data.X_test])[:, 0]
    labels = np.concatenate([data.y_train, data.y_test])
    assert set(rows[labels == data.classes[0], 0]) == {0.0, 1.0}
    assert set(rows[labels == data.classes[1], 0]) == {4.0}


def test_npz_and_parquet_round_trip(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = np.random.default_rng(0).normal(size=(12, 5))
    y = np.array(["u", "v"] * 6)
    np.savez(tmp_path / "s.npz", X=X, y=y)
    columns = {f"t{i}": X[:, i] for i in range(5)}
    pq.write_table(pa.table({**columns, "label": y}), tmp_path / "s.parquet")
    first, second = load_dataset(tmp_path / "s.npz"), load_dataset(tmp_path / "s.parquet")
    np.testing.assert_allclose(first.X_train, second.X_train)
    assert first.y_test.tolist() == second.y_test.tolist()


def test_a_pair_of_files_is_not_split_again(tmp_path: Path) -> None:
    (tmp_path / "P_TRAIN.csv").write_text("label,a,b\nx,1,2\ny,3,4\n")
    (tmp_path / "P_TEST.csv").write_text("label,a,b\nx,1,2\ny,3,4\ny,5,6\n")
    for named in ("P_TRAIN.csv", "P_TEST.csv", ""):
        data = load_dataset(tmp_path / named)
        assert (len(data.y_train), len(data.y_test), data.name) == (2, 3, "P")


def test_a_lone_file_is_split_in_the_same_way_each_time(tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", X=np.arange(60.0).reshape(20, 3), y=np.arange(20) % 2)
    first, second = load_dataset(tmp_path / "s.npz"), load_dataset(tmp_path / "s.npz")
    np.testing.assert_array_equal(first.X_test, second.X_test)
    assert len(first.y_test) == 6
    assert not set(first.X_train[:, 0, 0]) & set(first.X_test[:, 0, 0])


def test_a_lone_file_with_subjects_is_split_by_subject(tmp_path: Path) -> None:
    subject = np.repeat(["ann", "bob", "cem", "dee"], 5)
    X = np.arange(120.0).reshape(20, 2, 3)
    about = {"rate": np.array(50.0), "channels": np.array(["ax", "ay"])}
    np.savez(tmp_path / "s.npz", X=X, y=np.arange(20) % 2, subject=subject, **about)
    data = load_dataset(tmp_path / "s.npz")
    assert data.subject_train is not None
    assert data.subject_test is not None
    assert not set(data.subject_train) & set(data.subject_test)
    first_values = dict(zip(X[:, 0, 0], subject, strict=True))
    for series, person in zip(data.X_test, data.subject_test, strict=True):
        assert first_values[series[0, 0]] == person
    assert (data.rate, data.channel_names) == (50.0, ("ax", "ay"))
    shown = data.summary()
    assert shown["subjects"] == {"train": 3, "test": 1, "in_both": 0}
    assert "by subject" in shown["note"]
    again = load_dataset(tmp_path / "s.npz")
    np.testing.assert_array_equal(data.X_test, again.X_test)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"subject": np.arange(3)}, "one entry per series"),
        ({"subject": np.full(20, 5)}, "one subject"),
        ({"channels": np.array(["a", "b"])}, "one name per channel"),
    ],
)
def test_wrong_subjects_and_channels_are_refused(
    tmp_path: Path, wrong: dict[str, NDArray[Any]], words: str
) -> None:
    np.savez(tmp_path / "s.npz", X=np.zeros((20, 4)), y=np.arange(20) % 2, **wrong)
    with pytest.raises(TacitError, match=words):
        load_dataset(tmp_path / "s.npz")


def test_the_data_root_comes_before_the_embedded_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ucr").mkdir()
    np.savez(
        tmp_path / "ucr" / "GunPoint.npz",
        X_train=np.zeros((2, 4)),
        y_train=np.array([1, 0]),
        X_test=np.ones((2, 4)),
        y_test=np.array([0, 1]),
        classes=np.array(["p", "q"]),
        subject_train=np.array([7, 8]),
    )
    monkeypatch.setenv("TACIT_DATA", os.pathsep.join([str(tmp_path)]))
    data = load_dataset("GunPoint")
    assert data.y_train.tolist() == ["q", "p"]
    assert data.subject_train is not None
    assert data.subject_train.tolist() == [7, 8]
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "missing"))
    with pytest.raises(TacitError, match="not a folder"):
        load_dataset("GunPoint")


@pytest.mark.parametrize(("typed", "meant"), [("gunpoint", "GunPoint"), ("OSULeef", "OSULeaf")])
def test_a_mistyped_name_gets_a_suggestion(typed: str, meant: str) -> None:
    with pytest.raises(TacitError, match=f"did you mean '{meant}'"):
        load_dataset(typed)


def test_a_missing_file_and_an_unknown_name_differ() -> None:
    with pytest.raises(TacitError, match="no file"):
        load_dataset("nowhere/x.csv")
    with pytest.raises(TacitError, match="tacit data list"):
        load_dataset("qqqqqqqqqqqq")


@pytest.mark.parametrize("ending", ["tsv", "txt"])
def test_text_files_with_a_header_are_tables(tmp_path: Path, ending: str) -> None:
    header = "user_id\tx0\tx1\tx2\tlabel\n"
    rows = [f"{k // 2}\t{k}.5\t1\t-1\t{'ab'[k // 2 % 2]}\n" for k in range(20)]
    for name, text in (
        ("tabs", header + "".join(rows)),
        ("remarks", "# logger\n" + header + "".join(rows)),
        ("blanks", (header + "".join(rows)).replace("\t", "  ")),
        ("bars", (header + "".join(rows)).replace("\t", "|")),
    ):
        path = tmp_path / f"{name}.{ending}"
        path.write_text(text)
        for label in (None, "label"):
            data = load_dataset(path, label=label)
            assert data.classes == ("a", "b")
            assert data.length == 3
            assert data.subjects() is not None


def test_a_text_file_is_imported_and_a_note_beside_tables_is_not(tmp_path: Path) -> None:
    from tacit.data.importers.options import ImportOptions
    from tacit.data.importers.pipeline import import_data

    rows = "".join(f"{k}.5,1,-1,{'ab'[k % 2]}\n" for k in range(8))
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "run.txt").write_text("x0,x1,x2,label\n" + rows)
    for number, source in enumerate((folder / "run.txt", folder)):
        made = import_data(source, tmp_path / f"{number}.npz", ImportOptions())
        assert (made.series, made.length) == (8, 3)
    (folder / "run.csv").write_text("x0,x1,x2,label\n" + rows)
    (folder / "run.txt").write_text("recorded on a Tuesday\n")
    assert import_data(folder, tmp_path / "2.npz", ImportOptions()).series == 8
