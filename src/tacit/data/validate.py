"""Checks on series and labels; every refusal names the place and the remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Cube
from tacit.data.dataset import Labels
from tacit.errors import TacitError

NO_LABELS = frozenset({"", "nan", "none", "?"})
HUGE = 1e12  # beyond, squares lose all precision; such values are sentinels or broken units


def as_cube(X: Any, *, where: str = "X") -> Cube:
    """Series as float64 of shape (n, channels, length), refusing what cannot be computed with.

    Accepts (n, length), (n, channels, length) or a list of equally long series; `where` names
    the file or argument in the error.
    """
    if isinstance(X, np.ndarray) and X.dtype == object:
        X = list(X)
    if isinstance(X, (list, tuple)):
        X = _stack(X, where)
    array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        raise TacitError(
            f"{where} holds {array.dtype} values, not numbers; convert every value to a number."
        )
    if array.size == 0:
        raise TacitError(
            f"{where} has shape {array.shape}: there is no value in it; "
            "give at least one series with at least one step."
        )
    if array.ndim == 2:
        array = array[:, np.newaxis, :]
    if array.ndim != 3:
        raise TacitError(
            f"{where} has shape {array.shape}; give (n, length) or (n, channels, length)."
        )
    cube = np.ascontiguousarray(array, dtype=np.float64)
    _refuse_bad_values(cube, where)
    return cube


def _stack(series: Sequence[Any], where: str) -> Any:
    rows = [np.asarray(row) for row in series]
    if not rows:
        raise TacitError(f"{where} is empty; give at least one series.")
    for number, row in enumerate(rows, start=1):
        if row.shape[-1:] == (0,):
            raise TacitError(f"{where} row {number} has length 0; remove it or add its values.")
        if row.shape != rows[0].shape:
            raise TacitError(
                f"{where} row {number} has shape {row.shape} but row 1 has {rows[0].shape}; "
                "cut, pad or resample the series to one length."
            )
    return np.stack(rows)


def _refuse_bad_values(cube: Cube, where: str) -> None:
    # Extremes of anything with a NaN are NaN; two passes without a copy settle the usual case.
    if cube.min() >= -HUGE and cube.max() <= HUGE:
        return
    bad = ~np.isfinite(cube)
    if bad.any():
        row, channel, step = (int(index) for index in np.argwhere(bad)[0])
        raise TacitError(
            f"{where} row {row + 1}, channel {channel + 1}, step {step + 1} is "
            f"{cube[row, channel, step]}; fill or drop missing and infinite values first."
        )
    row, channel, step = (int(i) for i in np.unravel_index(np.abs(cube).argmax(), cube.shape))
    raise TacitError(
        f"{where} row {row + 1}, channel {channel + 1}, step {step + 1} is "
        f"{cube[row, channel, step]:g}, beyond {HUGE:g}; "
        "replace sentinels and choose a unit of ordinary size."
    )


def refuse_constant(cube: Cube, *, where: str) -> None:
    """Refuse series that never change: a flat recording holds nothing to classify."""
    flat = np.flatnonzero(np.ptp(cube, axis=2).max(axis=1) == 0.0)
    if flat.size:
        raise TacitError(
            f"{where} row {int(flat[0]) + 1} is constant in every channel; "
            "check the sensor, a flat series holds nothing to classify."
        )


def as_labels(y: Any, *, n_series: int, where: str = "y") -> Labels:
    """Labels as strings, one per series, none empty; whole numbers lose their '.0'."""
    flat = np.asarray(y)
    if flat.ndim != 1 or len(flat) != n_series:
        raise TacitError(
            f"{where} has shape {flat.shape} for {n_series} series; give one label per series."
        )
    labels = np.array([label_text(value) for value in flat.tolist()], dtype=np.str_)
    for number, label in enumerate(labels, start=1):
        if label.lower() in NO_LABELS:
            raise TacitError(f"{where} row {number} has no label; add it or drop the row.")
    return labels


def label_text(value: Any) -> str:
    """One spelling per label: 1, 1.0 and '1.0000e+00' are all '1'."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else text


def check_classes(y_train: Labels, y_test: Labels, *, where: str) -> tuple[str, ...]:
    """The sorted classes of the training labels; refuse one class, or unseen test labels."""
    classes = tuple(sorted(set(y_train.tolist()), key=_natural))
    if len(classes) < 2:
        raise TacitError(
            f"{where} has the single class {classes[0]!r} in its training part; "
            "a classifier needs at least two."
        )
    for number, label in enumerate(y_test.tolist(), start=1):
        if label not in classes:
            raise TacitError(
                f"{where} test row {number} has label {label!r}, which no training series has "
                f"(training: {', '.join(classes[:8])}); correct it or add training series."
            )
    return classes


def _natural(label: str) -> tuple[int, float, str]:
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)
