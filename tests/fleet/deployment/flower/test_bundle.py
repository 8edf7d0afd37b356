"""What the server sends is not what a node runs, unless it is what the node has."""

from __future__ import annotations

import io
import runpy
import zipfile
from pathlib import Path

import pytest

from tacit.errors import TacitError
from tacit.fleet.deployment.flower import app
from tacit.fleet.deployment.flower.allowed_commands import own_bundle
from tacit.fleet.deployment.flower.bundle import APP_FILES, check_bundle, write_app

# Flower's own build still asks for a pattern class by its old name.
pytestmark = pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")


def bundle_with(changes: dict[str, bytes | None]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(own_bundle())) as archive:
        files: dict[str, bytes | None] = {n: archive.read(n) for n in archive.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in (files | changes).items():
            if content is not None:
                archive.writestr(name, content)
    return out.getvalue()


def test_its_own_application_passes_however_it_is_packed() -> None:
    check_bundle(own_bundle(), own_bundle())
    check_bundle(bundle_with({}), own_bundle())


@pytest.mark.parametrize(
    "changes",
    [
        {"tacit_fleet_app/client.py": b"import os\n"},
        {"tacit_fleet_app/client.py": None},
        {"tacit_fleet_app/extra.py": b""},
        {"tacit/__init__.py": b""},
        {"pyproject.toml": APP_FILES["pyproject.toml"].replace("client:app", "evil:app").encode()},
    ],
)
def test_any_other_application_is_refused(changes: dict[str, bytes | None]) -> None:
    with pytest.raises(TacitError, match="nothing of it was run"):
        check_bundle(bundle_with(changes), own_bundle())


def test_rubbish_is_refused() -> None:
    with pytest.raises(TacitError, match="not an archive"):
        check_bundle(b"rubbish", own_bundle())


@pytest.mark.parametrize(("part", "name"), [("client", "client_app"), ("server", "server_app")])
def test_the_bundle_names_the_installed_application(tmp_path: Path, part: str, name: str) -> None:
    """A node never imports its copy, so that a stale module name in it would go unnoticed."""
    write_app(tmp_path)
    found = runpy.run_path(str(tmp_path / "tacit_fleet_app" / f"{part}.py"))["app"]
    assert found is getattr(app, name)
    assert f'{part}app = "tacit_fleet_app.{part}:app"' in APP_FILES["pyproject.toml"]
