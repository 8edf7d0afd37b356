"""Ways to one client-level guarantee: each beside `distributed` on the same sets and seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tacit.arena.fleet.suites import EPSILONS, SPLITS
from tacit.arena.results.tables import Record, Results, Value, mean_of, over_sets, table

_OURS = "distributed"
_CLIENTS = (100, 1000)
_NAMES = {
    "privunit": "privunit",
    "central_dp": "central DP of the same fleet",
    "dp-fedavg": "DP-FedAvg, trusted server",
    "client-dpsgd": "DP-SGD by client, trusted server",
    "flower-fixed": "Flower, fixed clipping, trusted server",
    "flower-adaptive": "Flower, adaptive clipping, trusted server",
    "flower-local": "Flower, local noise",
}
_Cell = tuple[str, int, float]  # split, clients, epsilon


def fleet_rivals(results: Results) -> str:
    """One row for each method and cell that is recorded, over the runs that both have."""
    found = _accuracies(results)
    rows = []
    for split in SPLITS:
        for clients in _CLIENTS:
            for epsilon in EPSILONS:
                cell = found.get((split, clients, epsilon), {})
                ours = cell.get(_OURS, {})
                for method, name in _NAMES.items():
                    mine = cell.get(method, {})
                    both = sorted(mine.keys() & ours.keys())
                    if both:
                        head = (split, clients, f"{epsilon:g}", name)
                        rows.append((*head, *_numbers(mine, ours, both)))
    columns = (
        "split", "clients", "epsilon", "method", "accuracy", "distributed, same runs",
        "distributed minus it", "sets", "runs",
    )  # fmt: skip
    return table(columns, rows)


_Runs = dict[tuple[str, int], float]  # data set and seed


def _numbers(mine: _Runs, ours: _Runs, both: list[tuple[str, int]]) -> tuple[Any, ...]:
    def values(of: Callable[[tuple[str, int]], float]) -> list[Value]:
        return [(*run, of(run)) for run in both]

    gap = over_sets((run[0], ours[run] - mine[run]) for run in both)
    shown = (mean_of(values(mine.__getitem__)), mean_of(values(ours.__getitem__)))
    return *shown, f"{round(gap, 3) + 0.0:+.3f}", len({name for name, _ in both}), len(both)


def _accuracies(results: Results) -> dict[_Cell, dict[str, _Runs]]:
    """By cell and method the accuracies; `fleet-rivals` counts where `fleet-breadth` has it too."""
    found: dict[_Cell, dict[str, _Runs]] = defaultdict(lambda: defaultdict(dict))
    for suite in ("fleet-breadth", "fleet-rivals"):
        for record in results.suite(suite):
            task, options = record["task"], record["task"]["options"]
            cell = found[options["split"], options["n_clients"], task["epsilon"]]
            run = (task["data"], task["seed"])
            cell[_method(record)][run] = record["accuracy"]
            central = record["details"].get("baselines", {}).get("central_dp")
            if central is not None:
                cell["central_dp"][run] = central
    return found


def _method(record: Record) -> str:
    task = record["task"]
    ours = task["method"] == "timefl"
    return str(task["options"]["mechanism"] if ours else task["method"])


RIVAL_TABLES: dict[str, Callable[[Results], str]] = {"fleet-rivals": fleet_rivals}
