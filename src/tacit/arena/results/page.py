"""Fill the tables of a page between their markers, so that no figure on it is typed by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.arena.results.claims import CLAIM_TABLES
from tacit.arena.results.failures import FAILURE_TABLES
from tacit.arena.results.fedst import FEDST_TABLES
from tacit.arena.results.fleet_rivals import RIVAL_TABLES
from tacit.arena.results.papers import PAPER_TABLES
from tacit.arena.results.softshape import SOFTSHAPE_TABLES
from tacit.arena.results.tables import TABLES, Results
from tacit.errors import TacitError, reason_of
from tacit.system.files import write_atomic


MAKERS: dict[str, Callable[[Results], str]] = {
    **SOFTSHAPE_TABLES,
    **TABLES,
    **FEDST_TABLES,
    **CLAIM_TABLES,
    **RIVAL_TABLES,
    **FAILURE_TABLES,
}


def fill_page(page: Path, folder: Path) -> dict[str, Any]:
    """Write every table of `page` anew from the records in `folder`; nothing else changes."""
    results = Results(folder)
    text = _read(page)
    makers = PAPER_TABLES if "<!-- begin papers -->" in text else MAKERS
    for name, make in makers.items():
        text = _fill(text, name, make(results), page=page)
    note = ", ".join(sorted(results.uncommitted)) or "none"
    text = re.sub(r"(?<=<!-- uncommitted -->)[^<]*", note, text)
    write_atomic(page, text.encode("utf-8"))
    return {"page": page, "tables": len(makers), "uncommitted": sorted(results.uncommitted)}


def _read(page: Path) -> str:
    try:
        return page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TacitError(f"cannot read the page {page}: {reason_of(error)}.") from error


def _fill(text: str, name: str, body: str, *, page: Path) -> str:
    pattern = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
    filled, count = pattern.subn(lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text)
    if count != 1:
        raise TacitError(f"{page} has {count} places for the table {name!r}; it needs one.")
    return filled
