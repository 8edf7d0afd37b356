"""The tables of docs/results.md, from the records of results/current.

Records made by uncommitted code are left out where there are others; where there are none, they
are shown and the page says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arena.paper import TABLE2
from tacit.arena.results.earlier import earlier_records, read_lines
from tacit.arena.statistics import ranked
from tacit.arena.store import read_records
from tacit.arena.suites import SOFTSHAPE_SETS
from tacit.arena.task import task_from_dict

Record = Mapping[str, Any]
NOISY = (0.1, 0.5, 1.0, 5.0)
WITHIN = 0.02
VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "no-moe": {"use_moe": False},
    "hard": {"soft": False},
    "uniform": {"attention_guided": False},
}
SILO_NAMES = {
    ("federated", "f"): "FedST-F",
    ("global", "f"): "GlobalST-F",
    ("local", "f"): "LocalST-F",
    ("local-search", "f"): "LocalS+FedT",
    ("local-transform", "f"): "FedS+LocalT",
    ("federated", "ig"): "FedST-IG",
}


class Results:
    """The records of one folder, read when asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uncommitted: set[str] = set()

    def suite(self, name: str) -> list[Record]:
        """The finished tasks of a suite, one record each: the last one by committed code."""
        found = [*earlier_records(self.folder, name), *read_records(self.folder / name)]
        done = [record for record in found if record["status"] == "done"]
        clean = ranked(done)
        if done and not clean:
            self.uncommitted.add(name)
        return list({task_from_dict(r["task"]).key: r for r in clean or done}.values())

    def speed(self) -> list[Record]:
        """Lines of `benchmarks/silo_speed.py`: the committed ones, or all of them, noted."""
        found: list[Record] = [*read_lines(self.folder / "silo_speed.jsonl")]
        clean = [line for line in found if _committed(line)]
        if found and not clean:
            self.uncommitted.add("silo_speed")
        return clean or found

    def every_speed(self) -> list[Record]:
        """Also those of uncommitted code, which is noted: for times, which no line proves alone."""
        found: list[Record] = [*read_lines(self.folder / "silo_speed.jsonl")]
        if not all(_committed(line) for line in found):
            self.uncommitted.add("silo_speed in part")
        return found


def _committed(line: Record) -> bool:
    return bool(line.get("commit")) and not str(line["commit"]).endswith(("-dirty", "unknown"))


def over_sets(pairs: Iterable[tuple[str, float]]) -> float:
    """Mean over data sets of the mean over runs."""
    sets: dict[str, list[float]] = defaultdict(list)
    for name, value in pairs:
        sets[name].append(value)
    return float(np.mean([np.mean(values) for values in sets.values()]))


def accuracies(records: Iterable[Record]) -> list[tuple[str, float]]:
    """Data set and accuracy of every record."""
    return [(record["task"]["data"], record["accuracy"]) for record in records]


def over_seeds(records: Sequence[Record]) -> str:
    """Mean of the per-seed means and their standard deviation."""
    seeds: dict[int, list[float]] = defaultdict(list)
    for record in records:
        seeds[record["task"]["seed"]].append(record["accuracy"])
    means = [float(np.mean(values)) for values in seeds.values()]
    spread = f" ± {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
    return f"{np.mean(means):.3f}{spread} ({len(means)} seed{'s' * (len(means) > 1)})"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*head, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])


# --- DP-SoftShape -------------------------------------------------------------------------------


def rivals(results: Results) -> str:
    """Table 2: the paper's methods in its setting, and three newer ones."""
    columns = (
        "method", "paper, clean", "ours", "paper, noisy", "ours", "within .02", "sets", "seeds",
        "reduced to",
    )  # fmt: skip
    return table(columns, rival_rows(results))


def rival_rows(results: Results) -> list[tuple[Any, ...]]:
    """Per method of Table 2: the paper's two means, ours, and whether they are within .02."""
    records = results.suite("softshape-table2")
    methods = sorted({r["task"]["method"] for r in records}, key=_paper_order)
    return [_rival_row(method, records) for method in methods]


