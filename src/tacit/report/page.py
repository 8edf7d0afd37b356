"""One self-contained HTML page: readable on a phone, printable, no network, guarantee on top."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit._version import VERSION
from tacit.guarantee import Guarantee
from tacit.report.look import guarantee_html, in_page, render, stylesheet
from tacit.report.render import Picture, embed, page_script
from tacit.system.files import write_atomic

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
        parts.append(guarantee_html(guarantee))
    parts += [_block_html(block) for block in blocks]
    interactive = any(not isinstance(block, _STATIC) for block in blocks)
    script = page_script() if interactive else ""
    text = _document(title, "\n".join(parts), script=script)
    write_atomic(path, text.encode())
    return path


def _document(title: str, body: str, *, script: str) -> str:
    return render(
        "document.html",
        title=title,
        body=body,
        script=script,
        style=stylesheet(),
        policy=_WITH_SCRIPT if script else _NO_NETWORK,
        version=VERSION,
    )


def _block_html(block: Any) -> str:
    if isinstance(block, Text):
        heading = f"<h2>{html.escape(block.heading)}</h2>" if block.heading else ""
        return f"{heading}<p>{html.escape(block.text)}</p>" if block.text else heading
    if isinstance(block, Table):
        return _table_html(block)
    if isinstance(block, FurtherGuarantee):
        return f"<h3>{html.escape(block.title)}</h3>{guarantee_html(block.guarantee)}"
    if isinstance(block, Picture):
        return f'<figure class="chart">{in_page(block.svg)}</figure>'
    return embed(block)


def _table_html(table: Table) -> str:
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in table.rows
    )
    content = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table>{content}</table></div>'
