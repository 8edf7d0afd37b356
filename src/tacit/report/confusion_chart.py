"""Which class is read as which: a row per true class, a column per predicted one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.report.charts import INK, WIDTH, alt, layered, on

_NUMBERS_UP_TO = 10  # more classes leave no room for them
_ROW = 30


def confusion_chart(found: Mapping[str, Any], *, colour: str) -> alt.LayerChart:
    """Darker cells hold a larger share of their row; what is right lies on the diagonal."""
    classes = [str(name) for name in found["classes"]]
    rows = [
        {
            "true": true,
            "read": read,
            "n": n,
            "share": n / max(1, sum(counts)),
            "what": f"{n} of {sum(counts)} series of class {true} are read as {read}",
        }
        for true, counts in zip(classes, found["counts"], strict=True)
        for read, n in zip(classes, counts, strict=True)
    ]
    limit = 90 if len(classes) <= _NUMBERS_UP_TO else 60
    straight = max(len(name) for name in classes) * len(classes) <= 40
    across = alt.Axis(orient="top", labelAngle=0 if straight else -45, labelLimit=limit)
    base = on(rows).encode(
        x=alt.X("read:N", title="read as", sort=classes, axis=across),
        y=alt.Y("true:N", title="true class", sort=classes, axis=alt.Axis(labelLimit=limit)),
    )
    shade = alt.Opacity("share:Q", legend=None).scale(domain=[0, 1], range=[0.05, 0.6])
    cells = base.mark_rect(color=colour, aria=True).encode(
        opacity=shade, tooltip="what:N", description="what:N"
    )
    layers = [cells]
    if len(classes) <= _NUMBERS_UP_TO:
        layers.append(base.mark_text(color=INK, fontSize=12).encode(text="n:Q"))
    height = min(_ROW * len(classes), WIDTH - 70)
    title = "Which class is read as which"
    return layered(title, layers, height=height, width=WIDTH - 60 - min(limit, _letters(classes)))


def _letters(names: Sequence[str]) -> float:
    """About the width of the longest name."""
    return 7.0 * max(map(len, names))
