"""FedST's tables of docs/results.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arena.results.tables import Record, Results, n_seeds, table
from tacit.arena.silo.names import PAPER_METHODS, method_name, secure_pairs, shared_shapelets
from tacit.arena.silo.suites import SEEDS
from tacit.arena.suites import suite_tasks

N_SETS = 71  # that meet the paper's rule, see tacit.arena.silo.suites
N_POOLED = N_SETS - 2  # Crop and ElectricDevices are too large for information gain over shares
EQUAL_CANDIDATES = 40
_FEATURE_FILES = {
    "training part, five folds, script": "silo_features",
    "test part, script": "silo_features_test",
}
_FEATURE_KEYS = ("shapelets", "shapelets-300", "intervals", "dictionary", "all")
DEFAULTS = tuple(f"{name}, default" for name in PAPER_METHODS)


@dataclass(frozen=True, slots=True)
class Means:
    """Mean accuracy per method over the sets and seeds that have all of them."""

    of: dict[str, float]
    n_sets: int
    seeds: str  # of each set: "1", or "1 to 3" where they differ
    n_runs: int  # sets, methods and seeds, of the seeds that the suite asks for


def method_means(records: Sequence[Record], methods: Sequence[str]) -> Means:
    """The means over sets of the means over seeds, with what they rest on."""
    whole = _whole_sets(records, methods)
    values = [(data, seed, 0.0) for data, cells in whole.items() for seed in cells]
    rows = [[cells[seed] for seed in cells] for cells in whole.values()]
    means = {
        name: float(np.mean([np.mean([cell[name] for cell in row]) for row in rows]))
        for name in methods
        if rows
    }
    runs = len(methods) * sum(seed in SEEDS for _, seed, _ in values)
    return Means(means, len(whole), n_seeds(values) if values else "0", runs)


def differences(
    records: Sequence[Record], methods: Sequence[str], one: str, other: str
) -> list[tuple[float, str]]:
    """Per set that has all methods: how much `one` lies above the `other`, in means over seeds."""
    return [
        (float(np.mean([cell[one] - cell[other] for cell in cells.values()])), data)
        for data, cells in _whole_sets(records, methods).items()
    ]


def _whole_sets(
    records: Sequence[Record], methods: Sequence[str]
) -> dict[str, dict[int, dict[str, float]]]:
    """By set and seed the accuracies of all methods; a seed that lacks one is in no mean."""
    found: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        name, task = method_name(record["task"]["options"]), record["task"]
        if name in methods:
            found[task["data"]][task["seed"]][name] = record["accuracy"]
    whole = {
        data: {seed: cell for seed, cell in cells.items() if set(cell) == set(methods)}
        for data, cells in found.items()
    }
    return {data: cells for data, cells in whole.items() if cells}


def silo(results: Results) -> str:
    """Figs. 4, 5 and 8 in means: the paper's setting, and our default in its own rows."""
    records = results.suite("fedst")
    rows: list[tuple[Any, ...]] = []
    for setting, methods, n_possible in (
        ("information gain, forest of 40", (*PAPER_METHODS, "FedST-F"), N_POOLED),
        ("F, ridge (our default)", DEFAULTS, N_SETS),
    ):
        found = method_means(records, methods)
        rows += [
            (
                setting if name != "FedST-F" else "F, forest of 40",
                name.removesuffix(", default"),
                f"{mean:.4f}",
                f"{found.of[methods[0]] - mean:+.4f}",
                f"{found.n_sets} of {n_possible}",
                found.seeds,
            )
            for name, mean in found.of.items()
        ]
    columns = ("setting", "method", "mean accuracy", "FedST minus it", "sets", "seeds")
    return table(columns, rows)


