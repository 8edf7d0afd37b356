"""Names stay inside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.studio.workspace import ROOMS, open_workspace


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_other_accounts_cannot_look_into_a_workspace(tmp_path: Path) -> None:
    new = open_workspace(tmp_path / "new").root
    assert mode(new) == 0o700
    made_before = tmp_path / "before"  # as 'tacit arena run --out before/arena/quick' makes it
    (made_before / "arena").mkdir(parents=True)
    made_before.chmod(0o755)
    assert mode(open_workspace(made_before).root) == 0o700


def test_a_folder_with_other_things_is_not_narrowed(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "notes.txt").touch()
    shared.chmod(0o755)
    with pytest.raises(TacitError, match=r"mode 755.*chmod 700"):
        open_workspace(shared)
    assert mode(shared) == 0o755
    assert [path.name for path in shared.iterdir()] == ["notes.txt"]
    shared.chmod(0o700)
    assert open_workspace(shared).root == shared
    shared.chmod(0o750)  # it holds every room now, so it is a workspace
    assert (shared / ROOMS[0]).is_dir()
    assert mode(open_workspace(shared).root) == 0o700


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "/etc/passwd", ".hidden", "-o", "", "a\x00b", "x" * 200, "a..b"]
)
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    workspace = open_workspace(tmp_path / "w")
    with pytest.raises(TacitError, match="is not a valid name"):
        workspace.place("data", name)


def test_a_free_place_is_never_taken(tmp_path: Path) -> None:
    workspace = open_workspace(tmp_path)
    first = workspace.free("data", "Gün Point", ".npz")
    assert first.name == "G-n-Point.npz"
    first.touch()
    assert workspace.free("data", "Gün Point", ".npz").name == "G-n-Point-2.npz"
    assert workspace.free("data", "...", ".npz").name == "unnamed.npz"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(TacitError, match="no 'gone' in models"):
        open_workspace(tmp_path).existing("models", "gone")


def test_a_place_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TacitError, match="choose another --workspace"):
        open_workspace(tmp_path / "file")
