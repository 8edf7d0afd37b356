"""The section on FedST's accuracy: who may use whose series (Figures 4, 5 and 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.arena.paper import FEDST_F_BELOW_IG
from tacit.arena.results.fedst import N_SETS, method_means
from tacit.arena.silo.names import PAPER_METHODS, method_name
from tacit.arena.statistics import Grid, grid
from tacit.errors import TacitError
from tacit.report.arena.tables import Record, Section, rank_figure, ranking, renamed
from tacit.report.charts import scatter_chart
from tacit.report.page import Text

_FIGURES = {
    "Fig. 5: average ranks of the five methods": PAPER_METHODS,
    "Fig. 8: information gain and F": ("FedST", "FedST-F", "GlobalST", "LocalST"),
}


def fedst_blocks(records: Sequence[Record]) -> Section:
    """All five methods as in the paper, F beside them, and our default in a table of its own."""
    named = [renamed(record, method_name(record["task"]["options"])) for record in records]
    seeds = len({record["task"]["seed"] for record in records})
    ours = [r for r in named if r["task"]["method"].endswith("default")]
    theirs = [r for r in named if not r["task"]["method"].endswith("default")]
    sets = len({record["task"]["data"] for record in records})
    blocks: list[Any] = [
        Text(
            f"{sets} UCR sets with a record so far, of {N_SETS} that have at least one training "
            f"series of each class for each of three owners, {seeds} seed(s); a set that one "
            "method lacks is left out for all. Information gain and a forest of 40 trees for "
            "every method; FedST-F has F "
            "instead. By the plaintext twin of the federation, seeded as the secure run.",
            "FedST, Figures 4, 5 and 8: who may use whose series",
        )
    ]
    if table := _grid(theirs):
        blocks.append(ranking(table))
        if "FedST" in table.methods and len(table.methods) > 1:
            blocks.append(_pairs(table))
        for title, methods in _FIGURES.items():
            part = _grid([r for r in theirs if r["task"]["method"] in methods])
            if part and len(part.methods) > 2 and len(part.data) > 2:
                blocks.append(rank_figure(part, title))
    if table := _grid(ours):
        blocks += [Text("The same with our default, F and ridge:"), ranking(table)]
    return _sentences(records), blocks


def _grid(records: Sequence[Record]) -> Grid | None:
    """The table of sets and methods, or None where no set has all methods."""
    try:
        return grid(records)
    except TacitError:
        return None


def _pairs(table: Grid) -> Any:
    fed = table.accuracy[:, table.methods.index("FedST")]
    clouds = {
        method: list(zip(table.accuracy[:, i].tolist(), fed.tolist(), table.data, strict=True))
        for i, method in enumerate(table.methods)
        if method != "FedST"
    }
    title = "Fig. 4: FedST against each other method, one dot per data set"
    return scatter_chart(
        title, clouds, x="accuracy of the other", y="accuracy of FedST", diagonal=True
    )


def _sentences(records: Sequence[Record]) -> list[str]:
    """As the table: means over the sets that have all six methods."""
    found = method_means(records, (*PAPER_METHODS, "FedST-F"))
    means = found.of
    if not means:
        return []
    others = [f"{other} {means['FedST'] - means[other]:+.4f}" for other in PAPER_METHODS[1:]]
    return [
        f"FedST on {found.n_sets} of {N_SETS} sets, mean accuracy minus that of "
        f"{', '.join(others)}.",
        f"F instead of information gain: {means['FedST-F'] - means['FedST']:+.4f} "
        f"(paper {-FEDST_F_BELOW_IG:+.3f} on 97 sets).",
    ]
