"""Write the tables of docs/results.md from the lines in results/, between their markers.

    python benchmarks/results_page.py [--results results] [--page docs/results.md]

Every figure on that page comes from here, so it can be refreshed with one command when a result
file grows. Lines made by uncommitted code are left out where there are others; where there are
none, the table says so.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arena.paper import TABLE2
from tacit.arena.suites import SOFTSHAPE_SETS
from tacit.report.arena_page import read_records

Line = dict[str, Any]
NOISY = (0.1, 0.5, 1.0, 5.0)
WITHIN = 0.02


class Results:
    """The result files of one folder, read when asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uncommitted: set[str] = set()

    def lines(self, name: str) -> list[Line]:
        """The clean lines of a benchmark's file; all of them, noted, if none is clean."""
        found = self._all(name)
        clean = [line for line in found if _committed(line)]
        if found and not clean:
            self.uncommitted.add(name)
        return clean or found

    def every_line(self, name: str) -> list[Line]:
        """Also those of uncommitted code, which is noted: for times, which no line proves alone."""
        found = self._all(name)
        if not all(_committed(line) for line in found):
            self.uncommitted.add(f"{name} in part")
        return found

    def _all(self, name: str) -> list[Line]:
        path = self.folder / f"{name}.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def arena(self, suite: str) -> list[Line]:
        """The finished, committed tasks of a suite."""
        records = read_records(self.folder / "arena" / suite)
        return [r for r in records if r["status"] == "done" and _committed(r)]


def _committed(line: Line) -> bool:
    return bool(line.get("commit")) and not str(line["commit"]).endswith(("-dirty", "unknown"))


def over_sets(pairs: Iterable[tuple[str, float]]) -> float:
    """Mean over data sets of the mean over runs."""
    sets: dict[str, list[float]] = defaultdict(list)
    for name, value in pairs:
        sets[name].append(value)
    return float(np.mean([np.mean(values) for values in sets.values()]))


def over_seeds(lines: Sequence[Line], name: str = "seed") -> str:
    """Mean of the per-seed means and their standard deviation."""
    seeds: dict[int, list[float]] = defaultdict(list)
    for line in lines:
        seeds[line[name]].append(line["accuracy"])
    means = [float(np.mean(values)) for values in seeds.values()]
    spread = f" ± {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
    return f"{np.mean(means):.3f}{spread} ({len(means)} seed{'s' * (len(means) > 1)})"


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    head = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*head, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)])


# --- DP-SoftShape -------------------------------------------------------------------------------


def rival_rows(results: Results) -> list[tuple[Any, ...]]:
    """Per method of Table 2: the paper's two means, ours, and whether they are within .02."""
    records = results.arena("softshape-table2")
    rows = []
    for method in sorted({r["task"]["method"] for r in records}, key=_paper_order):
        mine = [r for r in records if r["task"]["method"] == method]
        clean = [r for r in mine if r["task"]["epsilon"] is None]
        noisy = [r for r in mine if r["task"]["epsilon"] in NOISY]
        full = len({r["task"]["epsilon"] for r in noisy}) == 4
        ours = (_arena_mean(clean), _arena_mean(noisy) if full else None)
        theirs = (TABLE2[method].clean, TABLE2[method].noisy) if method in TABLE2 else (None, None)
        pairs = list(zip(theirs, ours, strict=True))
        gaps = [b - a for a, b in pairs if a is not None and b is not None]
        n_sets = len({r["task"]["data"] for r in mine})
        seeds = len({r["task"]["seed"] for r in mine})
        options = mine[0]["task"]["options"]
        note = ", ".join(f"{key}={value}" for key, value in options.items()) or "-"
        rows.append(
            (
                method,
                *(f"{v:.3f}" if v is not None else "-" for pair in pairs for v in pair),
                _closeness(gaps) if n_sets == len(SOFTSHAPE_SETS) else "other sets",
                n_sets,
                seeds,
                note,
            )
        )
    return rows


