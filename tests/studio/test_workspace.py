"""Names stay inside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.studio.workspace import open_workspace


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
