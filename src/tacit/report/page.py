"""One self-contained HTML page: readable on a phone, printable, no network, guarantee on top."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit._version import VERSION
from tacit.guarantee import Guarantee

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff;
       max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.guarantee { border-left: .3rem solid #3b6fb6; background: #f3f6fb; padding: .6rem 1rem; }
.unprotected { border-left-color: #b63b3b; background: #fbf3f3; }
.guarantee details { font-size: .9rem; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem;
         border-bottom: 1px solid #ddd; }
footer { margin-top: 3rem; font-size: .8rem; color: #666; }
@media print { body { max-width: none; } .scroll { overflow: visible; } }
"""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, or with `heading` a new section."""

    text: str
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain values under named columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Promise:
    """A further guarantee, for a page that shows several results."""

    title: str
    guarantee: Guarantee


def write_page(
    path: Path,
    *,
    title: str,
    blocks: Sequence[Any],
    guarantee: Guarantee | None = None,
) -> Path:
    """Write the page in one step; a reader never sees half of it.

    A page of one result takes its `guarantee`; a page of several has a `Promise` block for each.
    """
    if guarantee is None and not any(isinstance(block, Promise) for block in blocks):
        raise ValueError("a page needs a guarantee or a Promise block for each result it shows.")
    parts = [f"<h1>{html.escape(title)}</h1>"]
    if guarantee is not None:
        parts.append(_guarantee_html(guarantee))
    seen_figure = False
    for block in blocks:
        parts.append(_block_html(block, first_figure=not seen_figure))
        seen_figure = seen_figure or hasattr(block, "to_html")
    text = _document(title, "\n".join(parts))
    _write_atomically(path, text)
    return path


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"{body}<footer>Made by Tacit {VERSION}. This page loads nothing from a network.</footer>"
        "</body></html>"
    )


def _block_html(block: Any, *, first_figure: bool) -> str:
    if isinstance(block, Text):
        heading = f"<h2>{html.escape(block.heading)}</h2>" if block.heading else ""
        return f"{heading}<p>{html.escape(block.text)}</p>" if block.text else heading
    if isinstance(block, Table):
        return _table_html(block)
    if isinstance(block, Promise):
        return f"<h3>{html.escape(block.title)}</h3>{_guarantee_html(block.guarantee)}"
    # The library's script is several megabytes: once a page is enough.
    script: Any = "inline" if first_figure else False
    figure = block.to_html(full_html=False, include_plotlyjs=script, config={"responsive": True})
    return f'<div class="scroll">{figure}</div>'


def _table_html(table: Table) -> str:
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def _guarantee_html(guarantee: Guarantee) -> str:
    css = "guarantee unprotected" if guarantee.kind == "unprotected" else "guarantee"
    lists = "".join(
        f"<b>{name}</b><ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in items) + "</ul>"
        for name, items in (
            ("Assumes", guarantee.assumptions),
            ("Not covered", guarantee.not_covered),
        )
        if items
    )
    return (
        f'<div class="{css}"><p>{html.escape(guarantee.sentence)}</p>'
        f"<details><summary>Assumptions and limits</summary>{lists}</details></div>"
    )


def _write_atomically(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)