def _closeness(gaps: Sequence[float]) -> str:
    if not gaps:
        return "-"
    if min(gaps) < -WITHIN:
        return "no, below"
    return "no, above" if max(gaps) > WITHIN else "yes"


def _paper_order(method: str) -> tuple[int, str]:
    return (list(TABLE2).index(method) if method in TABLE2 else len(TABLE2), method)


def _arena_mean(records: Sequence[Line]) -> float | None:
    return over_sets((r["task"]["data"], r["accuracy"]) for r in records) if records else None


def rivals(results: Results) -> str:
    columns = (
        "method", "paper, clean", "ours", "paper, noisy", "ours", "within .02", "sets", "seeds",
        "reduced to",
    )  # fmt: skip
    return table(columns, rival_rows(results))


def published(results: Results, epsilons: Sequence[float | None], variant: str) -> list[Line]:
    """Lines of the published mode."""
    return [
        line
        for line in results.lines("local_published")
        if line["variant"] == variant and line["epsilon"] in epsilons
    ]


def softshape(results: Results) -> str:
    rows = [
        (
            "without noise" if epsilon is None else f"nominal {epsilon:g}",
            over_seeds(lines),
            len({line["set"] for line in lines}),
            _leak(lines),
        )
        for epsilon in (*NOISY, None)
        if (lines := published(results, (epsilon,), "full"))
    ]
    return table(("budget", "accuracy", "sets", "releases joined to their series"), rows)


def _leak(lines: Sequence[Line]) -> str:
    rates = [line["leakage"]["reidentification"] for line in lines if line.get("leakage")]
    return f"{np.mean(rates):.0%}" if rates else "-"


def ablations(results: Results) -> str:
    full = {
        (line["set"], line["seed"]): line["accuracy"] for line in published(results, (0.1,), "full")
    }
    rows = []
    theirs_by_variant = {"no-moe": "+.20", "hard": "+.19", "uniform": "'most' of the gain"}
    for variant, theirs in theirs_by_variant.items():
        lines = published(results, (0.1,), variant)
        gains = defaultdict(list)
        for line in lines:
            if (line["set"], line["seed"]) in full:
                gains[line["seed"]].append(full[line["set"], line["seed"]] - line["accuracy"])
        means = [float(np.mean(values)) for values in gains.values()]
        if means:
            spread = f" ± {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
            rows.append((variant, theirs, f"{np.mean(means):+.3f}{spread}", len(means)))
    return table(("without", "paper: full model gains", "ours", "seeds"), rows)


def sound_labels(results: Results) -> str:
    lines = results.lines("local_sound")
    rows = []
    for release in ("label", "vector", "shapes"):
        for epsilon in sorted({line["epsilon"] for line in lines if line["release"] == release}):
            mine = [x for x in lines if (x["release"], x["epsilon"]) == (release, epsilon)]
            ceiling = over_sets((line["dataset"], line["ceiling"]) for line in mine)
            accuracy = over_sets((line["dataset"], line["accuracy"]) for line in mine)
            sets, seeds = ({line[key] for line in mine} for key in ("dataset", "seed"))
            numbers = (f"{epsilon:g}", f"{accuracy:.3f}", f"{ceiling:.3f}")
            rows.append((release, *numbers, len(sets), len(seeds)))
    columns = ("release", "total epsilon", "accuracy", "no method can exceed", "sets", "seeds")
    return table(columns, rows)


# --- FedST --------------------------------------------------------------------------------------


def silo_means(lines: Sequence[Line]) -> tuple[dict[str, float], int]:
    """Mean accuracy per method over the sets that have all methods."""
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        cells[line["data"]][line["method"]].append(line["accuracy"])
    methods = {line["method"] for line in lines}
    whole = [row for row in cells.values() if set(row) == methods]
    means = {m: float(np.mean([np.mean(row[m]) for row in whole])) for m in sorted(methods)}
    return means, len(whole)


