"""One self-contained HTML page: readable on a phone, printable, no network, guarantee on top."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit._version import VERSION
from tacit.guarantee import Guarantee
from tacit.report.render import Picture, embed, page_script
from tacit.system.files import write_atomic

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
.chart { margin: 1rem 0; max-width: 38rem; break-inside: avoid; }
.chart svg { width: 100%; height: auto; } .chart .vega-embed { display: block; }
footer { margin-top: 3rem; font-size: .8rem; color: #666; }
@media print { body { max-width: none; } .scroll { overflow: visible; } }
"""
# The browser itself then refuses every request. Vega compiles its expressions, hence the last word.
_NO_NETWORK = "default-src 'none'; style-src 'unsafe-inline'"
_WITH_SCRIPT = f"{_NO_NETWORK}; script-src 'unsafe-inline' 'unsafe-eval'"


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
class FurtherGuarantee:
    """A further guarantee, for a page that shows several results."""

    title: str
    guarantee: Guarantee


_STATIC = (Text, Table, FurtherGuarantee, Picture)


def write_page(
    path: Path,
    *,
    title: str,
    blocks: Sequence[Any],
    guarantee: Guarantee | None = None,
) -> Path:
    """Write the page in one step, so that nobody sees half of it.

    A block is a `Text`, `Table`, `FurtherGuarantee`, a chart, or a `Picture`; a page whose charts
    are all pictures has no script. A page about one result takes its `guarantee`; a page about
    several has a `FurtherGuarantee` for each.
    """
    if guarantee is None and not any(isinstance(block, FurtherGuarantee) for block in blocks):
        raise ValueError(
            "a page needs a guarantee, or a FurtherGuarantee block for each result it shows."
        )
    parts = [f"<h1>{html.escape(title)}</h1>"]
    if guarantee is not None:
        parts.append(_guarantee_html(guarantee))
    parts += [_block_html(block) for block in blocks]
    interactive = any(not isinstance(block, _STATIC) for block in blocks)
    script = page_script() if interactive else ""
    text = _document(title, "\n".join(parts), script=script)
    write_atomic(path, text.encode())
    return path


def _document(title: str, body: str, *, script: str) -> str:
    policy = _WITH_SCRIPT if script else _NO_NETWORK
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"{body}<footer>Made by Tacit {VERSION}. This page loads nothing from a network.</footer>"
        f"{script}</body></html>"
    )


def _block_html(block: Any) -> str:
    if isinstance(block, Text):
        heading = f"<h2>{html.escape(block.heading)}</h2>" if block.heading else ""
        return f"{heading}<p>{html.escape(block.text)}</p>" if block.text else heading
    if isinstance(block, Table):
        return _table_html(block)
    if isinstance(block, FurtherGuarantee):
        return f"<h3>{html.escape(block.title)}</h3>{_guarantee_html(block.guarantee)}"
    if isinstance(block, Picture):
        return f'<figure class="chart">{block.svg}</figure>'
    return embed(block)


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
