"""Unpack a .zip or .tar archive into a folder of its own, and trust nothing in it."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from tacit.errors import TacitError

ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_LARGE = 1 << 30
_DENSEST = 100  # a real archive of samples shrinks by less
_NESTED = 2  # some archives are zipped twice


def is_archive(path: Path) -> bool:
    """Whether a file is called an archive."""
    return path.name.lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path) -> Path:
    """Unpack an archive, and archives in it, into an empty folder; refuse what leads out of it."""
    _unpack(path, folder)
    for _ in range(_NESTED):
        inner = [file for file in sorted(folder.rglob("*.zip")) if file.is_file()]
        for file in inner:
            target = file.with_suffix("")
            target.mkdir(parents=True, exist_ok=True)
            _unpack(file, target)
            file.unlink()
    return folder


def _unpack(path: Path, folder: Path) -> None:
    try:
        if zipfile.is_zipfile(path):
            _unzip(path, folder)
        elif tarfile.is_tarfile(path):
            _untar(path, folder)
        else:
            raise TacitError(f"{path.name} is not a readable .zip or .tar archive; copy it again.")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError) as error:
        raise TacitError(
            f"{path.name} cannot be unpacked ({error}); copy it again, or unpack it yourself and "
            "name the folder."
        ) from error


def _unzip(path: Path, folder: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        for member in members:
            _check_name(path, member.filename)
            if stat.S_ISLNK(member.external_attr >> 16):
                raise _trick(path, member.filename)
        _check_size(path, folder, sum(member.file_size for member in members))
        for member in members:
            if not _is_junk(member.filename):
                target = folder.joinpath(*PurePosixPath(member.filename).parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)


def _untar(path: Path, folder: Path) -> None:
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
        for member in members:
            _check_name(path, member.name)
            if not member.isfile():
                raise _trick(path, member.name)
        _check_size(path, folder, sum(member.size for member in members))
        wanted = [member for member in members if not _is_junk(member.name)]
        archive.extractall(folder, members=wanted, filter="data")


def _check_name(path: Path, name: str) -> None:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\x00" in name:
        raise _trick(path, name)


def _trick(path: Path, name: str) -> TacitError:
    return TacitError(
        f"{path.name} holds {name!r}, which leads out of the folder it is unpacked to; "
        "do not use this archive."
    )


def _check_size(path: Path, folder: Path, size: int) -> None:
    if size > _LARGE and size > _DENSEST * path.stat().st_size:
        raise TacitError(
            f"{path.name} would grow from {path.stat().st_size} to {size} bytes, which no archive "
            "of recordings does; unpack it yourself if you trust it, and name the folder."
        )
    free = shutil.disk_usage(folder).free
    if size > free:
        raise TacitError(
            f"{path.name} needs {size} bytes to unpack and {folder} has {free} left; make room, or "
            "set TMPDIR to another disk."
        )


def _is_junk(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return "__MACOSX" in parts or parts[-1] == ".DS_Store"