def silo(results: Results) -> str:
    means, n_sets = silo_means(results.lines("silo_accuracy"))
    fed = means.get("FedST-F", float("nan"))
    rows = [(name, f"{value:.4f}", f"{fed - value:+.4f}") for name, value in means.items()]
    return table((f"method, {n_sets} UCR sets", "mean accuracy", "FedST-F minus it"), rows)


def per_candidate(results: Results) -> dict[str, float]:
    """Least search seconds per candidate of every variant at M = 512, N = 100.

    Committed lines count alone as soon as they hold both ends of the comparison.
    """
    clean = results.lines("silo_speed")
    whole = {"basic", "+dot+F"} <= {line.get("variant") for line in clean}
    found: dict[str, float] = {}
    for line in clean if whole else results.every_line("silo_speed"):
        if line.get("seconds") and (line.get("M"), line.get("N")) == (512, 100):
            seconds = line["seconds"] / line["candidates"]
            found[line["variant"]] = min(seconds, found.get(line["variant"], np.inf))
    return found


def speed(results: Results) -> str:
    found = per_candidate(results)
    basic = found.get("basic", float("nan"))
    rows = [(name, f"{value:.3f}", f"{basic / value:.0f}") for name, value in found.items()]
    return table(("variant", "seconds per candidate, at best", "times faster than basic"), rows)


# --- DP-TimeFL ----------------------------------------------------------------------------------


def fleet_published(results: Results) -> list[tuple[Any, ...]]:
    """Per set, clients, method and nominal epsilon: accuracy and distance to FedAvg."""
    cells: dict[tuple[Any, ...], list[Line]] = defaultdict(list)
    for line in results.lines("fleet_published"):
        key = (line["data"], line["clients"], line["method"], line["nominal_epsilon"])
        cells[key].append(line)
    rows = []
    for (name, clients, method, epsilon), lines in sorted(cells.items(), key=str):
        below = np.mean([line["below_fedavg"] for line in lines])
        links = [x["reidentification"] for x in lines if x["reidentification"] is not None]
        linked = f"{np.mean(links):.0%}" if links else "-"
        nominal = "-" if method == "fedavg" else f"{epsilon:g}"
        rows.append((name, clients, method, nominal, over_seeds(lines), f"{below:+.3f}", linked))
    return rows


def fleet_nominal(results: Results) -> str:
    columns = (
        "set", "clients", "method", "nominal epsilon", "accuracy", "below FedAvg", "linked",
    )  # fmt: skip
    return table(columns, fleet_published(results))


def fleet_sound(results: Results) -> str:
    cells: dict[tuple[Any, ...], list[Line]] = defaultdict(list)
    for line in results.lines("fleet_sound"):
        cells[line["data"], line["split"], line["clients"], line["mechanism"]].append(line)
    rows = [
        (*key, over_seeds(lines), f"{np.mean([x['fedavg'] - x['accuracy'] for x in lines]):.3f}")
        for key, lines in sorted(cells.items(), key=str)
    ]
    columns = ("set", "split", "clients", "mechanism", "accuracy at (8, 1e-5)", "below FedAvg")
    return table(columns, rows)


# --- the page -----------------------------------------------------------------------------------

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--page", type=Path, default=Path("docs/results.md"))
    options = parser.parse_args()
    results = Results(options.results)
    text = options.page.read_text(encoding="utf-8")
    from results_claims import claims

    for name, make in {**TABLES, "claims": claims}.items():
        body = make(results)
        pattern = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
        filled = f"\\1\n{body.replace(chr(92), chr(92) * 2)}\n\n\\2"
        text, count = pattern.subn(filled, text)
        if count != 1:
            raise SystemExit(f"{options.page} has {count} places for {name!r}; it needs one.")
    note = ", ".join(sorted(results.uncommitted)) or "none"
    text = re.sub(r"(?<=<!-- uncommitted -->)[^<]*", note, text)
    half = options.page.with_suffix(".tmp")
    half.write_text(text, encoding="utf-8")
    half.replace(options.page)
    print(f"{options.page}: {len(TABLES) + 1} tables; files without a committed line: {note}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