def silo_tighter(results: Results) -> str:
    """The earlier table on 36 sets, with F and logistic regression."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for record in results.suite("fedst-scopes"):
        options = record["task"]["options"]
        name = method_name({**options, "quality": "ig", "classifier": "forest"})
        quality = {"f": "F", "ig": "information gain"}[options["quality"]]
        found[f"{name}, {quality}"][record["task"]["data"]] = record["accuracy"]
    rows = [
        (name, f"{np.mean(list(cells.values())):.4f}", len(cells)) for name, cells in found.items()
    ]
    return table(("method", "mean accuracy", "sets"), rows)


def silo_features(results: Results) -> str:
    """Kinds of features on the same sets: what a script measured, and the suite where it ran."""
    names = list(dict.fromkeys(method_name(dict(t.options)) for t in suite_tasks("fedst-features")))
    rows: list[tuple[Any, ...]] = []
    for source, file in _FEATURE_FILES.items():
        lines = [line["accuracy"] for line in results.lines(file)]
        for key, name in zip(_FEATURE_KEYS, names, strict=True) if lines else ():
            # A set without a word of its own has no dictionary: it counts as without a difference.
            mine = [line.get(key, line["shapelets"]) for line in lines]
            gaps = [a - line["shapelets"] for a, line in zip(mine, lines, strict=True)]
            rows.append((source, name, f"{np.mean(mine):.4f}", *_gap_cells(gaps), "1"))
    records = results.suite("fedst-features")
    found = method_means(records, names)
    for name, mean in found.of.items():
        gaps = [gap for gap, _ in differences(records, names, name, names[0])]
        rows.append(("test part, suite", name, f"{mean:.4f}", *_gap_cells(gaps), found.seeds))
    columns = ("scored on", "features", "mean", "minus 200 shapelets", "sets", "seeds")
    return table(columns, rows)


def _gap_cells(gaps: Sequence[float]) -> tuple[str, int]:
    """The mean difference with its standard error over sets, and the sets."""
    error = f" ({np.std(gaps, ddof=1) / np.sqrt(len(gaps)):.4f})" if len(gaps) > 1 else ""
    return f"{np.mean(gaps):+.4f}{error}" if any(gaps) else "", len(gaps)


def silo_secure(results: Results) -> str:
    """Secure runs beside their twins, by kind of model."""
    kinds: dict[str, list[tuple[Record, Record]]] = defaultdict(list)
    for pair in secure_pairs(results.suite("fedst-secure")):
        kinds[method_name(pair[0]["task"]["options"])].append(pair)
    rows = []
    for name, pairs in kinds.items():
        gaps = [abs(secure["accuracy"] - twin["accuracy"]) for secure, twin in pairs]
        common = [shared_shapelets(*pair) for pair in pairs]
        rows.append(
            (
                name,
                len(pairs),
                sum(gap == 0.0 for gap in gaps),
                f"{max(gaps):.4f}",
                sum(s["details"]["predictions"] == t["details"]["predictions"] for s, t in pairs),
                f"{sum(a for a, _ in common)} of {sum(b for _, b in common)}",
                ", ".join(secure["task"]["data"] for secure, _ in pairs),
            )
        )
    columns = (
        "model", "sets", "equal accuracies", "largest difference", "all predictions equal",
        "shapelets in common", "which sets",
    )  # fmt: skip
    return table(columns, rows)


def silo_contracts(results: Results) -> str:
    """Fig. 10: how near real times come to their contracts, set by set."""
    rows = []
    for name, lines in contracts(results).items():
        off = [abs(line["real_seconds"] - line["contract"]) for line in lines]
        share = [gap / line["contract"] for gap, line in zip(off, lines, strict=True)]
        first, last = lines[0], lines[-1]
        rows.append(
            (
                name,
                f"{last['contract'] / last['share']:.1f}",
                f"{sum(line['kept'] for line in lines)} of {len(lines)}",
                f"{np.median(share):.0%}",
                f"{first['real_seconds']:.1f} for {first['contract']:.1f}",
                f"{last['real_seconds']:.1f} for {last['contract']:.1f}",
                f"{first['accuracy']:.3f} to {last['accuracy']:.3f}",
            )
        )
    columns = (
        "set", "full search, s", "contracts kept", "off at the median", "seconds at 10 %",
        "at 90 %", "accuracy at 10 % and 90 %",
    )  # fmt: skip
    return table(columns, rows)


def contracts(results: Results) -> dict[str, list[Mapping[str, Any]]]:
    """Per set its nine contracts."""
    found = {
        record["task"]["data"]: record["details"]["contracts"]
        for record in results.suite("fedst-contract")
    }
    return dict(sorted(found.items()))


def equal_candidates(results: Results) -> tuple[str, dict[str, float]]:
    """A commit, and its search seconds of each variant on the same candidates at M = 512.

    Without compiling; of the last commit that has basic and ours, because times of different code
    are no ratio.
    """
    commits: dict[str, dict[str, float]] = defaultdict(dict)
    for line in results.lines("silo_speed"):
        if line["part"] == "ratio" and line["candidates"] == EQUAL_CANDIDATES:
            seconds = line["seconds_without_compiling"]
            commits[str(line.get("commit"))][line["variant"]] = seconds
    whole = [commit for commit, found in commits.items() if {"basic", "+dot+F"} <= set(found)]
    return (whole[-1], commits[whole[-1]]) if whole else ("", {})


def equal_in_processor_seconds(results: Results) -> Record:
    """The last record of ours that was compared with basic on equal candidates at a large M."""
    found = [
        line
        for line in results.lines("silo_speed")
        if line["part"] == "equal" and "times_faster_than_basic" in line
    ]
    return found[-1] if found and found[-1]["variant"] != "basic" else {}


def speed(results: Results) -> str:
    """Fig. 6f at the default size: every variant on the same candidates."""
    commit, found = equal_candidates(results)
    rows = [
        (name, f"{seconds:.2f}", f"{found['basic'] / seconds:.1f}", commit)
        for name, seconds in found.items()
    ]
    return table(("variant", "seconds of the search", "times faster than basic", "commit"), rows)


def processor_seconds(results: Results) -> dict[int, tuple[float, int, str, float, int, str]]:
    """By M: processor seconds per candidate beyond the start, candidates and commit of both."""
    found: dict[tuple[int, str], tuple[float, int, str]] = {}
    start = float("nan")
    for line in results.lines("silo_basic"):
        if line.get("state") == "start alone":
            start = line["cpu_seconds"]
            continue
        cost = (line["cpu_seconds"] - start) / line["candidates"]
        few = line["variant"] == "+dot+F" and line["candidates"] < 100
        if not few:  # on few candidates ours takes hardly more than its start
            known = (cost, line["candidates"], str(line.get("commit")))
            found[line["M"], line["variant"]] = known
    sizes = sorted({m for m, variant in found if variant == "basic"})
    return {m: (*found[m, "basic"], *found[m, "+dot+F"]) for m in sizes if (m, "+dot+F") in found}


def speed_growth(results: Results) -> str:
    """The cost of one candidate with growing M."""
    rows = [
        (m, f"{basic:.2f}", n_basic, old, f"{ours:.3f}", n_ours, new, f"{basic / ours:.0f}")
        for m, (basic, n_basic, old, ours, n_ours, new) in processor_seconds(results).items()
    ]
    columns = (
        "series", "basic", "candidates", "commit", "+dot+F", "candidates", "commit",
        "ratio per candidate",
    )  # fmt: skip
    return table(columns, rows)


def speed_steps(results: Results) -> str:
    """Fig. 6a-e: each step by itself, at the sizes measured so far."""
    rows = [
        (
            line["variant"],
            *(line[axis] for axis in ("m", "n", "parties", "candidates")),
            f"{line['seconds_without_compiling']:.2f}",
            f"{line['cpu_seconds_of_P0']:.3f}",
            f"{line['bytes_sent_by_P0'] / 1e6:.2f}",
            line.get("commit", "-"),
        )
        for line in results.lines("silo_variants")
        if line["part"] == "steps"
    ]
    columns = (
        "step", "M", "N", "n", "candidates", "wall seconds", "processor seconds of P0",
        "MB sent by P0", "commit",
    )  # fmt: skip
    return table(columns, sorted(rows, key=lambda row: (row[0], row[1:5])))


FEDST_TABLES: dict[str, Callable[[Results], str]] = {
    "silo": silo,
    "silo-features": silo_features,
    "silo-secure": silo_secure,
    "silo-contracts": silo_contracts,
    "speed": speed,
    "speed-growth": speed_growth,
    "speed-steps": speed_steps,
    "silo-tighter": silo_tighter,
}
