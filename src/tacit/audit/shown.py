"""Results of audits and attacks in a notebook: a table, and the guarantee that was tried."""

from __future__ import annotations

import html
from collections.abc import Sequence

from tacit.guarantee import Guarantee


def table_html(rows: Sequence[tuple[str, str]], guarantees: Sequence[Guarantee]) -> str:
    """Two columns, then each guarantee as it shows itself."""
    cells = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    boxes = "".join(f"<div>{guarantee._repr_html_()}</div>" for guarantee in guarantees)
    return f"<table>{cells}</table>{boxes}"
