"""What the axes of an array of samples are: series, channels and time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.importers.options import ImportOptions
from tacit.errors import TacitError

_AXES = ("series", "channels", "time")


def find_axes(
    shape: tuple[int, ...], *, n_labels: int | None, options: ImportOptions, where: str
) -> tuple[str, ...]:
    """The name of every axis, by what was said or by shape and labels; refuse what is unclear."""
    if options.axes:
        return _said_axes(shape, options.axes)
    if len(shape) == 1:
        return ("time",)
    if len(shape) == 2:
        return _two_axes(shape, n_labels, options.form, where)
    if len(shape) == 3 and n_labels is not None:
        return _three_axes(shape, n_labels, where)
    raise TacitError(
        f"{where} has samples of shape {shape}; say what its axes are with --axes, for "
        "example --axes series,channels,time."
    )


def _said_axes(shape: tuple[int, ...], axes: tuple[str, ...]) -> tuple[str, ...]:
    if len(axes) != len(shape) or len(set(axes)) != len(axes) or not set(axes) <= set(_AXES):
        raise TacitError(
            f"--axes {','.join(axes)} does not name the {len(shape)} axes of samples of shape "
            f"{shape}; use series, channels and time, each once."
        )
    if "time" not in axes:
        raise TacitError(f"--axes {','.join(axes)} has no time; name that axis too.")
    return axes


def _two_axes(
    shape: tuple[int, ...], count: int | None, form: str | None, where: str
) -> tuple[str, ...]:
    rows, columns = shape
    if count is None or count not in shape:
        # A recording; channels are few and samples many.
        if count is not None and count != 1:
            raise _wrong_count(shape, count, where)
        if min(shape) > 64 or max(shape) < 10 * min(shape):
            raise _unclear(shape, where)
        return ("time", "channels") if rows > columns else ("channels", "time")
    if rows == columns:
        raise _unclear(shape, where)
    long, short = max(shape), min(shape)
    if count == long and short < 13 and long > 50 * short:
        if form is None:
            raise TacitError(
                f"{where} has samples of shape {shape} and {count} labels, which may be "
                f"{count} series of length {short} or {short} channels with a label per "
                "sample; pass --form wide or --form long."
            )
        if form == "long":
            return ("time", "channels") if rows > columns else ("channels", "time")
    return ("series", "time") if count == rows else ("time", "series")


def _three_axes(shape: tuple[int, ...], count: int, where: str) -> tuple[str, ...]:
    places = [place for place, size in enumerate(shape) if size == count]
    if not places:
        raise _wrong_count(shape, count, where)
    others = [place for place in range(3) if place != places[0]]
    few, many = sorted(others, key=lambda place: shape[place])
    if len(places) > 1 or shape[many] < 2 * shape[few]:
        raise _unclear(shape, where)
    axes = ["series"] * 3
    axes[few], axes[many] = "channels", "time"
    return tuple(axes)


def _unclear(shape: tuple[int, ...], where: str) -> TacitError:
    example = "series,time" if len(shape) == 2 else "series,channels,time"
    return TacitError(
        f"{where} has samples of shape {shape}, whose axes cannot be told apart; name "
        f"them with --axes, for example --axes {example}."
    )


def _wrong_count(shape: tuple[int, ...], count: int, where: str) -> TacitError:
    return TacitError(
        f"{where} has samples of shape {shape} and {count} labels, which fit no axis; "
        "choose other arrays with --array and --label."
    )


def ordered(values: NDArray[Any], axes: tuple[str, ...]) -> NDArray[Any]:
    """The samples as (series, channels, time), with axes that are not there of size one."""
    present = [axis for axis in _AXES if axis in axes]
    moved = values.transpose([axes.index(axis) for axis in present])
    for place, axis in enumerate(_AXES):
        if axis not in axes:
            moved = np.expand_dims(moved, place)
    return moved
