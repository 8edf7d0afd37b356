"""Files that are whole or not there: written beside their place, synced, then renamed.

Standard library only, because devices carry this module.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

# What a file holds: bytes at hand, or a function that writes what does not fit into memory.
Content = bytes | Callable[[BinaryIO], object]


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all, and have it on disk before returning.

    A process that dies leaves the old file or the new one, and so does a power cut: the content
    is synced before the rename and the folder after it.
    """
    with written_whole(path, mode=mode) as file:
        file.write(content)


@contextlib.contextmanager
def written_whole(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A file to write piece by piece; it takes its place, synced, when the block ends well.

    Two who write one name at a time do not mix: the later end stands.
    """
    with _published(path, mode=mode, publish=lambda temporary: temporary.replace(path)) as file:
        yield file


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a new folder of files, or nothing; an empty folder may stand in its place.

    The folder above must exist. On disk before returning, as `write_atomic`.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.mkdir()
        for name, content in files.items():
            write_atomic(temporary / name, content)
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_secret(path: Path, content: bytes) -> None:
    """Write a private file that only its owner can read."""
    write_atomic(path, content, mode=0o600)


def write_once(path: Path, content: Content, *, mode: int = 0o644) -> None:
    """Write a file that must not exist yet; `FileExistsError` if it does.

    On a drive without hard links the caller must hold a lock against others who write it.
    """

    def publish(temporary: Path) -> None:
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            raise
        except OSError:
            if path.exists():
                raise FileExistsError(path) from None
            temporary.replace(path)

    with _published(path, mode=mode, publish=publish) as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)


def move_synced(source: Path, target: Path) -> None:
    """Rename a file or folder, over a file that stands there, and have that on disk.

    What is moved is on disk already; both folders are synced, as after `write_atomic`.
    """
    source.replace(target)
    for folder in {target.parent, source.parent}:
        sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Have the folder's own entries on disk: a rename survives a power cut only then."""
    if sys.platform == "win32":  # there a folder cannot be opened, and a rename is journaled
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _published(path: Path, *, mode: int, publish: Callable[[Path], object]) -> Iterator[BinaryIO]:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        publish(temporary)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
