"""Flower's ClientApp process with one check before anything of the application is run.

`tacit fleet node` puts a command `flwr-clientapp` that calls `main` first on the node's search
path, so Flower's SuperNode starts this instead of its own. It compares the bundle that the server
sent with the one built from the installed package, and goes on as Flower would.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tacit.fleet.flower_files import check_bundle, write_app


def own_bundle() -> bytes:
    """The bundle as this installation would build it."""
    from flwr.cli.build import build_fab_from_disk

    with tempfile.TemporaryDirectory() as folder:
        write_app(Path(folder))
        built: bytes = build_fab_from_disk(Path(folder))
        return built


def main() -> None:
    """Run Flower's ClientApp process with `check_bundle` in front of the installation."""
    import flwr.supernode.runtime.run_clientapp as runtime
    from flwr.supernode.cli import flwr_clientapp

    # Fails, and so runs nothing, if another version of Flower has no such step to guard.
    install = runtime.install_from_fab

    def checked(fab_file: bytes, *args: Any, **kwargs: Any) -> Path:
        check_bundle(fab_file, own_bundle())
        sys.stderr.write("tacit: the server's application is the installed one\n")
        installed: Path = install(fab_file, *args, **kwargs)
        return installed

    runtime.install_from_fab = checked
    sys.argv[0] = "flwr-clientapp"  # by which Flower knows the process when it ends
    flwr_clientapp()


def write_launcher(folder: Path) -> Path:
    """Write the command `flwr-clientapp` into `folder`, to be put first on the search path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "flwr-clientapp"
    # -P: the working directory is not a place to import code from.
    code = "from tacit.fleet.pinned import main; main()"
    text = f"#!/bin/sh\nexec '{sys.executable}' -P -c '{code}' \"$@\"\n"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
