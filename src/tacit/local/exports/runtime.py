"""The parts of an export that are the same for every model, as they lie in the package."""

from __future__ import annotations

from importlib import resources


def runtime_files(folder: str) -> dict[str, str]:
    """The texts of a folder beside this module, by file name."""
    place = resources.files("tacit.local.exports") / folder
    return {file.name: file.read_text(encoding="utf-8") for file in place.iterdir()}
