"""Modules import on every system; what only Linux and macOS can do says so when it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command import assert_refused, tacit
from tacit.errors import TacitError
from tacit.system import posix

PACKAGE = Path(posix.__file__).parent.parent
POSIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}


def imported_at_once(source: str) -> Iterator[str]:
    """What a module imports when it is imported; branches for one platform do not count."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("folder", sorted(p.name for p in PACKAGE.iterdir() if p.is_dir()))
def test_no_module_needs_posix_to_be_imported(folder: str) -> None:
    for file in sorted((PACKAGE / folder).rglob("*.py")):
        found = POSIX_MODULES & set(imported_at_once(file.read_text(encoding="utf-8")))
        assert not found, f"{file.name} imports {sorted(found)}"


def test_the_check_notices_an_import() -> None:
    assert "fcntl" in set(imported_at_once("import os\nimport fcntl\n"))
    assert "resource" in set(imported_at_once("from resource import getrusage\n"))
    assert not set(imported_at_once("def f():\n    import fcntl\n"))


@pytest.mark.parametrize(
    "command",
    [
        ("studio", "--no-browser", "--workspace", "{folder}/studio"),
        ("fleet", "shuffler", "{folder}/fleet/shuffler/shuffler.toml"),
        ("fleet", "analyser", "{folder}/fleet/analyser/analyser.toml"),
        ("fleet", "node", "{folder}/fleet/nodes/node-1/node.toml"),
        ("fleet", "server", "{folder}/fleet/server/server.toml"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_what_needs_posix_says_so_elsewhere(
    command: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if command[0] == "fleet":
        words = ("--nodes", 2, "--rounds", 1, "--kernels", 20)
        made = tacit(capsys, "fleet", "init", tmp_path / "fleet", "--data", "GunPoint", *words)
        assert made.code == 0
    monkeypatch.setattr(posix, "POSIX", False)
    outcome = tacit(capsys, *(word.format(folder=tmp_path) for word in command))
    assert outcome.code == 2
    assert outcome.err.strip().splitlines()[-1].startswith("tacit: ")
    assert "needs Linux or macOS" in outcome.err
    assert "Traceback" not in outcome.err


def test_records_and_parties_say_so_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.arena.store import Store
    from tacit.silo.party.localhost import run_federation

    monkeypatch.setattr(posix, "POSIX", False)
    nothing: Any = None
    with pytest.raises(TacitError, match="record needs Linux or macOS"):
        Store(tmp_path / "new").append({})
    assert not (tmp_path / "new").exists()
    with pytest.raises(TacitError, match="training needs Linux or macOS"):
        run_federation(nothing, nothing)


def test_what_needs_nothing_still_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posix, "POSIX", False)
    assert tacit(capsys, "data", "show", "GunPoint").code == 0
    assert_refused(tacit(capsys, "studio"), "'tacit studio' needs Linux or macOS")
