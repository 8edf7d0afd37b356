"""Each bad file gets a sentence of its own, exit code 2, and leaves nothing behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from command import assert_refused, tacit
from tacit.data import as_cube, as_labels
from tacit.errors import TacitError

BAD = Path(__file__).parent / "bad"
SENTENCES = {
    "binary.csv": ["UTF-8"],
    "broken.npz": ["broken.npz", "numpy.savez"],
    "broken.parquet": ["not a readable .parquet"],
    "codes.npz": ["codes 0..5 for 2 classes"],
    "empty.csv": ["empty.csv is empty"],
    "four_axes.npz": ["(2, 3, 4, 5)"],
    "header_only.csv": ["header and no series"],
    "hole.csv": ["row 2", "value 2", "(nothing)"],
    "huge.csv": ["row 2", "1e+30"],
    "infinite.csv": ["row 2", "step 2", "inf"],
    "label_unclear.csv": ["--label"],
    "lonely_class.csv": ["single series of class 'b'"],
    "nan.csv": ["row 2", "step 2", "nan", "fill or drop"],
    "no_data.ts": ["no_data.ts", "no value"],
    "no_keys.npz": ["['A']"],
    "no_label.csv": ["row 2 has no label"],
    "no_series.npz": ["no value"],
    "not_a_number.csv": ["row 2", "'two'"],
    "objects.npz": ["no objects"],
    "ragged.csv": ["row 2 has 2 values", "first series has 3"],
    "ragged_label_first.csv": ["row 3 has 1 values", "first series has 2"],
    "ragged_label_last.csv": ["row 2 has 1 values", "first series has 2"],
    "column_numbers.csv": ["column numbers", "without its header"],
    "row_numbers.csv": ["column 1", "row numbers", "without its index"],
    "ragged.ts": ["row 2", "(1, 2)"],
    "series.xls": ["no reader for '.xls'"],
    "shapes_TRAIN.tsv": ["(1, 3)", "(1, 2)"],
    "single_class.csv": ["single class 'a'"],
    "text_values.npz": ["not numbers"],
    "unpaired_TRAIN.tsv": ["unpaired_TEST.tsv"],
    "unseen_TRAIN.tsv": ["row 2", "'3'", "no training series"],
    "wrong_count.npz": ["one label per series"],
    "zero_length.csv": ["length 0"],
}


def test_every_bad_file_has_its_sentence_here() -> None:
    twins = {"unseen_TEST.tsv", "shapes_TEST.tsv"}
    assert {file.name for file in BAD.iterdir()} - twins == set(SENTENCES)


@pytest.mark.parametrize("name", SENTENCES)
def test_a_bad_file_is_refused_in_one_sentence(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(BAD, folder)
    before = sorted(folder.iterdir())
    monkeypatch.chdir(tmp_path)
    assert_refused(tacit(capsys, "data", "show", folder / name, "--json"), *SENTENCES[name])
    assert sorted(folder.iterdir()) == before
    assert sorted(tmp_path.iterdir()) == [folder]


@pytest.mark.seconds
def test_sentences_differ_from_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    told = {tacit(capsys, "data", "show", BAD / name).err for name in SENTENCES}
    assert len(told) == len(SENTENCES)


@pytest.mark.parametrize("bad", [[], np.zeros((0, 3)), np.zeros((2, 0)), [[1.0], []], np.zeros(3)])
def test_arrays_without_series_are_refused(bad: object) -> None:
    with pytest.raises(TacitError):
        as_cube(bad)


def test_labels_have_one_spelling() -> None:
    assert as_labels([1.0, "2.0", 3, "x"], n_series=4).tolist() == ["1", "2", "3", "x"]
