"""Find a data set by name or path and load it, checked."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Cube
from tacit.data.dataset import Dataset, Labels, Series
from tacit.data.formats import (
    READERS,
    open_npz,
    read_file,
    read_labelled,
    recorded,
    subjects_of,
)
from tacit.data.partition import hold_out_subjects
from tacit.data.validate import as_cube, as_labels, check_classes
from tacit.errors import TacitError, check_path

EMBEDDED = ("GunPoint", "ArrowHead", "ItalyPowerDemand", "OSULeaf", "ACSF1", "BasicMotions")
_FOLDERS = ("", "ucr", "har")
_SPLIT_SEED = 0
_TEST_SHARE = 0.3


def load_dataset(name_or_path: str | os.PathLike[str], *, label: str | None = None) -> Dataset:
    """Load a data set; looks for a path, in TACIT_DATA, the embedded sets, then the archive.

    `label` names the label column of a .csv or .parquet file (a column name, first or last).
    A file X_TRAIN.* is paired with its X_TEST.*; a lone file is split 70/30, always in the same
    way: by subject if it names subjects (nobody is on both sides), else stratified by class.

    Example
    -------
    >>> from tacit import load_dataset
    >>> load_dataset("ItalyPowerDemand").X_test.shape
    (1029, 1, 24)
    """
    text = check_path(name_or_path, name="a data set")
    path = Path(text).expanduser()
    if path.exists():
        return _load_path(path, label)
    if path.suffix.lower() in READERS or os.sep in text:
        raise TacitError(f"there is no file {text!r}; check the path.")
    for root in data_roots():
        for folder in _FOLDERS:
            stored = root / folder / f"{text}.npz"
            if stored.is_file():
                return _load_path(stored, label)
    if text in EMBEDDED:
        return _load_path(_embedded_root() / text, label)
    return _download(text)


def load_series(
    name_or_path: str | os.PathLike[str], *, part: str | None = None, label: str | None = None
) -> Cube:
    """Series to release: those of one part of a data set, or all of a file that has no parts.

    A device has neither labels nor a training part, so a lone file needs none and is not split.
    """
    return load_part(name_or_path, part=part, label=label)[0]


def load_part(
    name_or_path: str | os.PathLike[str],
    *,
    part: str | None = None,
    otherwise: str = "test",
    label: str | None = None,
) -> tuple[Cube, Labels | None]:
    """Series and labels, if there are any, of one part of a data set, or of a lone file as a whole.

    Where a data set has two parts and none is asked for, it is the one of `otherwise`.
    """
    if part not in (None, "test", "train"):
        raise TacitError(f"--part must be test or train, got {part!r}.")
    path = Path(name_or_path).expanduser()
    if path.is_file() and not _has_parts(path):
        if part is not None:
            raise TacitError(f"{path.name} has no {part} part; leave --part out to take it whole.")
        series = read_file(path, label=label)
        return series.X, series.y
    dataset = load_dataset(name_or_path, label=label)
    if (part or otherwise) == "train":
        return dataset.X_train, dataset.y_train
    return dataset.X_test, dataset.y_test


def _has_parts(path: Path) -> bool:
    if path.suffix.lower() == ".npz" and "X_train" in open_npz(path):
        return True
    return _twin(path) is not None


def data_roots() -> list[Path]:
    """The folders named in TACIT_DATA; a named folder that is missing is an error."""
    roots = [Path(part) for part in os.environ.get("TACIT_DATA", "").split(os.pathsep) if part]
    for root in roots:
        if not root.is_dir():
            raise TacitError(f"TACIT_DATA names {str(root)!r}, which is not a folder; correct it.")
    return roots


def known_names() -> dict[str, Path | None]:
    """Every data set that can be loaded without a network, with its file (None: embedded)."""
    names: dict[str, Path | None] = dict.fromkeys(EMBEDDED)
    for root in data_roots():
        for folder in _FOLDERS:
            for stored in sorted((root / folder).glob("*.npz")):
                names.setdefault(stored.stem, stored)
                names[stored.stem] = names[stored.stem] or stored
    return names


def list_datasets() -> Iterator[dict[str, Any]]:
    """A row for every data set at hand, read from file headers where possible."""
    for name, stored in sorted(known_names().items(), key=lambda item: item[0].lower()):
        summary = load_dataset(name).summary()
        keys = ("name", "n_train", "n_test", "channels", "length", "n_classes")
        source = "embedded" if stored is None else "TACIT_DATA"
        yield {**{key: summary[key] for key in keys}, "source": source}


def _load_path(path: Path, label: str | None) -> Dataset:
    if path.is_dir():
        return _load_folder(path, label)
    if path.suffix.lower() == ".npz":
        arrays = open_npz(path)
        if {"X_train", "y_train", "X_test", "y_test"} <= set(arrays):
            return _from_arrays(path, arrays)
    twin = _twin(path)
    if twin is not None:
        return _from_pair(*twin, label)
    return _from_lone_file(path, label)


def _load_folder(folder: Path, label: str | None) -> Dataset:
    found = sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() in READERS and re.search(r"_train$", file.stem, re.IGNORECASE)
    )
    if not found:
        raise TacitError(
            f"{folder.name}/ has no file NAME_TRAIN.ts (or .tsv, .txt, .csv, .npz, .parquet); "
            "name the file itself."
        )
    return _load_path(found[0], label)


def _twin(path: Path) -> tuple[Path, Path] | None:
    """The train and test file of a pair, whichever of the two was named."""
    match = re.fullmatch(r"(.*)_(train|test)", path.stem, re.IGNORECASE)
    if match is None:
        return None
    part = match.group(2)
    other_part = {"train": "test", "test": "train"}[part.lower()]
    other_part = other_part.upper() if part.isupper() else other_part
    other = path.with_name(f"{match.group(1)}_{other_part}{path.suffix}")
    if not other.is_file():
        raise TacitError(f"{path.name} has no {other.name} beside it; add that file.")
    return (path, other) if part.lower() == "train" else (other, path)


def _from_pair(train: Path, test: Path, label: str | None) -> Dataset:
    first, second = read_labelled(train, label=label), read_labelled(test, label=label)
    if first.X.shape[1:] != second.X.shape[1:]:
        raise TacitError(
            f"{test.name} has series of (channels, length) {second.X.shape[1:]} but {train.name} "
            f"of {first.X.shape[1:]}; make them alike."
        )
    assert first.y is not None
    assert second.y is not None
    return Dataset(
        name=re.sub(r"_train$", "", train.stem, flags=re.IGNORECASE),
        X_train=first.X,
        y_train=first.y,
        X_test=second.X,
        y_test=second.y,
        classes=check_classes(first.y, second.y, where=train.name),
        subject_train=first.subject,
        subject_test=second.subject,
        rate=first.rate,
        channel_names=first.channel_names,
        note=f"{train.name} and {test.name}",
    )


def _from_lone_file(path: Path, label: str | None) -> Dataset:
    series = read_labelled(path, label=label)
    assert series.y is not None
    check_classes(series.y, series.y[:0], where=path.name)
    test, how = _test_rows(series, series.y, where=path.name)
    y_train, y_test = series.y[~test], series.y[test]
    return Dataset(
        name=path.stem,
        X_train=series.X[~test],
        y_train=y_train,
        X_test=series.X[test],
        y_test=y_test,
        classes=check_classes(y_train, y_test, where=path.name),
        subject_train=None if series.subject is None else series.subject[~test],
        subject_test=None if series.subject is None else series.subject[test],
        rate=series.rate,
        channel_names=series.channel_names,
        note=f"{path.name}, {how}",
    )


def _test_rows(series: Series, y: Labels, *, where: str) -> tuple[NDArray[np.bool_], str]:
    """The part of a lone file to test on, and how it was chosen."""
    if series.subject is None:
        how = f"split 70/30 at random, stratified, seed {_SPLIT_SEED}"
        return _stratified_rows(y, where=where), how
    rng = np.random.default_rng(_SPLIT_SEED)
    test = hold_out_subjects(y, series.subject, share=_TEST_SHARE, rng=rng, where=where)
    held_out, everyone = len(np.unique(series.subject[test])), len(np.unique(series.subject))
    how = f"split by subject, {held_out} of {everyone} held out, nobody in both parts"
    return test, f"{how}, seed {_SPLIT_SEED}"


def _stratified_rows(y: Labels, *, where: str) -> NDArray[np.bool_]:
    from sklearn.model_selection import train_test_split

    label_values, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        raise TacitError(
            f"{where} has a single series of class {str(label_values[counts.argmin()])!r}; "
            "a file without a _TEST twin is split, so every class needs two series."
        )
    n_test = max(len(label_values), round(_TEST_SHARE * len(y)))
    if len(y) - n_test < len(label_values):
        raise TacitError(
            f"{where} has {len(y)} series for {len(label_values)} classes, too few to split "
            "into train and test; give NAME_TRAIN and NAME_TEST files."
        )
    _, test = train_test_split(
        np.arange(len(y)), test_size=n_test, stratify=y, random_state=_SPLIT_SEED
    )
    chosen = np.zeros(len(y), dtype=np.bool_)
    chosen[test] = True
    return chosen


def _from_arrays(path: Path, arrays: dict[str, Any]) -> Dataset:
    parts: dict[str, Any] = {}
    for part in ("train", "test"):
        cube = as_cube(arrays[f"X_{part}"], where=f"{path.name} X_{part}")
        labels = arrays[f"y_{part}"]
        if "classes" in arrays and labels.dtype.kind in "iu":
            labels = _decode(labels, arrays["classes"], where=f"{path.name} y_{part}")
        parts[f"X_{part}"] = cube
        parts[f"y_{part}"] = as_labels(labels, n_series=len(cube), where=f"{path.name} y_{part}")
        parts[f"subject_{part}"] = subjects_of(
            arrays, f"subject_{part}", n_series=len(cube), where=path.name
        )
    if parts["X_train"].shape[1:] != parts["X_test"].shape[1:]:
        raise TacitError(
            f"{path.name}: X_train has series of {parts['X_train'].shape[1:]} and X_test of "
            f"{parts['X_test'].shape[1:]} (channels, length); make them alike."
        )
    classes = check_classes(parts["y_train"], parts["y_test"], where=path.name)
    parts |= recorded(arrays, n_channels=parts["X_train"].shape[1], where=path.name)
    return Dataset(name=path.stem, classes=classes, note=path.name, **parts)


def _decode(codes: Any, classes: Any, *, where: str) -> Any:
    if codes.size and not 0 <= codes.min() <= codes.max() < len(classes):
        raise TacitError(
            f"{where} has codes {codes.min()}..{codes.max()} for {len(classes)} classes; "
            "use codes from 0 to the number of classes less one."
        )
    return classes[codes]


def _embedded_root() -> Path:
    import aeon.datasets

    return Path(aeon.datasets.__file__).parent / "data"


def _download(name: str) -> Dataset:
    """The archive's own downloader, only for names that the archive has."""
    from aeon.datasets import load_classification
    from aeon.datasets.tsc_datasets import multivariate, univariate

    archive = set(univariate) | set(multivariate)
    if name not in archive:
        raise TacitError(f"there is no data set {name!r}{_suggestion(name, archive)}")
    try:
        X_train, y_train = load_classification(name, split="train")
        X_test, y_test = load_classification(name, split="test")
    except (OSError, ValueError) as error:
        raise TacitError(
            f"{name} is not on this machine and the archive cannot be reached; download it "
            "elsewhere, put NAME.npz into a folder and name that folder in TACIT_DATA, or use an "
            f"embedded set: {', '.join(EMBEDDED)}."
        ) from error
    cubes = [as_cube(part, where=name) for part in (X_train, X_test)]
    labels = [
        as_labels(part, n_series=len(cube), where=name)
        for part, cube in zip((y_train, y_test), cubes, strict=True)
    ]
    return Dataset(
        name=name,
        X_train=cubes[0],
        y_train=labels[0],
        X_test=cubes[1],
        y_test=labels[1],
        classes=check_classes(labels[0], labels[1], where=name),
        note="downloaded from the archive",
    )


def _suggestion(name: str, archive: set[str]) -> str:
    at_hand = list(known_names())
    by_lower = {known.lower(): known for known in [*archive, *at_hand]}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.6)
    if near:
        return f"; did you mean {by_lower[near[0]]!r}?"
    return "; see 'tacit data list', or give the path of a file."
