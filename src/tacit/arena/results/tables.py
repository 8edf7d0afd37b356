"""What the tables of docs/results.md share, and those on releases and fleets.

The arena's page shows the same tables, made here too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.arena.results.records import Record, Results

__all__ = ["Record", "Results"]
NOISY = (0.1, 0.5, 1.0, 5.0)
WITHIN = 0.02
FLEET_NAMES = {"fedavg": "FedAvg", "dptimefl": "DP-TimeFL", "cdpfl": "CDP-FL"}


def over_sets(pairs: Iterable[tuple[str, float]]) -> float:
    """Mean over data sets of the mean over runs."""
    sets: dict[str, list[float]] = defaultdict(list)
    for name, value in pairs:
        sets[name].append(value)
    return float(np.mean([np.mean(values) for values in sets.values()]))


def reidentifications(records: Sequence[Record]) -> list[float]:
    """The measured rates, where there are any."""
    return [r["leakage"]["reidentification"] for r in records if r.get("leakage")]


def leak(records: Sequence[Record]) -> str:
    """Their mean as a share."""
    rates = reidentifications(records)
    return f"{np.mean(rates):.0%}" if rates else "-"


def accuracies(records: Iterable[Record]) -> list[tuple[str, float]]:
    """Data set and accuracy of every record."""
    return [(record["task"]["data"], record["accuracy"]) for record in records]


Value = tuple[str, int, float]  # data set, seed, what was measured


def values_of(records: Iterable[Record]) -> list[Value]:
    """The accuracies, each with its data set and seed."""
    return [(r["task"]["data"], r["task"]["seed"], r["accuracy"]) for r in records]


def cells_of(records: Iterable[Record]) -> list[Value]:
    """The same where several budgets lie together: a data set at a budget counts for itself."""
    return [
        (f"{r['task']['data']} at {r['task']['epsilon']}", r["task"]["seed"], r["accuracy"])
        for r in records
    ]


def seed_means(values: Iterable[Value]) -> list[float]:
    """The mean of every seed that has as many data sets as any: means over equal sets."""
    seeds: dict[int, list[float]] = defaultdict(list)
    for _, seed, value in values:
        seeds[seed].append(value)
    most = max((len(found) for found in seeds.values()), default=0)
    return [float(np.mean(found)) for found in seeds.values() if len(found) == most]


def n_seeds(values: Iterable[Value]) -> str:
    """How many seeds the data sets have: "3", or "1 to 3" where they differ."""
    seeds: dict[str, set[int]] = defaultdict(set)
    for name, seed, _ in values:
        seeds[name].add(seed)
    counts = sorted({len(found) for found in seeds.values()})
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def seeds_in_words(values: Iterable[Value]) -> str:
    """The same with its noun."""
    count = n_seeds(values)
    return f"{count} seed" if count == "1" else f"{count} seeds"


def mean_of(values: Sequence[Value], *, digits: str = ".3f") -> str:
    """Mean over sets of the mean over seeds, and the standard deviation of the whole seeds."""
    means = seed_means(values)
    spread = f" ± {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
    return f"{over_sets((name, value) for name, _, value in values):{digits}}{spread}"


def over_seeds(records: Sequence[Record]) -> str:
    """The accuracy with its spread and seeds; no seed is left out of the mean."""
    values = values_of(records)
    return f"{mean_of(values)} ({seeds_in_words(values)})"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*head, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])


# --- releases with a guarantee ------------------------------------------------------------------


def sound_labels(results: Results) -> str:
    """The sound releases under the ceiling of any release."""
    records = results.suite("softshape-sound")
    rows = []
    for release in ("label", "place", "vector", "shapes"):
        of_release = [r for r in records if r["task"]["method"] == f"softshape-{release}"]
        for epsilon in sorted({r["task"]["epsilon"] for r in of_release}):
            mine = [r for r in of_release if r["task"]["epsilon"] == epsilon]
            ceiling = over_sets((r["task"]["data"], r["details"]["ceiling"]) for r in mine)
            sets, seeds = ({r["task"][key] for r in mine} for key in ("data", "seed"))
            numbers = (f"{epsilon:g}", f"{over_sets(accuracies(mine)):.3f}", f"{ceiling:.3f}")
            rows.append((release, *numbers, len(sets), len(seeds)))
    columns = ("release", "total epsilon", "accuracy", "no method can exceed", "sets", "seeds")
    return table(columns, rows)


# --- DP-TimeFL ----------------------------------------------------------------------------------


def below_fedavg(records: Sequence[Record]) -> list[tuple[Record, float | None]]:
    """Every published run with its distance to FedAvg on the same clients from the same start.

    None where that FedAvg has no record yet.
    """
    fedavg = {
        _fleet(record): record["accuracy"]
        for record in records
        if record["task"]["options"]["variant"] == "fedavg"
    }
    return [
        (record, fedavg[_fleet(record)] - record["accuracy"] if _fleet(record) in fedavg else None)
        for record in records
    ]


def gap_in_words(gaps: Sequence[float | None], *, sign: int = 1) -> str:
    """The mean of the distances that are known, and how many of the runs have one."""
    known = [gap for gap in gaps if gap is not None]
    if not known:
        return "-"
    of = "" if len(known) == len(gaps) else f" ({len(known)} of {len(gaps)} runs have FedAvg)"
    return f"{sign * np.mean(known):+.3f}{of}"


def _fleet(record: Record) -> tuple[str, int, str, int]:
    task = record["task"]
    return (task["data"], task["options"]["n_clients"], task["options"]["preset"], task["seed"])


def fleet_nominal(results: Results) -> str:
    """Per set, clients, preset, method and nominal epsilon: accuracy, and what ended the runs."""
    cells: dict[tuple[Any, ...], list[tuple[Record, float | None]]] = defaultdict(list)
    for record, below in below_fedavg(results.suite("fleet-published")):
        task, options = record["task"], record["task"]["options"]
        nominal = "-" if task["epsilon"] is None else f"{task['epsilon']:g}"
        key = (
            task["data"],
            options["n_clients"],
            options["preset"],
            FLEET_NAMES[options["variant"]],
            nominal,
        )
        cells[key].append((record, below))
    rows = []
    for key, found in sorted(cells.items(), key=lambda cell: _fleet_order(cell[0])):
        records, gaps = [record for record, _ in found], [below for _, below in found]
        numbers = (over_seeds(records), gap_in_words(gaps), ending(records), leak(records))
        rows.append((*key, *numbers))
    columns = (
        "set", "clients", "preset", "method", "nominal epsilon", "accuracy", "below FedAvg",
        "rounds, ended by", "linked",
    )  # fmt: skip
    return table(columns, rows)


def _fleet_order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    data, clients, preset, method, nominal = key
    epsilon = 0.0 if nominal == "-" else float(nominal)
    return clients, preset != "tuned", data, list(FLEET_NAMES.values()).index(method), epsilon


def ending(records: Sequence[Record]) -> str:
    """How many rounds the runs had, and what ended them."""
    rounds = sorted({record["details"]["rounds"] for record in records})
    shown = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
    return f"{shown}, {' or '.join(sorted({r['details']['ended_by'] for r in records}))}"


def fleet_sound(results: Results) -> str:
    """Fleets with a guarantee, by split, clients and mechanism."""
    cells: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in results.suite("fleet-sound"):
        task, options = record["task"], record["task"]["options"]
        key = (task["data"], options["split"], options["n_clients"], options["mechanism"])
        cells[key].append(record)
    rows = [
        (*key, over_seeds(records), f"{np.mean([below_own_fedavg(r) for r in records]):.3f}")
        for key, records in sorted(cells.items(), key=lambda cell: str(cell[0]))
    ]
    columns = ("set", "split", "clients", "mechanism", "accuracy at (8, 1e-5)", "below FedAvg")
    return table(columns, rows)


def below_own_fedavg(record: Record) -> float:
    """Distance of a sound fleet to the FedAvg that ran beside it."""
    return float(record["details"]["baselines"]["fedavg"] - record["accuracy"])


TABLES: dict[str, Callable[[Results], str]] = {
    "sound-labels": sound_labels,
    "fleet-nominal": fleet_nominal,
    "fleet-sound": fleet_sound,
}
