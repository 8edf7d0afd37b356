"""The tables of docs/results.md on the DP-SoftShape paper: its method in both presets, its rivals.

A cell is one preset, variant, data set, budget and seed; three suites run some cells alike, and a
cell that several of them recorded counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arena.paper import DIATOM, TABLE2, TABLE3
from tacit.arena.results.tables import (
    NOISY,
    WITHIN,
    Record,
    Results,
    Value,
    accuracies,
    cells_of,
    leak,
    mean_of,
    n_seeds,
    over_seeds,
    over_sets,
    table,
)
from tacit.arena.softshape.suites import ABLATIONS, PRESETS, SOFTSHAPE_SETS

OURS = "softshape-published"
VARIANTS: Mapping[str, Mapping[str, Any]] = dict(ABLATIONS)
_SUITES = ("softshape-table2", "softshape-table3", "softshape-published")  # the last one counts


def published(
    results: Results, preset: str, variant: str = "full", epsilons: Iterable[float | None] = NOISY
) -> list[Record]:
    """The records of one preset and variant at some budgets, one for each cell."""
    wanted, budgets = {**PRESETS[preset], **VARIANTS[variant]}, set(epsilons)
    cells: dict[tuple[Any, ...], Record] = {}
    for suite in _SUITES:
        for record in results.suite(suite):
            task = record["task"]
            if task["method"] == OURS and task["options"] == wanted and task["epsilon"] in budgets:
                cells[task["data"], task["epsilon"], task["seed"]] = record
    return list(cells.values())


def complete(records: Sequence[Record], epsilons: Sequence[float | None] = NOISY) -> list[Record]:
    """The records of the data sets that have every budget."""
    budgets: dict[str, set[float | None]] = defaultdict(set)
    for record in records:
        budgets[record["task"]["data"]].add(record["task"]["epsilon"])
    return [r for r in records if budgets[r["task"]["data"]] >= set(epsilons)]


def mean_over_budgets(records: Sequence[Record]) -> float:
    """Over the budgets the mean over sets of the mean over seeds."""
    budgets = sorted({record["task"]["epsilon"] for record in records})
    parts = [[r for r in records if r["task"]["epsilon"] == epsilon] for epsilon in budgets]
    return float(np.mean([over_sets(accuracies(part)) for part in parts]))


def sets_of(records: Sequence[Record]) -> set[str]:
    """The data sets that have a record."""
    return {record["task"]["data"] for record in records}


def table2_records(results: Results) -> list[Record]:
    """The paper's method in both presets, whichever suite recorded a cell, and its rivals."""
    budgets = (*NOISY, None)
    found = [r for r in results.suite("softshape-table2") if r["task"]["method"] != OURS]
    ours = [r for preset in PRESETS for r in published(results, preset, epsilons=budgets)]
    return [*found, *ours]


def table3_records(results: Results) -> list[Record]:
    """Both presets in all variants, whichever suite recorded a cell."""
    return [
        record
        for preset in PRESETS
        for variant in VARIANTS
        for record in published(results, preset, variant)
    ]


def rivals(results: Results) -> str:
    """Table 2: the paper's methods in its setting, and three newer ones."""
    columns = (
        "method", "paper, clean", "ours", "paper, noisy", "ours", "within .02", "sets clean, noisy",
        "seeds", "options",
    )  # fmt: skip
    return table(columns, [row.cells() for row in rival_rows(table2_records(results))])


class RivalRow:
    """One method with one set of options: the paper's two means and ours."""

    def __init__(self, method: str, options: Mapping[str, Any], records: Sequence[Record]) -> None:
        self.method, self.options, self.records = method, options, records
        self.clean = [r for r in records if r["task"]["epsilon"] is None]
        self.noisy = complete([r for r in records if r["task"]["epsilon"] in NOISY])
        self.ours = (
            over_sets(accuracies(self.clean)) if self.clean else None,
            mean_over_budgets(self.noisy) if self.noisy else None,
        )
        theirs = TABLE2.get(method)
        self.theirs = (theirs.clean, theirs.noisy) if theirs else (None, None)

    @property
    def name(self) -> str:
        """What a reader calls it."""
        if self.method != OURS:
            return self.method
        return f"DP-SoftShape, preset {self.options.get('preset', 'tuned')}"

    def cells(self) -> tuple[Any, ...]:
        """Its row of the table."""
        pairs = self.comparable()
        parts = (self.clean, self.noisy)
        return (
            self.name,
            *(f"{value:.3f}" if value is not None else "-" for pair in pairs for value in pair),
            self._closeness(pairs),
            ", ".join(str(len(sets_of(part))) for part in parts),
            n_seeds(cells_of(self.records)),
            ", ".join(f"{key}={value}" for key, value in self.options.items()) or "-",
        )

    def comparable(self) -> list[tuple[float | None, float | None]]:
        """The paper's means and ours; one over fewer sets does not stand beside the paper's."""
        return [
            (theirs, ours if all_sets else None)
            for theirs, ours, all_sets in zip(self.theirs, self.ours, self._whole(), strict=True)
        ]

    def _whole(self) -> list[bool]:
        """Whether the clean and the noisy mean are over all 19 sets."""
        return [sets_of(part) == set(SOFTSHAPE_SETS) for part in (self.clean, self.noisy)]

    def _closeness(self, pairs: Sequence[tuple[float | None, float | None]]) -> str:
        gaps = [b - a for a, b in pairs if a is not None and b is not None]
        if not gaps:
            return "-" if self.theirs == (None, None) else "incomplete"
        if min(gaps) < -WITHIN:
            return "no, below"
        return "no, above" if max(gaps) > WITHIN else "yes"


