"""A file is whole or not there, whoever dies in between."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from tacit.system import files
from tacit.system.files import (
    move_synced,
    sync_folder,
    write_atomic,
    write_folder,
    write_once,
    write_secret,
    written_whole,
)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "file"
    write_atomic(target, b"first")
    write_atomic(target, b"second")
    assert target.read_bytes() == b"second"
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_a_secret_is_never_readable_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    replace = Path.replace

    def looking(self: Path, target: Path) -> Path:
        seen.append(mode_of(self))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", looking)
    write_secret(tmp_path / "key", b"secret")
    assert seen == [0o600]
    assert mode_of(tmp_path / "key") == 0o600


@pytest.mark.parametrize("links", [True, False])
def test_what_must_be_new_is_not_replaced(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:

        def no_links(self: Path, target: Path) -> None:
            if self.exists():
                raise FileExistsError(self)
            raise PermissionError("no hard links on this drive")

        monkeypatch.setattr(Path, "hardlink_to", no_links)
    target = tmp_path / "once"
    write_once(target, b"first", mode=0o600)
    with pytest.raises(FileExistsError):
        write_once(target, b"second", mode=0o600)
    assert target.read_bytes() == b"first"
    assert mode_of(target) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["once"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_atomic(target, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_content_and_folder_are_synced_around_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, Path.replace

    def syncing(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "content")
        sync(handle)

    def renaming(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(Path, "replace", renaming)
    write_atomic(tmp_path / "file", b"x")
    assert steps == ["content", "rename", "folder"]
    sync_folder(tmp_path)
    assert steps[-1] == "folder"


def test_a_move_is_on_disk_in_both_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_folder", synced.append)
    source, folder = tmp_path / "next.key", tmp_path / "in use"
    folder.mkdir()
    source.write_bytes(b"new")
    (folder / "key").write_bytes(b"old")
    move_synced(source, folder / "key")
    assert (folder / "key").read_bytes() == b"new"
    assert not source.exists()
    assert sorted(synced) == [tmp_path, folder]
    move_synced(folder / "key", folder / "old.key")
    assert synced[2:] == [folder]


def test_nothing_is_renamed_without_a_sync() -> None:
    """A power cut undoes what is not; only `Path.replace` takes one argument."""
    package = Path(files.__file__).parents[1]
    syncs_itself = {"system/files.py", "silo/party/results.py"}
    found = [
        f"{path.relative_to(package).as_posix()}:{node.lineno}"
        for path in package.rglob("*.py")
        if path.relative_to(package).as_posix() not in syncs_itself
        and ".replace(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("replace", "rename")
        and len(node.args) == 1
        and not node.keywords
    ]
    assert not found


def test_content_may_be_written_piece_by_piece_or_not_at_all(tmp_path: Path) -> None:
    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise RuntimeError("no more")

    target = tmp_path / "large"
    with pytest.raises(RuntimeError, match="no more"):
        write_once(target, fail)
    assert list(tmp_path.iterdir()) == []
    write_once(target, lambda file: [file.write(b"piece ") for _ in range(3)])
    assert target.read_bytes() == b"piece piece piece "
    assert list(tmp_path.iterdir()) == [target]


def test_two_who_write_one_name_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with written_whole(target) as first, written_whole(target) as second:
        for _ in range(3):
            first.write(b"a" * 10_000)
            second.write(b"b" * 10_000)
    assert target.read_bytes() in (b"a" * 30_000, b"b" * 30_000)
    assert names_in(tmp_path) == ["file"]


def test_what_breaks_off_is_not_published(tmp_path: Path) -> None:
    def break_off() -> None:
        with written_whole(tmp_path / "file") as file:
            file.write(b"half")
            raise ConnectionError

    with pytest.raises(ConnectionError):
        break_off()
    assert names_in(tmp_path) == []


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    write_folder(tmp_path / "new", {"a": b"1", "b": b"2"})
    assert {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()} == {
        "a": b"1",
        "b": b"2",
    }
    with pytest.raises(OSError):
        write_folder(tmp_path / "other", {"a": b"1", "x" * 300: b"2"})
    with pytest.raises(OSError):
        write_folder(tmp_path / "new", {"c": b"3"})
    assert names_in(tmp_path) == ["new"]
    assert names_in(tmp_path / "new") == ["a", "b"]
