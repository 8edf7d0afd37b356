"""The Flower application as files: a thin bundle whose code is the installed package.

Flower sends the application's files from the server to every node and runs them there. So that a
server cannot send other code, the bundle only names functions of the installed `tacit`, and a
node compares what it received with the files below before it runs any of it
(`allowed_commands`).
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from tacit.errors import TacitError
from tacit.system.files import write_atomic

APP_FILES = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "tacit-fleet-app"
version = "1.0.0"
description = "Drives the rounds of a Tacit fleet; reports never pass through it"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "tacit"

[tool.flwr.app.components]
serverapp = "tacit_fleet_app.server:app"
clientapp = "tacit_fleet_app.client:app"

[tool.flwr.app.config]
server-config = ""
""",
    "tacit_fleet_app/__init__.py": '"""Names the installed package; holds no code of its own."""\n',
    "tacit_fleet_app/client.py": (
        '"""The node\'s part."""\n\n'
        "from tacit.fleet.deployment.flower.app import client_app as app\n\n"
        '__all__ = ["app"]\n'
    ),
    "tacit_fleet_app/server.py": (
        '"""The server\'s part."""\n\n'
        "from tacit.fleet.deployment.flower.app import server_app as app\n\n"
        '__all__ = ["app"]\n'
    ),
}


def write_app(folder: Path) -> None:
    """Write the bundle's source, from which the server builds what Flower distributes."""
    for name, text in APP_FILES.items():
        write_atomic(folder / name, text.encode())


def check_bundle(bundle: bytes, own: bytes) -> None:
    """Refuse a received bundle unless it holds the same files as the node's own."""
    if _fingerprint(bundle) != _fingerprint(own):
        raise TacitError(
            "the server sent an application that differs from the installed one; nothing of it "
            "was run. Install the same version of tacit on the server and on every node."
        )


def _fingerprint(bundle: bytes) -> dict[str, str]:
    # Contents, not the archive: two versions of zlib may pack the same files differently.
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            names = archive.namelist()
            if len(names) != len(set(names)):
                raise TacitError(
                    "the server sent an application with the same file twice; it was not run."
                )
            return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}
    except zipfile.BadZipFile as error:
        raise TacitError(
            "the server sent an application that is not an archive; it was not run."
        ) from error
