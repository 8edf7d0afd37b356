"""One self-contained HTML page: readable on a phone, printable, no network, guarantee on top."""

from __future__ import annotations

import html
import re
import zlib
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


_LONG_WORD = 36  # characters
_LONG_CELL = 18  # characters: on a phone such a cell would become a column of words
_MOST_STACKED = 24  # rows; a longer table can be moved sideways
_GAP, _PHONE = 2, 42  # characters between columns, and how many a phone has in a row


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


@dataclass(frozen=True, slots=True)
class Contents:
    """Links to sections by their headings."""

    headings: Sequence[str]


_STATIC = (Text, Table, FurtherGuarantee, Contents, Picture)


def write_page(
    path: Path,
    *,
    title: str,
    blocks: Sequence[Any],
    guarantee: Guarantee | None = None,
) -> Path:
    """Write the page in one step, so that nobody sees half of it.

    A block is a `Text`, `Table`, `Contents`, `FurtherGuarantee`, a chart, or a `Picture`; a page
    whose charts are all pictures has no script. A page about one result takes its `guarantee`; a
    page about several has a `FurtherGuarantee` for each.
    """
    if guarantee is None and not any(isinstance(block, FurtherGuarantee) for block in blocks):
        raise ValueError(
            "a page needs a guarantee, or a FurtherGuarantee block for each result it shows."
        )
    parts = [f"<h1>{html.escape(title)}</h1>"]
    if guarantee is not None:
        parts.append(guarantee_html(guarantee))
    parts += [_block_html(block, guarantee) for block in blocks]
    interactive = any(not isinstance(block, _STATIC) for block in blocks)
    script = page_script() if interactive else ""
    wide = [block for block in blocks if isinstance(block, Table) and _stacks(block)]
    rules = dict.fromkeys(_stacking(table.columns) for table in wide)
    style = "".join([stylesheet(), *rules])
    text = _document(title, "\n".join(parts), script=script, style=style)
    write_atomic(path, text.encode())
    return path


def _document(title: str, body: str, *, script: str, style: str) -> str:
    return render(
        "document.html",
        title=title,
        body=body,
        script=script,
        style=style,
        policy=_WITH_SCRIPT if script else _NO_NETWORK,
        version=VERSION,
    )


def _block_html(block: Any, stated: Guarantee | None) -> str:
    if isinstance(block, Text):
        heading = _heading_html(block.heading) if block.heading else ""
        return f"{heading}<p>{html.escape(block.text)}</p>" if block.text else heading
    if isinstance(block, Table):
        shown = table_html(block)
        kind = f"wide-table stack {_kind_of(block.columns)}" if _stacks(block) else "wide-table"
        return f'<div class="{kind}">{shown}</div>' if _is_wide(block) else shown
    if isinstance(block, FurtherGuarantee):
        return f"<h3>{html.escape(block.title)}</h3>{guarantee_html(block.guarantee)}"
    if isinstance(block, Contents):
        links = (f'<li><a href="#{_slug(h)}">{html.escape(h)}</a></li>' for h in block.headings)
        return f'<nav aria-label="Contents"><ul class="contents">{"".join(links)}</ul></nav>'
    if isinstance(block, Picture):
        return f'<figure class="chart">{in_page(block.svg)}</figure>'
    if stated is not None:  # once on the page is enough
        from tacit.report.charts import without_caption  # pages without charts need no Altair

        block = without_caption(block, stated)
    return embed(block)


def _is_wide(table: Table) -> bool:
    """Whether its columns need more than a phone is wide."""
    columns = zip(*([str(cell) for cell in row] for row in table.rows), strict=True)
    widths = [min(max(map(len, column)), _LONG_CELL) + _GAP for column in columns]
    return sum(widths) > _PHONE


def _stacks(table: Table) -> bool:
    """A wide table becomes a list on a phone, unless that list would go on for ever."""
    return _is_wide(table) and len(table.rows) <= _MOST_STACKED


def _stacking(columns: Sequence[str]) -> str:
    """On a phone a row of these columns is a list: every cell stands behind its column's name."""
    kind = _kind_of(columns)
    names = "".join(
        f".{kind} td:nth-child({n})::before{{content:{_css_string(str(name))}}}"
        for n, name in enumerate(columns, start=1)
    )
    return f"@media screen and (max-width:34rem){{{names}}}\n"


def _kind_of(columns: Sequence[str]) -> str:
    """A class for all tables with these columns."""
    return f"t{zlib.crc32(repr([str(name) for name in columns]).encode()):08x}"


def _css_string(text: str) -> str:
    """A string that ends neither itself nor the style element, whatever a column is called."""
    kept = (c if c.isalnum() and c.isascii() else f"\\{ord(c):06x}" for c in text)
    return f'"{"".join(kept)}"'


def _heading_html(heading: str) -> str:
    return f'<h2 id="{_slug(heading)}">{html.escape(heading)}</h2>'


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def table_html(table: Table) -> str:
    """The table as it stands on a page."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(_cell_html(str(cell)) for cell in row) + "</tr>" for row in table.rows
    )
    content = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table>{content}</table></div>'


def _cell_html(text: str) -> str:
    """A cell that keeps room for a sentence, or a number with its interval in one line."""
    kind = "long" if len(text) > _LONG_CELL else "short"
    words = (
        html.escape(word) if len(word) <= _LONG_WORD else _breakable(word)
        for word in text.split(" ")
    )
    return f'<td class="{kind}">{" ".join(words)}</td>'


def _breakable(word: str) -> str:
    """A hash or a key that may go on in the next line; copied, it is still one word."""
    parts = (word[i : i + 8] for i in range(0, len(word), 8))
    return "<wbr>".join(html.escape(part) for part in parts)
