"""What recipes share: defaults for what the user did not say, and files found by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.data.importers.options import ImportOptions
from tacit.errors import TacitError


def with_defaults(options: ImportOptions, **usual: Any) -> ImportOptions:
    """The options with the archive's usual values wherever none was given."""
    chosen = {name: value for name, value in usual.items() if not getattr(options, name)}
    if options.window is not None:
        chosen.pop("stride", None)  # it belongs to the usual window
    return replace(options, **chosen)


def find(files: Sequence[Path], ending: str) -> Path | None:
    """The one file whose path ends so."""
    found = [path for path in files if path.as_posix().lower().endswith(ending.lower())]
    return found[0] if found else None


def need(files: Sequence[Path], ending: str, *, archive: str) -> Path:
    """The one file whose path ends so, or a sentence that it is missing."""
    found = find(files, ending)
    if found is None:
        raise TacitError(f"{archive} needs a file {ending}, which is not there; unpack it whole.")
    return found


def refuse_columns(options: ImportOptions, *, archive: str) -> None:
    """Recipes know where labels stand; a column that is named is a misunderstanding."""
    for name in ("series", "time", "form"):
        if getattr(options, name) is not None:
            raise TacitError(
                f"--{name} means nothing for {archive}, whose layout is known; leave it out."
            )
    for name in ("label", "subject"):
        if getattr(options, name) not in (None, "none"):
            raise TacitError(
                f"--{name} can only be none for {archive}, whose layout is known; leave it out."
            )
