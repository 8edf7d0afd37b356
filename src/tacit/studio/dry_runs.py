"""What an import would make of a file or folder: the importer itself, with its output thrown away.

It runs in a process of its own, because recordings fill memory, and says what the real import will:
series, length, classes, people, and what would be dropped and why.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.studio.commands import answer_of

MOST_BYTES = 256 * 1024**2
# How the page calls what a command calls an option.
_FIELDS = {
    "window": "Window", "stride": "Stride", "rate": "Rate", "source-rate": "Rate of the source",
    "channels": "Channels", "classes": "Classes", "label": "Label", "subject": "Person",
    "series": "Series", "time": "Time", "ignore": "Leave out", "form": "Form",
    "missing": "Missing values",
}  # fmt: skip


def import_options(said: Mapping[str, str]) -> list[str]:
    """What a page said, as options of 'tacit data import'."""
    return [word for key, value in said.items() if value for word in (f"--{key}", value)]


def dry_run(source: Path, said: Mapping[str, str]) -> dict[str, Any]:
    """The figures and sentences of an import that leaves nothing behind.

    A refusal is an answer too: it is what the importer would make of the file.
    """
    if size_of(source) > MOST_BYTES:
        return {
            "figures": [],
            "sentences": ["It is too large to be tried out at once; the import shows the rest."],
            "refused": False,
        }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tried.npz"
        try:
            found = answer_of(
                ["data", "import", str(source), "--out", str(out), *import_options(said)]
            )
        except TacitError as error:
            return {"figures": [], "sentences": [in_fields(str(error))], "refused": True}
    classes = ", ".join(map(str, found["classes"][:8]))
    return {
        "figures": [
            (f"{found['series']:,}", "series"),
            (f"{found['length']:,}", "samples each"),
            (str(found["channels"]), "channel" if found["channels"] == 1 else "channels"),
            (str(len(found["classes"])), f"classes: {classes}" if classes else "no labels"),
            *([(str(found["subjects"]), "people")] if found["subjects"] else []),
        ],
        "sentences": [f"{n:,} left out: {why}" for why, n in found["dropped"].items()],
        "refused": False,
    }


def in_fields(sentence: str) -> str:
    """A refusal of the command in the words of the page."""

    def named(match: re.Match[str]) -> str:
        title = _FIELDS.get(match.group(1))
        return f"'{title}'" if title else match.group(0)

    return re.sub(r"--([a-z]+(?:-[a-z]+)*)", named, sentence)


def size_of(source: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    if source.is_file():
        return source.stat().st_size
    return sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
