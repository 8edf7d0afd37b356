"""What the arena's page shows first: one figure for each paper, and its main result in a sentence.

The numbers are those of the tables in docs/results.md, from the same records and functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.arena.results.fedst import DEFAULTS, differences, method_means
from tacit.arena.results.records import Record, Results
from tacit.arena.results.softshape import complete, mean_over_budgets, published, sets_of
from tacit.arena.results.tables import accuracies, ending, leak, over_sets
from tacit.arena.silo.names import PAPER_METHODS
from tacit.arena.softshape.suites import PRESETS, SOFTSHAPE_SETS
from tacit.report.charts import Line, line_chart
from tacit.report.comparison_charts import box_chart
from tacit.report.page import Text

HEADING = "The main result of each paper"
_RELEASES = ("label", "place")
_SETTINGS = {
    "information gain, forest": (*PAPER_METHODS, "FedST-F"),
    "F and ridge": DEFAULTS,
}
_CLIENTS = 100


def opening_blocks(results: Results) -> list[Any]:
    """A figure and how to read it for every paper that has records."""
    found = [*_softshape(results), *_fedst(results), *_timefl(results)]
    return [Text("", HEADING), *found] if found else []


def _softshape(results: Results) -> list[Any]:
    """Only what was run on all sets: a mean over fewer would not stand beside another."""
    lines, claims, absent = [], [], []
    for preset in PRESETS:
        runs = complete(published(results, preset))
        if sets_of(runs) == set(SOFTSHAPE_SETS):
            name = f"DP-SoftShape, preset {preset}: {leak(runs)} of releases joined"
            lines.append(Line(name, _by_epsilon(runs)))
            claims.append((mean_over_budgets(runs), leak(runs)))
        else:
            absent.append(f"preset {preset} ({len(sets_of(runs))} of {len(SOFTSHAPE_SETS)} sets)")
    if not claims:
        return []
    mean, joined = max(claims)
    said = f"DP-SoftShape as published: accuracy {mean:.3f}, but {joined} of its releases are "
    said += "joined to their series"
    sound = results.suite("softshape-sound")
    for release in _RELEASES:
        mine = [r for r in sound if r["task"]["method"] == f"softshape-{release}"]
        mine = complete(mine, sorted({record["task"]["epsilon"] for record in mine}))
        if sets_of(mine) != set(SOFTSHAPE_SETS):
            absent.append(f"{release} release ({len(sets_of(mine))} of {len(SOFTSHAPE_SETS)} sets)")
            continue
        lines.append(Line(f"{release}, its total epsilon guaranteed", _by_epsilon(mine)))
        if release == _RELEASES[0]:
            bound = _by_epsilon(mine, ceiling=True)
            lines.append(Line("no method can exceed, for a label", bound, dashed=True))
            said += f"; a label with a real epsilon reaches {_of_bound(mine, bound)}"
    how = (
        "The published epsilons are nominal: noise on every step adds up, and nothing is promised "
        "for a whole series. The others hold for the whole series. All means are over the "
        f"{len(SOFTSHAPE_SETS)} sets."
    )
    how += f" Not shown, because sets are missing: {', '.join(absent)}." if absent else ""
    x = "epsilon: nominal as published, else guaranteed"
    return [line_chart(said, lines, x=x, y="mean accuracy", log_x=True), Text(how)]


def _of_bound(records: Sequence[Record], bound: Sequence[tuple[float, float]]) -> str:
    """At the smallest, a middle and the largest epsilon."""
    told = [
        f"{reached:.3f} of at most {most:.3f} at {epsilon:g}"
        for (epsilon, reached), (_, most) in zip(_by_epsilon(records), bound, strict=True)
    ]
    places = sorted({0, len(told) // 2, len(told) - 1})
    return ", ".join(told[place] for place in places)


def _by_epsilon(records: Sequence[Record], *, ceiling: bool = False) -> list[tuple[float, float]]:
    points = []
    for epsilon in sorted({record["task"]["epsilon"] for record in records}):
        here = [record for record in records if record["task"]["epsilon"] == epsilon]
        bounds = [(r["task"]["data"], r["details"]["ceiling"]) for r in here] if ceiling else None
        points.append((epsilon, over_sets(bounds or accuracies(here))))
    return points


def _fedst(results: Results) -> list[Any]:
    records = results.suite("fedst")
    rows: dict[str, list[tuple[float, str]]] = {}
    said = ""
    for setting, methods in _SETTINGS.items():
        found = method_means(records, methods)
        means = found.of
        if not means:
            continue
        fed, pooled, alone = methods[:3]
        for other, name in ((alone, "one owner alone"), (pooled, "pooling")):
            rows[f"{name}, {setting}"] = differences(records, methods, fed, other)
        better = sum(gap > 0.0 for gap, _ in differences(records, methods, fed, alone))
        said = said or (
            f"FedST: {means[fed] - means[alone]:+.3f} against one owner alone, better on {better} "
            f"of {found.n_sets} sets, and {means[fed] - means[pooled]:+.3f} against pooling all "
            "series"
        )
    if not rows:
        return []
    how = "Above 0 FedST is the better one. The sentence is about the figure's first setting."
    x = "FedST minus the other, one dot per set"
    return [box_chart(said, rows, x=x), Text(how)]


def _timefl(results: Results) -> list[Any]:
    sound = [r for r in results.suite("fleet-breadth") if _is_fleet(r, "distributed")]
    beside = [
        record
        for suite in ("timefl", "fleet-sound", "fleet-rivals")
        for record in results.suite(suite)
        if _is_fleet(record) and "fedavg" in record["details"].get("baselines", {})
    ]
    letter = [
        record
        for record in results.suite("fleet-published")
        if record["task"]["options"]["variant"] == "dptimefl"
        and record["task"]["options"]["preset"] == "tuned"
        and record["task"]["options"]["n_clients"] == _CLIENTS
    ]
    sets = _common(sound, beside, letter)
    sound, beside, letter = (_on(part, sets) for part in (sound, beside, letter))
    if not sets:
        return []
    reached = _by_epsilon(sound)
    fedavg = over_sets((r["task"]["data"], r["details"]["baselines"]["fedavg"]) for r in beside)
    budgets = sorted({record["task"]["epsilon"] for record in letter})
    ends = [(reached[0][0], fedavg), (max(reached[-1][0], budgets[-1]), fedavg)]
    lines = [
        Line("distributed, its epsilon guaranteed per client", reached),
        Line("FedAvg, no privacy", ends, dashed=True),
    ]
    for epsilon in budgets:
        cell = [record for record in letter if record["task"]["epsilon"] == epsilon]
        rounds = ending(cell).replace(", ", " rounds, by ")
        name = f'DP-TimeFL "{epsilon:g}": ends after {rounds}'
        lines.append(Line(name, _by_epsilon(cell), joined=False))
    first = [record for record in letter if record["task"]["epsilon"] == budgets[0]]
    by_delta = sum(record["details"]["ended_by"] == "delta" for record in first)
    said = (
        f"DP-TimeFL, {', '.join(sorted(sets))}, {_CLIENTS} clients: with a real epsilon of "
        f"{reached[-1][0]:g} a fleet reaches {reached[-1][1]:.3f} beside FedAvg's "
        f"{fedavg:.3f}; as published at a nominal {budgets[0]:g}, delta ends {by_delta} of "
        f"{len(first)} runs, at {over_sets(accuracies(first)):.3f}"
    )
    how = (
        "The sets are those with all runs; clients were dealt their series at random. "
        "FedAvg ran beside fleets with a guarantee, in the suites that have it. The published "
        "runs have a network of their own; their epsilons are nominal and promise nothing."
    )
    x = "epsilon: nominal as published, else guaranteed"
    return [line_chart(said, lines, x=x, y="mean accuracy", log_x=True), Text(how)]


def _is_fleet(record: Record, mechanism: str | None = None) -> bool:
    task, options = record["task"], record["task"]["options"]
    return bool(
        task["method"] == "timefl"
        and options.get("n_clients", 100) == _CLIENTS
        and options.get("split", "iid") == "iid"
        and mechanism in (None, options.get("mechanism"))
    )


def _common(*parts: Sequence[Record]) -> set[str]:
    """The data sets that every part has: means over different sets are not compared."""
    return set.intersection(*({record["task"]["data"] for record in part} for part in parts))


def _on(records: Sequence[Record], sets: set[str]) -> list[Record]:
    return [record for record in records if record["task"]["data"] in sets]
