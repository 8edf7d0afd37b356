"""MATLAB files: to version 7 with SciPy, 7.3 with h5py."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tacit.data.importers.arrays import Entry, entry_of
from tacit.data.importers.matlab_check import check_matlab
from tacit.errors import TacitError

ENDINGS = (".mat",)
_ANY_ERROR = (
    OSError, ValueError, TypeError, KeyError, IndexError, EOFError, AttributeError, OverflowError,
    struct.error, zlib.error, MemoryError, NameError,
)  # fmt: skip


def open_matlab(path: Path) -> dict[str, Entry]:
    """The variables of a file; fields of structures are named structure.field."""
    from tacit.data.importers.hdf5 import open_matlab_hdf5

    with path.open("rb") as file:
        head = file.read(520)
    if b"MATLAB 7.3" in head[:116] or b"\x89HDF" in (head[:4], head[512:516]):
        return open_matlab_hdf5(path)
    found: dict[str, Entry] = {}
    for name, value in load_variables(path).items():
        found.update(_entries(name, value))
    return found


def load_variables(path: Path) -> dict[str, Any]:
    """The variables of a file to version 7, structures as dictionaries."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        check_matlab(path)
        content = loadmat(path, simplify_cells=True)
    except (MatReadError, NotImplementedError, *_ANY_ERROR) as error:
        raise TacitError(
            f"{path.name} is not a readable MATLAB file ({error}); save it again."
        ) from error
    return {name: value for name, value in content.items() if not name.startswith("__")}


def _entries(name: str, value: Any) -> Iterator[tuple[str, Entry]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entries(f"{name}.{key}", item)
        return
    array = np.asarray(value) if not isinstance(value, list) else _listed(value)
    if array.dtype == object:
        array = _from_objects(array)
    if isinstance(array, tuple):
        yield name, Entry((len(array),), False, lambda: np.empty(0), array)
    elif array.dtype.kind in "fiubUS":
        yield name, entry_of(array)


def _listed(values: list[Any]) -> Any:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _from_objects(array: Any) -> Any:
    """Cells: texts become an array of texts, arrays of samples a tuple of recordings."""
    cells = array.reshape(-1).tolist()
    if cells and all(isinstance(cell, str) for cell in cells):
        return np.array(cells, dtype=np.str_)
    arrays = [np.asarray(cell) for cell in cells if not isinstance(cell, (dict, str))]
    if len(arrays) == len(cells) and all(
        a.dtype.kind in "fiub" and a.ndim in (1, 2) for a in arrays
    ):
        return tuple(arrays)
    return array
