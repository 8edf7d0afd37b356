"""The folder that studio and command line share: what lies where, and which names are allowed.

data/      .npz files that imports wrote
uploads/   files as they were dropped, until they are imported
models/    one bundle folder per training
jobs/      one folder per command that was started here
ledgers/   budget ledgers
federations/  a party's output folder of a silo run, or a fleet's folder
arena/     one folder of results per comparison
pages/     HTML pages that trainings wrote
releases/  what devices would send, one file per run
stores/    releases that collectors counted, one file per model
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import TacitError

ROOMS = (
    "data", "uploads", "models", "jobs", "ledgers", "stores", "federations", "arena", "pages",
    "releases",
)  # fmt: skip
# Starts with a letter or digit: no hidden file, no option of a command, no way out of the folder.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,79}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """One folder on disk; `open_workspace` makes it."""

    root: Path

    def place(self, room: str, name: str) -> Path:
        """Where `name` lies in a room, whether it exists or not; odd names are refused."""
        return self.root / room / checked_name(name)

    def existing(self, room: str, name: str) -> Path:
        """A file or folder that must be there."""
        found = self.place(room, name)
        if not found.exists():
            raise TacitError(f"there is no {name!r} in {room}/ of the workspace; look at the list.")
        return found

    def names(self, room: str, pattern: str = "*") -> list[str]:
        """What a room holds, the newest first."""
        found = [path for path in (self.root / room).glob(pattern) if _NAME.fullmatch(path.name)]
        return [path.name for path in sorted(found, key=_changed, reverse=True)]

    def free(self, room: str, stem: str, suffix: str = "") -> Path:
        """A place that is not taken: `stem`, or `stem-2`, `stem-3` and so on."""
        stem = checked_name(re.sub(r"[^A-Za-z0-9_.-]+", "-", stem).strip("-.") or "unnamed")
        tried = (f"{stem}{suffix}", *(f"{stem}-{n}{suffix}" for n in range(2, 10_000)))
        places = (self.root / room / name for name in tried)
        return next(place for place in places if not place.exists())


def open_workspace(root: Path) -> Workspace:
    """The workspace in this folder, made if it is not there; nobody but its owner can look in."""
    try:
        root.mkdir(parents=True, mode=0o700, exist_ok=True)
        _close_to_others(root)
        for room in ROOMS:
            (root / room).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TacitError(
            f"cannot make a workspace in {root}: {error.strerror}; choose another --workspace."
        ) from error
    return Workspace(root.absolute())


def _close_to_others(root: Path) -> None:
    """Recordings lie here in the clear; a folder that has other uses as well is left as it is."""
    mode = stat.S_IMODE(root.stat().st_mode)
    if not mode & 0o077:
        return
    seen = {path.name for path in root.iterdir() if not path.name.startswith(".")}
    if not (seen <= set(ROOMS) or seen >= set(ROOMS)):
        raise TacitError(
            f"{root} is open to other accounts (mode {mode:o}) and holds more than a workspace; "
            f"choose a new folder as --workspace, or type 'chmod 700 {root}' first."
        )
    root.chmod(0o700)


def checked_name(name: str) -> str:
    """A name that stays inside its room."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise TacitError(
            f"{name[:80]!r} is not a valid name; use letters, digits, '.', '-', '_' and spaces."
        )
    return name


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # removed since the folder was listed
        return 0.0
