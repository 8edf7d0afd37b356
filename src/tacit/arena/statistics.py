"""What the records allow to conclude: ranks, corrected tests, intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError, check_at_least

Cell = tuple[str, str]  # method, data


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Mean accuracy per data set (rows) and method (columns); only complete rows are kept."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    accuracy: NDArray[np.float64]
    spread: NDArray[np.float64]


def ranked(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The records that may be compared: done, and made by committed code."""
    return [
        record
        for record in records
        if record["status"] == "done" and not record["commit"].endswith(("-dirty", "unknown"))
    ]


def grid(records: Iterable[Mapping[str, Any]]) -> Grid:
    """Average over seeds; a data set that a method lacks is left out for all of them."""
    values: dict[Cell, list[float]] = defaultdict(list)
    for record in records:
        values[label_of(record["task"]), record["task"]["data"]].append(record["accuracy"])
    if not values:
        raise TacitError("there is no result to compare; run the suite on committed code first.")
    methods = tuple(sorted({method for method, _ in values}))
    names = sorted({name for _, name in values})
    data = tuple(name for name in names if all((m, name) in values for m in methods))
    if not data:
        raise TacitError("no data set has a result of every method; narrow the choice of methods.")
    cells = [[values[method, name] for method in methods] for name in data]
    return Grid(
        data=data,
        methods=methods,
        accuracy=np.array([[np.mean(cell) for cell in row] for row in cells]),
        spread=np.array([[np.std(cell) for cell in row] for row in cells]),
    )


def label_of(task: Mapping[str, Any]) -> str:
    """A method with the options that tell it from its siblings."""
    options = ", ".join(f"{key}={value}" for key, value in sorted(task["options"].items()))
    return f"{task['method']} ({options})" if options else str(task["method"])


def average_ranks(table: Grid) -> NDArray[np.float64]:
    """Mean rank per method, 1 is best; ties share their ranks."""
    from scipy.stats import rankdata

    ranks: NDArray[np.float64] = rankdata(-table.accuracy, axis=1).mean(axis=0)
    return ranks


def wins(table: Grid) -> NDArray[np.int64]:
    """On how many data sets a method is best, ties counted for all of them."""
    best = table.accuracy.max(axis=1, keepdims=True)
    return np.asarray((table.accuracy >= best - 1e-12).sum(axis=0), dtype=np.int64)


def wilcoxon_holm(table: Grid, *, reference: str) -> dict[str, float]:
    """Two-sided Wilcoxon signed-rank p values against `reference`, corrected by Holm's method."""
    from scipy.stats import wilcoxon

    if reference not in table.methods:
        raise TacitError(f"{reference!r} is not among the methods: {', '.join(table.methods)}.")
    mine = table.accuracy[:, table.methods.index(reference)]
    raw: dict[str, float] = {}
    for column, method in enumerate(table.methods):
        difference = mine - table.accuracy[:, column]
        if method != reference:
            raw[method] = float(wilcoxon(difference).pvalue) if np.any(difference) else 1.0
    return holm(raw)


def holm(raw: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction: the family-wise error stays below the level read off."""
    corrected: dict[str, float] = {}
    largest = 0.0
    for position, name in enumerate(sorted(raw, key=lambda key: raw[key])):
        largest = max(largest, min(1.0, (len(raw) - position) * raw[name]))
        corrected[name] = largest
    return corrected


def bootstrap_means(
    table: Grid, *, rng: np.random.Generator, level: float = 0.95, draws: int = 10_000
) -> NDArray[np.float64]:
    """An interval for each method's mean over data sets, resampling the data sets."""
    check_at_least(draws, 100, name="draws")
    rows = rng.integers(0, len(table.data), size=(draws, len(table.data)))
    means = table.accuracy[rows].mean(axis=1)
    tail = (1.0 - level) / 2.0
    interval: NDArray[np.float64] = np.quantile(means, [tail, 1.0 - tail], axis=0).T
    return interval


def critical_difference(table: Grid, *, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of average ranks."""
    from scipy.stats import studentized_range

    k, n = len(table.methods), len(table.data)
    if k < 2:
        raise TacitError("a critical difference needs at least two methods.")
    quantile = studentized_range.ppf(1.0 - alpha, k, np.inf) / np.sqrt(2.0)
    return float(quantile * np.sqrt(k * (k + 1) / (6.0 * n)))


def cliques(ranks: Sequence[float], difference: float) -> list[tuple[int, ...]]:
    """Maximal groups of methods, by rank, that the critical difference does not tell apart."""
    order = sorted(range(len(ranks)), key=lambda index: ranks[index])
    groups: list[tuple[int, ...]] = []
    for start in range(len(order)):
        group = tuple(i for i in order[start:] if ranks[i] - ranks[order[start]] <= difference)
        if len(group) > 1 and not any(set(group) <= set(other) for other in groups):
            groups.append(group)
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How far a reference lies above another method: mean over data sets, interval, p value."""

    mean: float
    low: float
    high: float
    p_greater: float


def paired_gaps(table: Grid, *, reference: str, level: float = 0.95) -> dict[str, Gap]:
    """Reference minus every other method with a t-interval over data sets.

    `p_greater` is Wilcoxon's one-sided signed-rank test of whether the reference is better.
    """
    from scipy.stats import t, wilcoxon

    if reference not in table.methods:
        raise TacitError(f"{reference!r} is not among the methods: {', '.join(table.methods)}.")
    n = len(table.data)
    if n < 2:
        raise TacitError("an interval over data sets needs at least two of them.")
    mine = table.accuracy[:, table.methods.index(reference)]
    found = {}
    for column, method in enumerate(table.methods):
        gap = mine - table.accuracy[:, column]
        if method == reference:
            continue
        reach = t.ppf(0.5 + level / 2.0, n - 1) * gap.std(ddof=1) / np.sqrt(n)
        p_value = wilcoxon(gap, alternative="greater").pvalue if np.any(gap) else 1.0
        found[method] = Gap(
            mean=float(gap.mean()),
            low=float(gap.mean() - reach),
            high=float(gap.mean() + reach),
            p_greater=float(p_value),
        )
    return found
