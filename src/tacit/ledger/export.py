"""The ledger's entries as a CSV or JSON file, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from tacit.errors import TacitError
from tacit.ledger.chain import COLUMNS, Entry
from tacit.system.files import write_secret


def write_entries(entries: Sequence[Entry], path: Path) -> None:
    """Write entries to `path`; its ending, .csv or .json, chooses the format."""
    if path.suffix == ".csv":
        text = _as_csv(entries)
    elif path.suffix == ".json":
        text = json.dumps([entry.to_dict() for entry in entries], indent=2) + "\n"
    else:
        raise TacitError(f"the export must end in .csv or .json, got {str(path)!r}.")
    try:
        write_secret(path, text.encode("utf-8"))
    except OSError as error:
        raise TacitError(f"cannot write {path}: {error.strerror}; choose another path.") from error


def _as_csv(entries: Sequence[Entry]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([getattr(entry, name) for name in COLUMNS] for entry in entries)
    return text.getvalue()
