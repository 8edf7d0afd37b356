"""Which reader a source needs: by its ending, its content, or --format."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tacit.data.importers.archives import recipes
from tacit.data.importers.archives.unpack import is_archive, unpack
from tacit.data.importers.options import ImportOptions
from tacit.data.importers.recording import Material
from tacit.errors import TacitError

FORMATS = {
    "edf": (".edf", ".bdf", ".rec"),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet",),
    "wfdb": (".hea",),
    "matlab": (".mat",),
    "hdf5": (".h5", ".hdf5", ".hdf"),
    "npz": (".npz",),
}
_TEXT = ".txt"


@contextmanager
def opened_source(source: Path, options: ImportOptions) -> Iterator[tuple[Material, ImportOptions]]:
    """The recordings of a source, and the options with what its layout settles."""
    with ExitStack() as stack:
        root = source
        if source.is_file() and is_archive(source):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tacit-import-"))
            root = unpack(source, Path(folder))
        yield _opened(source, root, options)


def _opened(source: Path, root: Path, options: ImportOptions) -> tuple[Material, ImportOptions]:
    files = _files(root)
    known = recipes()
    name = options.format
    if name is None:
        found = [recipe.name for recipe in known.values() if recipe.recognises(files)]
        name = found[0] if len(found) == 1 else _guessed(files, source)
    if name in known:
        return known[name].read(files, options)
    if name not in FORMATS:
        words = ", ".join([*sorted(FORMATS), *known])
        raise TacitError(f"unknown --format {name!r}; use one of {words}.")
    chosen = files if root.is_file() else _chosen(name, files)
    if not chosen:
        raise TacitError(
            f"{source.name} has no files that end in {', '.join(FORMATS[name])}; name another "
            "--format."
        )
    return _read(name, chosen, root, options), options


def _chosen(name: str, files: Sequence[Path]) -> list[Path]:
    """The files of a format; a .txt beside other tables is a note."""
    found = [file for file in files if file.suffix.lower() in FORMATS[name]]
    if name == "csv" and not found:
        return [file for file in files if file.suffix.lower() == _TEXT]
    return found


_PACKED = (".rar", ".zip", ".7z", ".tar", ".tgz", ".gz", ".bz2", ".xz")


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    return sorted(file for file in source.rglob("*") if file.is_file())


def _guessed(files: Sequence[Path], source: Path) -> str:
    endings = {ending: name for name, known in FORMATS.items() for ending in known}
    found = Counter(
        endings[file.suffix.lower()] for file in files if file.suffix.lower() in endings
    )
    if len(found) == 1:
        return next(iter(found))
    if not found and any(file.suffix.lower() == _TEXT for file in files):
        return "csv"
    if not found:
        packed = next((file.name for file in files if file.suffix.lower() in _PACKED), None)
        if packed is not None:
            raise TacitError(f"{packed} is a packed archive; unpack it first and give the folder.")
        raise TacitError(
            f"{source.name} holds no format that can be imported; known endings are "
            f"{', '.join(sorted([*endings, _TEXT]))}."
        )
    told = ", ".join(f"{name} ({count})" for name, count in sorted(found.items()))
    raise TacitError(f"{source.name} holds files of several formats: {told}; choose with --format.")


def _read(name: str, files: list[Path], root: Path, options: ImportOptions) -> Material:
    if name in ("csv", "parquet"):
        from tacit.data.importers.tables.read import read_tables

        return read_tables(files, root, options)
    if name == "edf":
        from tacit.data.importers.edf import read_edf

        return read_edf(files, root, options)
    if name == "wfdb":
        from tacit.data.importers.waveforms import read_waveforms, whole_records

        return read_waveforms(whole_records(files), root, options)
    return _read_arrays(name, files, root, options)


def _read_arrays(name: str, files: list[Path], root: Path, options: ImportOptions) -> Material:
    from tacit.data.importers.arrays import entry_of, read_arrays

    if name == "matlab":
        from tacit.data.importers.matlab import open_matlab

        return read_arrays(files, root, options, format="MATLAB", open_file=open_matlab)
    if name == "hdf5":
        from tacit.data.importers.hdf5 import open_hdf5

        return read_arrays(files, root, options, format="HDF5", open_file=open_hdf5)
    from tacit.data.formats import open_npz

    return read_arrays(
        files,
        root,
        options,
        format="NumPy",
        open_file=lambda path: {key: entry_of(array) for key, array in open_npz(path).items()},
    )
