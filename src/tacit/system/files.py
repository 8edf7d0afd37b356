"""Files that are whole or not there: written beside their place, synced, then renamed.

Standard library only, because devices carry this module.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

# What a file holds: bytes at hand, or a function that writes what does not fit into memory.
Content = bytes | Callable[[BinaryIO], object]


def write_atomic(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file whole or not at all, and have it on disk before returning.

    A process that dies leaves the old file or the new one, and so does a power cut: the content
    is synced before the rename and the folder after it.
    """
    _publish(path, content, mode=mode, publish=lambda temporary: temporary.replace(path))


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

    _publish(path, content, mode=mode, publish=publish)


def sync_folder(folder: Path) -> None:
    """Have the folder's own entries on disk: a rename survives a power cut only then."""
    if sys.platform == "win32":  # there a folder cannot be opened, and a rename is journaled
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _publish(path: Path, content: Content, *, mode: int, publish: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            os.fsync(file.fileno())
        publish(temporary)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
