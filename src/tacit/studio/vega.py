"""The Vega library as a file of the workspace, made once by a process of its own.

Bundling takes seconds and a hundred megabytes, which the studio's own process shall not keep.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib.metadata import version
from pathlib import Path

from tacit._version import VERSION
from tacit.errors import TacitError
from tacit.report.render import library_mark
from tacit.studio.workspace import Workspace

_MOST_SECONDS = 120.0
_lock = threading.Lock()


def vega_file(workspace: Workspace) -> Path:
    """Where the library lies; made if it is not there."""
    name = f"vega-{VERSION}-{version('vl-convert-python')}-{library_mark()}.js"
    place = workspace.root / ".cache" / name
    with _lock:
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            _bundle(place)
    return place


def _bundle(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tacit.studio.vega", str(place)],
        capture_output=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise TacitError(f"the chart library was not bundled: {' '.join(last)}; see its install.")


def write_library(place: Path) -> None:
    """Bundle the library here."""
    from tacit.report.render import vega_library
    from tacit.system.files import write_atomic

    write_atomic(place, vega_library().encode())


if __name__ == "__main__":
    write_library(Path(sys.argv[1]))