def _rival_row(method: str, records: Sequence[Record]) -> tuple[Any, ...]:
    mine = [r for r in records if r["task"]["method"] == method]
    clean = [r for r in mine if r["task"]["epsilon"] is None]
    noisy = [r for r in mine if r["task"]["epsilon"] in NOISY]
    full = len({r["task"]["epsilon"] for r in noisy}) == 4
    ours = (_mean(clean), _mean(noisy) if full else None)
    theirs = (TABLE2[method].clean, TABLE2[method].noisy) if method in TABLE2 else (None, None)
    pairs = list(zip(theirs, ours, strict=True))
    gaps = [b - a for a, b in pairs if a is not None and b is not None]
    n_sets, n_seeds = (len({r["task"][key] for r in mine}) for key in ("data", "seed"))
    options = mine[0]["task"]["options"]
    return (
        method,
        *(f"{value:.3f}" if value is not None else "-" for pair in pairs for value in pair),
        _closeness(gaps) if n_sets == len(SOFTSHAPE_SETS) else "other sets",
        n_sets,
        n_seeds,
        ", ".join(f"{key}={value}" for key, value in options.items()) or "-",
    )


def _closeness(gaps: Sequence[float]) -> str:
    if not gaps:
        return "-"
    if min(gaps) < -WITHIN:
        return "no, below"
    return "no, above" if max(gaps) > WITHIN else "yes"


def _paper_order(method: str) -> tuple[int, str]:
    return (list(TABLE2).index(method) if method in TABLE2 else len(TABLE2), method)


def _mean(records: Sequence[Record]) -> float | None:
    return over_sets(accuracies(records)) if records else None


def published(results: Results, epsilons: Sequence[float | None], variant: str) -> list[Record]:
    """Records of the published mode."""
    return [
        record
        for record in results.suite("softshape-published")
        if record["task"]["options"] == VARIANTS[variant] and record["task"]["epsilon"] in epsilons
    ]


def softshape(results: Results) -> str:
    """The paper's method as published, at its five budgets."""
    rows = [
        (
            "without noise" if epsilon is None else f"nominal {epsilon:g}",
            over_seeds(records),
            len({record["task"]["data"] for record in records}),
            _leak(records),
        )
        for epsilon in (*NOISY, None)
        if (records := published(results, (epsilon,), "full"))
    ]
    return table(("budget", "accuracy", "sets", "releases joined to their series"), rows)


def reidentifications(records: Sequence[Record]) -> list[float]:
    """The measured rates, where there are any."""
    return [r["leakage"]["reidentification"] for r in records if r.get("leakage")]


def _leak(records: Sequence[Record]) -> str:
    rates = reidentifications(records)
    return f"{np.mean(rates):.0%}" if rates else "-"


def gains_per_seed(results: Results, variant: str) -> list[float]:
    """What the full model gains over a variant at nominal .1, paired, one mean per seed."""
    full = {_cell(record): record["accuracy"] for record in published(results, (0.1,), "full")}
    gains: dict[int, list[float]] = defaultdict(list)
    for record in published(results, (0.1,), variant):
        if _cell(record) in full:
            gains[record["task"]["seed"]].append(full[_cell(record)] - record["accuracy"])
    return [float(np.mean(values)) for values in gains.values()]


def _cell(record: Record) -> tuple[str, int]:
    return record["task"]["data"], record["task"]["seed"]


def ablations(results: Results) -> str:
    """Table 3 at nominal .1: the gains over three variants, paired by set and seed."""
    rows = []
    theirs_by_variant = {"no-moe": "+.20", "hard": "+.19", "uniform": "'most' of the gain"}
    for variant, theirs in theirs_by_variant.items():
        means = gains_per_seed(results, variant)
        if means:
            spread = f" ± {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
            rows.append((variant, theirs, f"{np.mean(means):+.3f}{spread}", len(means)))
    return table(("without", "paper: full model gains", "ours", "seeds"), rows)


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


