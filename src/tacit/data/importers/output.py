"""The .npz that an import makes: written piece by piece, whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.system.files import write_once

_npy: Any = np.lib.format  # without types


@dataclass(slots=True)
class _Part:
    values: IO[bytes]
    y: list[NDArray[np.str_]] = field(default_factory=list)
    subject: list[NDArray[np.str_]] = field(default_factory=list)
    n_series: int = 0


class SeriesFile:
    """Collects windows on disk, in a file without a name, and writes them out in the end.

    Neither the windows nor the finished file are ever in memory as a whole.
    """

    def __init__(self, out: Path, *, dtype: type[np.floating[Any]]) -> None:
        self._out = out
        self._dtype = np.dtype(dtype)
        self._files = ExitStack()
        self._parts: dict[str, _Part] = {}
        self._shape: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._files.close()
            return
        with suppress(OSError):  # a full disk says so again when the file is closed
            self._files.close()

    def add(
        self,
        X: NDArray[Any],
        *,
        y: NDArray[np.str_] | None,
        subject: NDArray[np.str_] | None,
        part: str = "",
        where: str,
    ) -> None:
        """Append windows (n, channels, length) of one part ("", train or test)."""
        shape = (X.shape[1], X.shape[2])
        if self._shape is None:
            self._shape = shape
        if shape != self._shape:
            raise TacitError(
                f"{where} has series of (channels, length) {shape} but those before it have "
                f"{self._shape}; cut all to one length with --window."
            )
        try:
            taken = self._parts[part] = self._parts.get(part) or _Part(self._new_file())
            taken.values.write(np.ascontiguousarray(X, dtype=self._dtype).data)
        except OSError as error:
            raise self._unwritable(error) from error
        taken.n_series += len(X)
        if y is not None:
            taken.y.append(y)
        if subject is not None:
            taken.subject.append(subject)

    def _new_file(self) -> IO[bytes]:
        folder = _existing_folder(self._out)
        return self._files.enter_context(tempfile.TemporaryFile(dir=folder))

    def _unwritable(self, error: OSError) -> TacitError:
        return TacitError(
            f"cannot write to {_existing_folder(self._out)}: {error.strerror or error}; nothing "
            "was imported, make room or choose another --out."
        )

    @property
    def n_series(self) -> int:
        """How many windows there are."""
        return sum(part.n_series for part in self._parts.values())

    @property
    def shape(self) -> tuple[int, int]:
        """Channels and length."""
        return self._shape or (0, 0)

    def classes(self) -> Counter[str]:
        """How many windows each class has."""
        return self._count(block for part in self._parts.values() for block in part.y)

    def subjects(self) -> Counter[str]:
        """How many windows each person has."""
        return self._count(block for part in self._parts.values() for block in part.subject)

    @staticmethod
    def _count(blocks: Iterable[NDArray[np.str_]]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for block in blocks:
            counts.update(block.tolist())
        return counts

    def publish(self, *, rate: float | None, channel_names: tuple[str, ...]) -> None:
        """Write the file; a part that is not named holds all series."""

        def write(file: BinaryIO) -> None:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, part in self._parts.items():
                    self._write_part(archive, f"_{name}" if name else "", part)
                _write_array(archive, "channels", np.array(channel_names, dtype=np.str_))
                if rate is not None:
                    _write_array(archive, "rate", np.array(rate))

        try:
            write_once(self._out, write)
        except FileExistsError as error:
            raise TacitError(f"{self._out} exists already; choose another --out.") from error
        except OSError as error:
            raise self._unwritable(error) from error

    def _write_part(self, archive: zipfile.ZipFile, ending: str, part: _Part) -> None:
        header = {
            "descr": _npy.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (part.n_series, *self.shape),
        }
        part.values.seek(0)
        with archive.open(f"X{ending}.npy", "w", force_zip64=True) as member:
            _npy.write_array_header_2_0(member, header)
            shutil.copyfileobj(part.values, member, 1 << 20)
        if part.y:
            _write_array(archive, f"y{ending}", np.concatenate(part.y))
        if part.subject:
            _write_array(archive, f"subject{ending}", np.concatenate(part.subject))


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        _npy.write_array(member, array, allow_pickle=False)


def _existing_folder(out: Path) -> Path:
    return next(folder for folder in out.absolute().parents if folder.is_dir())
