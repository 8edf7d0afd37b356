"""What the importer would make of a dropped table: the role of each column, before anything is cut.

A large file is judged by its first lines; the import itself reads all of it and decides again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tacit.data.importers.options import ImportOptions, parse_names
from tacit.data.importers.tables.columns import Column, Table, read_csv, read_parquet
from tacit.data.importers.tables.roles import Roles, find_roles
from tacit.errors import TacitError
from tacit.studio.dry_runs import in_fields

ROLES = ("samples", "label", "person", "time", "series", "left out")
UNCLEAR = "unclear"
_WHOLE_BYTES = 1_000_000
_MOST_SHOWN = 12  # columns of samples; more are named by the first and the last
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class ColumnSeen:
    """One column, or a run of columns with samples: its name, first values and role."""

    name: str
    values: str
    role: str
    fixed: bool = False  # many columns at once: nothing to choose


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A table as understood, or the sentence that says what is unclear."""

    columns: list[ColumnSeen]
    summary: list[tuple[str, str]]
    trouble: str = ""


def preview_of(source: Path, said: Mapping[str, str]) -> Preview | None:
    """How a table would be read with what was said so far; None for what is no table."""
    if source.suffix.lower() not in (".csv", ".tsv", ".txt", ".parquet"):
        return None
    try:
        table = _table(source)
    except TacitError as error:
        return Preview(columns=[], summary=[], trouble=in_fields(str(error)))
    try:
        roles = find_roles(table, _options(said))
    except TacitError as error:
        return Preview(
            columns=_seen(table, _said_roles(said)), summary=[], trouble=in_fields(str(error))
        )
    left_out = dict.fromkeys(parse_names(said.get("ignore")), "left out")
    columns = _seen(table, _found_roles(roles) | left_out)
    return Preview(columns=columns, summary=_summary(table, roles))


def _options(said: Mapping[str, str]) -> ImportOptions:
    def one(key: str) -> str | None:
        return said.get(key) or None

    forms: dict[str, Literal["wide", "long"]] = {"wide": "wide", "long": "long"}
    return ImportOptions(
        label=one("label"),
        subject=one("subject"),
        series=one("series"),
        time=one("time"),
        form=forms.get(said.get("form", "")),
        ignore=parse_names(said.get("ignore")),
        channels=parse_names(said.get("channels")),
    )


def _table(source: Path) -> Table:
    if source.suffix.lower() == ".parquet":
        return read_parquet(source)
    if source.stat().st_size <= _WHOLE_BYTES:
        return read_csv(source)
    with tempfile.TemporaryDirectory() as folder:
        head = Path(folder) / source.name
        with source.open("rb") as file:
            lines = file.readlines(_WHOLE_BYTES)  # whole lines, about so many bytes
            head.write_bytes(b"".join(lines))
        return read_csv(head)


def _found_roles(roles: Roles) -> dict[str, str]:
    single = {"label": roles.label, "person": roles.subject, "time": roles.time}
    found = {column.name: role for role, column in single.items() if column is not None}
    found |= {column.name: "series" for column in roles.series}
    return found | {column.name: "left out" for column in roles.left_out}


def _said_roles(said: Mapping[str, str]) -> dict[str, str]:
    keys = {"label": "label", "person": "subject", "time": "time", "series": "series"}
    found = {name: role for role, key in keys.items() for name in parse_names(said.get(key))}
    return found | dict.fromkeys(parse_names(said.get("ignore")), "left out")


def _seen(table: Table, roles: Mapping[str, str]) -> list[ColumnSeen]:
    samples = [c for c in table.columns if c.name not in roles and c.texts is None]
    seen = [
        ColumnSeen(column.name, _first(column), roles.get(column.name, UNCLEAR))
        for column in table.columns
        if column not in samples
    ]
    if len(samples) <= _MOST_SHOWN:
        return [*seen, *(ColumnSeen(column.name, _first(column), "samples") for column in samples)]
    name = f"{samples[0].title} to {samples[-1].title} ({len(samples)} columns)"
    return [*seen, ColumnSeen(name, _first(samples[0]), "samples", fixed=True)]


def _first(column: Column) -> str:
    if column.lists is not None:
        return "lists of numbers"
    if column.numbers is not None:
        return ", ".join(f"{value:.4g}" for value in column.numbers[:_EXAMPLES])
    return ", ".join(dict.fromkeys(column.as_texts()[:20].tolist()[: 4 * _EXAMPLES]))


def _summary(table: Table, roles: Roles) -> list[tuple[str, str]]:
    names = [name for name, _ in roles.channels]
    rows = f"{table.n_rows:,} rows: " + ("time steps" if roles.long else "series")
    said = [(rows, "long" if roles.long else "wide")]
    channels = f"{len(names)} channel{'s' if len(names) != 1 else ''}"
    named = ", ".join(name for name in names[:6] if name)
    if not roles.long:
        named = f"of {len(roles.channels[0][1])} samples"
    said.append((channels, named or "samples"))
    if roles.label is not None:
        labels, counts = np.unique(roles.label.as_texts(), return_counts=True)
        shown = ", ".join(f"{name} ({n:,})" for name, n in zip(labels, counts, strict=True))
        said.append((f"{len(labels)} classes", shown if len(labels) <= 8 else "too many to list"))
    else:
        said.append(("no label", "the series can be released, not learned from"))
    if roles.subject is not None:
        said.append((f"{len(np.unique(roles.subject.as_texts())):,} people", roles.subject.name))
    return said
