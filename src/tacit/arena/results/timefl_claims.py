"""The accuracies that DP-TimeFL's abstract claims, judged by the records of `fleet-published`.

The paper stops "8" and "10" early by its own accountant and reports the loss "with a reasonable
privacy budget", which is 100; so the loss is judged at 100 and told for the other two. Against
central DP both are at the same nominal (epsilon, delta), all budgets together. Nothing is judged
before each of the three sets at hand has a seed at every budget that the verdict rests on, because
the sets lie further apart than the methods.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.arena.fleet.suites import FLEET_SETS, PUBLISHED_FLEETS
from tacit.arena.results.tables import Record, below_fedavg, ending, over_sets
from tacit.arena.results.verdicts import NOTHING, Row, against, incomplete, so_far

RUN_FLEET = "`tacit arena run fleet-published --out DIR`"
_REASONABLE = 100.0
_BUDGETS = (8.0, 10.0, 100.0)
_SEEDS = (0, 1, 2)
_RUNS = len(_SEEDS) * len(FLEET_SETS)  # of one method at one budget


def timefl_claims(
    records: Sequence[Record], *, clients: int, below: float, above: float
) -> list[Row]:
    """The paper's loss against FedAvg and its lead over central DP, per preset of the suite."""
    asked = [preset for n, preset in PUBLISHED_FLEETS if n == clients]
    ran = {r["task"]["options"]["preset"] for r in records}
    rows: list[Row] = []
    for preset in sorted({*asked, *ran} & {"paper", "tuned"}):
        mine = [r for r in records if _options(r)[:2] == (clients, preset)]
        if not mine and preset not in asked:
            continue
        where = f"{clients} clients ({preset} preset)"
        loss = f"minimal accuracy loss: {below:.1%} below FedAvg at {where}"
        rows.append(("DP-TimeFL", loss, *_loss(mine, below), RUN_FLEET))
        lead = f"{above:.1%} better than central DP at the same privacy, {where}"
        rows.append(("DP-TimeFL", lead, *_lead(mine, above), RUN_FLEET))
    return rows


def _options(record: Record) -> tuple[int, str, str]:
    options = record["task"]["options"]
    return options["n_clients"], options["preset"], options["variant"]


def _loss(records: Sequence[Record], theirs: float) -> tuple[str, str]:
    cells: dict[float, list[tuple[Record, float]]] = {}
    for record, gap in below_fedavg(records):
        if record["task"]["options"]["variant"] == "dptimefl" and gap is not None:
            cells.setdefault(record["task"]["epsilon"], []).append((record, gap))
    if not cells:
        return NOTHING
    gaps = {
        epsilon: over_sets((record["task"]["data"], gap) for record, gap in cell)
        for epsilon, cell in cells.items()
    }
    told = []
    for epsilon in sorted(cells, reverse=True):
        mine = [record for record, _ in cells[epsilon]]
        told.append(f"{gaps[epsilon]:+.3f} at {epsilon:g} ({ending(mine)}; {_extent(mine)})")
    figure = f"below FedAvg: {', '.join(told)}; no guarantee"
    judged = [record for record, _ in cells.get(_REASONABLE, [])]
    n_runs = _counted(judged)
    if _sets(judged) < set(FLEET_SETS):
        return incomplete(n_runs, _RUNS, of="runs at 100"), figure
    verdict = against(-gaps[_REASONABLE], -theirs)
    return so_far(f"{verdict} at 100", n_runs, _RUNS, of="runs"), figure


def _lead(records: Sequence[Record], theirs: float) -> tuple[str, str]:
    """By the mean over the budgets: a lead of 0 or less is not reproduced."""
    cells: dict[tuple[float, str, int], dict[str, Record]] = {}
    for record in records:
        task = record["task"]
        if task["epsilon"] is not None:
            cell = cells.setdefault((task["epsilon"], task["data"], task["seed"]), {})
            cell[task["options"]["variant"]] = record
    pairs = {key: cell for key, cell in cells.items() if {"dptimefl", "cdpfl"} <= set(cell)}
    if not pairs:
        return NOTHING
    told, leads, whole = [], [], True
    for epsilon in sorted({*_BUDGETS, *(key[0] for key in pairs)}):
        both = [cell for key, cell in pairs.items() if key[0] == epsilon]
        central = [cell["cdpfl"] for cell in both]
        whole &= _sets(central) >= set(FLEET_SETS)
        if both:
            lead = over_sets(
                (c["cdpfl"]["task"]["data"], c["dptimefl"]["accuracy"] - c["cdpfl"]["accuracy"])
                for c in both
            )
            leads.append(lead)
            told.append(f"{lead:+.3f} at {epsilon:g} ({_extent(central)})")
    figure = (
        f"{', '.join(told)}, paper {theirs:+.3f}; the privacy is not the same: CDP-FL's noise "
        "covers a client but for the choice of its clip norm, DP-TimeFL's covers nothing"
    )
    n_runs, every = _counted([cell["cdpfl"] for cell in pairs.values()]), len(_BUDGETS) * _RUNS
    if not whole:  # the budgets would be means over different sets
        return incomplete(n_runs, every, of="pairs of runs"), figure
    mean = float(np.mean(leads))
    verdict = against(mean, theirs) if mean > 0 else "not reproduced"
    return so_far(verdict, n_runs, every, of="pairs of runs"), figure


def _sets(records: Sequence[Record]) -> set[str]:
    return {record["task"]["data"] for record in records} & set(FLEET_SETS)


def _counted(records: Sequence[Record]) -> int:
    """The runs of the sets and seeds that the comparison needs."""
    tasks = [record["task"] for record in records]
    return sum(task["data"] in FLEET_SETS and task["seed"] in _SEEDS for task in tasks)


def _extent(records: Sequence[Record]) -> str:
    sets = sorted({record["task"]["data"] for record in records})
    seeds = len({record["task"]["seed"] for record in records})
    return f"{', '.join(sets)}, {seeds} seed{'s' * (seeds > 1)}"
