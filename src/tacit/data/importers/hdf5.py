"""HDF5 files, and MATLAB files of version 7.3, which are HDF5 with habits of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.importers.arrays import Entry, entry_of
from tacit.errors import TacitError
from tacit.system.extras import needs

ENDINGS = (".h5", ".hdf5", ".hdf")
_ANY_ERROR = (OSError, ValueError, KeyError, RuntimeError, TypeError)


def open_hdf5(path: Path) -> dict[str, Entry]:
    """The arrays of a file by their paths, and its attributes; links to other files are left."""
    return _opened(path, matlab=False)


def open_matlab_hdf5(path: Path) -> dict[str, Entry]:
    """The variables of a MATLAB file, axes as MATLAB shows them, texts and cells decoded."""
    return _opened(path, matlab=True)


def _opened(path: Path, *, matlab: bool) -> dict[str, Entry]:
    needs("import", "h5py", what="reading HDF5 and MATLAB 7.3")
    import h5py

    try:
        with h5py.File(path, "r") as file:
            found: dict[str, Entry] = {}
            if not matlab:
                _add_attributes(found, file.attrs)

            def visit(name: str, item: Any) -> None:
                if name.startswith("#"):  # where MATLAB keeps the content of cells
                    return
                if isinstance(item, h5py.Dataset):
                    entry = _matlab_entry(path, name, item) if matlab else _entry(path, name, item)
                    if entry is not None:
                        found[name.replace("/", ".")] = entry
                if not matlab:
                    _add_attributes(found, item.attrs)

            file.visititems(visit)
    except _ANY_ERROR as error:
        raise TacitError(
            f"{path.name} is not a readable HDF5 file ({error}); copy or export it again."
        ) from error
    return found


def _add_attributes(found: dict[str, Entry], attributes: Any) -> None:
    for name, value in attributes.items():
        array = np.asarray(value)
        if array.dtype.kind in "fiub" and name not in found:
            found[str(name)] = entry_of(array)
        elif array.dtype.kind in "SUO" and array.ndim == 1 and name not in found:
            found[str(name)] = entry_of(_texts(array))


def _entry(path: Path, name: str, item: Any) -> Entry | None:
    import h5py

    if item.dtype.kind in "fiub":
        return Entry(tuple(item.shape), True, _loader(path, name))
    if item.dtype.kind == "S" or h5py.check_string_dtype(item.dtype) is not None:
        return entry_of(_texts(np.asarray(item[()])))
    return None


def _matlab_entry(path: Path, name: str, item: Any) -> Entry | None:
    kind = item.attrs.get("MATLAB_class", b"")
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind == "char":
        return entry_of(_characters(item))
    if kind == "cell":
        return _cell_entry(item)
    if item.dtype.kind in "fiub" and not item.attrs.get("MATLAB_empty", 0):
        shape = tuple(reversed(item.shape))
        load = _loader(path, name)
        return Entry(shape, True, lambda: load().T)
    return None


def _cell_entry(item: Any) -> Entry | None:
    cells = [item.file[reference] for reference in np.asarray(item[()]).T.reshape(-1)]
    if all(cell.attrs.get("MATLAB_class", b"") == b"char" for cell in cells):
        return entry_of(np.array(["".join(_characters(cell).tolist()) for cell in cells]))
    if all(cell.dtype.kind in "fiub" for cell in cells):
        arrays = tuple(np.squeeze(np.asarray(cell[()]).T) for cell in cells)
        return Entry((len(arrays),), False, lambda: np.empty(0), arrays)
    return None


def _characters(item: Any) -> NDArray[np.str_]:
    """A char array of MATLAB: one text per row."""
    codes = np.atleast_2d(np.asarray(item[()]).T)
    rows = ["".join(chr(code) for code in row).rstrip() for row in codes.tolist()]
    return np.array(rows, dtype=np.str_)


def _texts(values: NDArray[Any]) -> NDArray[np.str_]:
    flat = [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v)
            for v in np.atleast_1d(values).reshape(-1).tolist()]  # fmt: skip
    return np.array(flat, dtype=np.str_).reshape(np.atleast_1d(values).shape)


def _loader(path: Path, name: str) -> Callable[[], NDArray[Any]]:
    def load() -> NDArray[Any]:
        import h5py

        try:
            with h5py.File(path, "r") as file:
                return np.asarray(file[name][()])
        except _ANY_ERROR as error:
            raise TacitError(
                f"{path.name} cannot be read at {name!r} ({error}); copy or export it again."
            ) from error

    return load
