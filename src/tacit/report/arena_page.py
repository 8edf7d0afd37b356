"""The arena's page: the papers' tables next to ours, and what may be concluded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.arena.statistics import label_of, ranked
from tacit.arena.store import read_records
from tacit.errors import TacitError
from tacit.guarantee import from_dict
from tacit.report.arena_fedst import fedst_blocks
from tacit.report.arena_frontier import frontier_blocks
from tacit.report.arena_softshape import table2_blocks, table3_blocks
from tacit.report.arena_tables import Record, Section, budget_name, comparison_blocks
from tacit.report.arena_timefl import timefl_blocks
from tacit.report.page import FurtherGuarantee, Table, Text, write_page
from tacit.report.render import Picture, draw, write_pictures

_SECTIONS: dict[str, Callable[[Sequence[Record]], Section]] = {
    "softshape-table2": table2_blocks,
    "softshape-table3": table3_blocks,
    "frontier": frontier_blocks,
    "fedst": fedst_blocks,
    "timefl": timefl_blocks,
}
_READING = (
    "Accuracies are means over seeds on the test part; nothing was chosen by test accuracy. Rows "
    "with different trust models are shown side by side but not ranked against each other: a "
    "nominal epsilon in the input-noise setting is no guarantee, and a total epsilon per series "
    "and secret sharing protect from different adversaries."
)


def write_arena_page(folder: Path, *, png: bool = False) -> dict[str, Path]:
    """Read the results of a folder and of its subfolders; write page and pictures beside them."""
    records = read_records(folder)
    done = [record for record in records if record["status"] == "done"]
    if not done:
        raise TacitError(f"{folder} has no finished task; run 'tacit arena run' first.")
    clean = ranked(done)
    sentences, blocks = _sections(clean or done)
    summary = [_counts(records, clean), _READING, *sentences]
    top = [Text(text, "What may be concluded" if not n else None) for n, text in enumerate(summary)]
    blocks = [block if isinstance(block, Text | Table) else draw(block) for block in blocks]
    drawn = [block for block in blocks if isinstance(block, Picture)]
    pictures = write_pictures(folder / "pictures", drawn, png=png)
    page = write_page(
        folder / "report.html",
        title="Tacit arena",
        blocks=[*top, *blocks, *_guarantees(clean or done)],
    )
    return {"report": page, "pictures": pictures}


def _sections(records: Sequence[Record]) -> Section:
    suites: dict[str, list[Record]] = {}
    for record in records:
        suites.setdefault(record["task"]["suite"], []).append(record)
    order = [*(name for name in _SECTIONS if name in suites), *sorted(set(suites) - set(_SECTIONS))]
    sentences, blocks = [], []
    for name in order:
        said, made = _SECTIONS.get(name, _other)(suites[name])
        sentences += said
        blocks += made
    return sentences, blocks


def _other(records: Sequence[Record]) -> Section:
    heading = Text(f"{len(records)} tasks.", f"Suite {records[0]['task']['suite']}")
    return [], [heading, *comparison_blocks(records)]


def _counts(records: Sequence[Record], clean: Sequence[Record]) -> str:
    failed = sum(record["status"] == "failed" for record in records)
    dirty = sum(record["status"] == "done" for record in records) - len(clean)
    text = f"{len(records)} tasks, {failed} failed."
    if dirty:
        text += f" {dirty} tasks were made by uncommitted code: they are " + (
            "left out." if clean else "shown because there are no others, and prove nothing."
        )
    return text


def _guarantees(records: Sequence[Record]) -> list[Any]:
    """One example of a guarantee per method and trust model; its title names the budget."""
    seen: dict[tuple[str, str], FurtherGuarantee] = {}
    for record in records:
        task: Mapping[str, Any] = record["task"]
        key = (label_of(task), record["guarantee"]["trust_model"])
        title = f"{label_of(task)}, {budget_name(task['epsilon'], [record])}"
        seen.setdefault(key, FurtherGuarantee(title, from_dict(record["guarantee"])))
    return [Text("One example for each method.", "Guarantees"), *seen.values()]