# --- FedST --------------------------------------------------------------------------------------


def silo_means(results: Results) -> tuple[dict[str, float], int]:
    """Mean accuracy per method over the sets that have all methods."""
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in results.suite("fedst-scopes"):
        options = record["task"]["options"]
        name = SILO_NAMES[options["scope"], options["quality"]]
        cells[record["task"]["data"]][name].append(record["accuracy"])
    methods = {name for row in cells.values() for name in row}
    whole = [row for row in cells.values() if set(row) == methods]
    means = {m: float(np.mean([np.mean(row[m]) for row in whole])) for m in sorted(methods)}
    return means, len(whole)


def silo(results: Results) -> str:
    """FedST beside its scopes."""
    means, n_sets = silo_means(results)
    fed = means.get("FedST-F", float("nan"))
    rows = [(name, f"{value:.4f}", f"{fed - value:+.4f}") for name, value in means.items()]
    return table((f"method, {n_sets} UCR sets", "mean accuracy", "FedST-F minus it"), rows)


def per_candidate(results: Results) -> dict[str, float]:
    """Least search seconds per candidate of every variant at M = 512, N = 100.

    Committed lines count alone as soon as they hold both ends of the comparison.
    """
    clean = results.speed()
    whole = {"basic", "+dot+F"} <= {line.get("variant") for line in clean}
    found: dict[str, float] = {}
    for line in clean if whole else results.every_speed():
        if line.get("seconds") and (line.get("M"), line.get("N")) == (512, 100):
            seconds = line["seconds"] / line["candidates"]
            found[line["variant"]] = min(seconds, found.get(line["variant"], np.inf))
    return found


def speed(results: Results) -> str:
    """The variants of the secure search against the basic protocol."""
    found = per_candidate(results)
    basic = found.get("basic", float("nan"))
    rows = [(name, f"{value:.3f}", f"{basic / value:.0f}") for name, value in found.items()]
    return table(("variant", "seconds per candidate, at best", "times faster than basic"), rows)


# --- DP-TimeFL ----------------------------------------------------------------------------------


def below_fedavg(records: Sequence[Record]) -> list[tuple[Record, float]]:
    """Every published run with its distance to FedAvg on the same clients from the same start."""
    fedavg = {
        _fleet(record): record["accuracy"]
        for record in records
        if record["task"]["options"]["variant"] == "fedavg"
    }
    return [
        (record, fedavg[_fleet(record)] - record["accuracy"])
        for record in records
        if _fleet(record) in fedavg
    ]


def _fleet(record: Record) -> tuple[str, int, int]:
    task = record["task"]
    return task["data"], task["options"]["n_clients"], task["seed"]


def fleet_nominal(results: Results) -> str:
    """Per set, clients, method and nominal epsilon: accuracy and distance to FedAvg."""
    cells: dict[tuple[Any, ...], list[tuple[Record, float]]] = defaultdict(list)
    for record, below in below_fedavg(results.suite("fleet-published")):
        task, options = record["task"], record["task"]["options"]
        nominal = "-" if task["epsilon"] is None else f"{task['epsilon']:g}"
        key = (task["data"], options["n_clients"], options["variant"], nominal)
        cells[key].append((record, below))
    rows = []
    for key, found in sorted(cells.items(), key=lambda cell: str(cell[0])):
        records, gaps = [record for record, _ in found], [below for _, below in found]
        rows.append((*key, over_seeds(records), f"{np.mean(gaps):+.3f}", _leak(records)))
    columns = (
        "set", "clients", "method", "nominal epsilon", "accuracy", "below FedAvg", "linked",
    )  # fmt: skip
    return table(columns, rows)


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
    "rivals": rivals,
    "softshape": softshape,
    "ablations": ablations,
    "sound-labels": sound_labels,
    "silo": silo,
    "speed": speed,
    "fleet-nominal": fleet_nominal,
    "fleet-sound": fleet_sound,
}