def rival_rows(records: Sequence[Record]) -> list[RivalRow]:
    """The methods of Table 2 in the paper's order, then newer ones."""
    kinds: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        options = record["task"]["options"]
        kinds[record["task"]["method"], str(sorted(options.items()))].append(record)
    rows = [RivalRow(key[0], part[0]["task"]["options"], part) for key, part in kinds.items()]
    order = list(TABLE2)
    return sorted(
        rows,
        key=lambda row: (
            order.index(row.method) if row.method in order else len(order),
            row.method,
            row.name,
        ),
    )


def softshape(results: Results) -> str:
    """The paper's method in both presets, at its five budgets.

    Means over fewer sets than all would stand under means over others, so they are left out.
    """
    rows = [
        (
            preset,
            "without noise" if epsilon is None else f"nominal {epsilon:g}",
            over_seeds(records) if sets_of(records) == set(SOFTSHAPE_SETS) else "-",
            f"{len(sets_of(records))} of {len(SOFTSHAPE_SETS)}",
            leak(records) if sets_of(records) == set(SOFTSHAPE_SETS) else "-",
        )
        for preset in PRESETS
        for epsilon in (*NOISY, None)
        if (records := published(results, preset, epsilons=(epsilon,)))
    ]
    columns = ("preset", "budget", "accuracy", "sets", "releases joined to their series")
    return table(columns, rows)


def diatom(results: Results) -> str:
    """The one data set whose accuracies the paper prints."""
    rows = []
    for epsilon, theirs in DIATOM.items():
        for preset in PRESETS:
            every = published(results, preset, epsilons=(epsilon,))
            mine = [r for r in every if r["task"]["data"] == "DiatomSizeReduction"]
            if mine:
                rows.append((f"nominal {epsilon:g}", f"{theirs:.3f}", preset, over_seeds(mine)))
    return table(("DiatomSizeReduction", "paper", "preset", "ours"), rows)


def gains(results: Results, preset: str, variant: str, epsilon: float) -> list[Value]:
    """What the full model gains over a variant, paired by set and seed."""
    full = {
        _cell(record): record["accuracy"]
        for record in published(results, preset, epsilons=(epsilon,))
    }
    return [
        (*_cell(record), full[_cell(record)] - record["accuracy"])
        for record in published(results, preset, variant, (epsilon,))
        if _cell(record) in full
    ]


def _cell(record: Record) -> tuple[str, int]:
    return record["task"]["data"], record["task"]["seed"]


def ablations(results: Results) -> str:
    """Table 3: the gains over three variants at four budgets, paired by set and seed."""
    rows = []
    for preset in PRESETS:
        for variant in VARIANTS:
            for epsilon in NOISY:
                found = gains(results, preset, variant, epsilon)
                if variant != "full" and found:
                    theirs = _their_gain(variant, epsilon)
                    rows.append((preset, variant, f"{epsilon:g}", theirs, *_gain_cells(found)))
    columns = (
        "preset", "without", "nominal epsilon", "paper: full model gains", "ours", "sets", "seeds",
    )  # fmt: skip
    return table(columns, rows)


def _gain_cells(found: Sequence[Value]) -> tuple[str, str, str]:
    sets = {name for name, _, _ in found}
    mean = mean_of(found, digits="+.3f") if sets == set(SOFTSHAPE_SETS) else "-"
    return mean, f"{len(sets)} of {len(SOFTSHAPE_SETS)}", n_seeds(found)


def _their_gain(variant: str, epsilon: float) -> str:
    row = TABLE3[epsilon]
    return f"{row['full'] - row[variant]:+.2f}" if variant in row else "-"


SOFTSHAPE_TABLES: dict[str, Callable[[Results], str]] = {
    "rivals": rivals,
    "softshape": softshape,
    "diatom": diatom,
    "ablations": ablations,
}
