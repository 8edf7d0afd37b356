"""The arena's page: the papers' tables next to ours, and what may be concluded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.arena.results.frontier import frontier_records
from tacit.arena.results.records import Results
from tacit.arena.results.softshape import table2_records, table3_records
from tacit.arena.statistics import label_of, ranked
from tacit.errors import TacitError
from tacit.guarantee import from_dict
from tacit.report.arena.ablations import table3_blocks
from tacit.report.arena.docs_tables import docs_tables, verdicts
from tacit.report.arena.fedst import fedst_blocks
from tacit.report.arena.fedst_real import contract_blocks, secure_blocks
from tacit.report.arena.frontier import frontier_blocks
from tacit.report.arena.names import plainly_named
from tacit.report.arena.opening import opening_blocks
from tacit.report.arena.softshape import table2_blocks
from tacit.report.arena.softshape_figures import figure_blocks
from tacit.report.arena.tables import Record, Section, budget_name, comparison_blocks
from tacit.report.arena.timefl import timefl_blocks
from tacit.report.arena.timefl_published import published_blocks
from tacit.report.page import Contents, FurtherGuarantee, Table, Text, write_page
from tacit.report.render import Picture, draw, write_pictures

_SECTIONS: dict[str, Callable[[Sequence[Record]], Section]] = {
    "softshape-table2": table2_blocks,
    "softshape-table3": table3_blocks,
    "softshape-figures": figure_blocks,
    "frontier": frontier_blocks,
    "fedst": fedst_blocks,
    "fedst-secure": secure_blocks,
    "fedst-contract": contract_blocks,
    "timefl": timefl_blocks,
    "fleet-published": published_blocks,
}
_MERGED: dict[str, Callable[[Results], list[Record]]] = {
    "softshape-table2": table2_records,
    "softshape-table3": table3_records,
    "frontier": frontier_records,
}
_READING = (
    "Accuracies are means over seeds on the test part. What was chosen, and which test numbers had "
    "been seen by then, is told in docs/decisions. Rows with different trust models are shown side "
    "by side but not ranked against each other: a nominal epsilon in the input-noise setting is no "
    "guarantee, and a total epsilon per series and secret sharing protect from different "
    "adversaries."
)


def write_arena_page(folder: Path, *, png: bool = False) -> dict[str, Path]:
    """Read the results of a folder and of its subfolders; write page and pictures beside them."""
    results = Results(folder)
    shown = {name: records for name in _order(results) if (records := _records(results, name))}
    if not shown:
        raise TacitError(f"{folder} has no finished task; run 'tacit arena run' first.")
    sections = [
        _Part(*_SECTIONS.get(name, _other)(records), docs_tables(name, results))
        for name, records in shown.items()
    ]
    contents = Contents([part.heading for part in sections])
    reading = Text(_READING, "How to read it")
    counts, opening = Text(_counts(results)), opening_blocks(results)
    top = [counts, contents, *opening, reading, *verdicts(results)]
    blocks = [
        block if isinstance(block, Text | Table | Contents) else draw(block)
        for part in (top, *(section.blocks() for section in sections))
        for block in part
    ]
    drawn = [block for block in blocks if isinstance(block, Picture)]
    pictures = write_pictures(folder / "pictures", drawn, png=png)
    page = write_page(
        folder / "report.html",
        title="Tacit arena",
        blocks=[*blocks, *_guarantees([r for part in shown.values() for r in part])],
    )
    return {"report": page, "pictures": pictures}


def _order(results: Results) -> list[str]:
    """The paper's suites first; `softshape-published` is part of the tables 2 and 3."""
    others = set(results.suites) - set(_SECTIONS) - {"softshape-published"}
    return [*_SECTIONS, *sorted(others)]


def _records(results: Results, name: str) -> list[Record]:
    """What a section shows: the records that docs/results.md has, for the same cells."""
    merged = _MERGED.get(name)
    return merged(results) if merged else results.suite(name)


@dataclass(frozen=True, slots=True)
class _Part:
    """One suite: what its records allow to say, and the blocks under its heading."""

    sentences: Sequence[str]
    made: Sequence[Any]
    tables: Sequence[Any]

    @property
    def heading(self) -> str:
        """What the contents list says."""
        return str(self.made[0].heading)

    def blocks(self) -> list[Any]:
        """Heading, then the figure that says the main thing, what it says, and all the rest."""
        main = next((block for block in self.made if _is_chart(block)), None)
        first, *rest = [block for block in self.made if block is not main]
        said = [Text(sentence) for sentence in self.sentences]
        return [first, *([] if main is None else [main]), *said, *self.tables, *rest]


def _is_chart(block: Any) -> bool:
    return not isinstance(block, Text | Table)


def _other(records: Sequence[Record]) -> Section:
    heading = Text(f"{len(records)} tasks.", f"Suite {records[0]['task']['suite']}")
    return [], [heading, *comparison_blocks(plainly_named(records))]


def _counts(results: Results) -> str:
    records = results.every
    failed = sum(record["status"] == "failed" for record in records)
    text = (
        f"{len(records)} tasks, {failed} failed. Made from the records with the digest "
        f"{results.digest()}."
    )
    dirty = len(records) - failed - len(ranked(records))
    if dirty:
        text += (
            f" {dirty} tasks were made by uncommitted code: they are left out where their suite "
            "has others; where it has none, they are shown and prove nothing."
        )
    return text


def _guarantees(records: Sequence[Record]) -> list[Any]:
    """One example of a guarantee per method and trust model; its title names the budget."""
    seen: dict[tuple[str, str], FurtherGuarantee] = {}
    for record in records:
        if record["guarantee"] is None:  # lines of a script from before its suite
            continue
        task: Mapping[str, Any] = record["task"]
        key = (label_of(task), record["guarantee"]["trust_model"])
        title = f"{label_of(task)}, {budget_name(task['epsilon'], [record])}"
        seen.setdefault(key, FurtherGuarantee(title, from_dict(record["guarantee"])))
    return [Text("One example for each method.", "Guarantees"), *seen.values()]
