"""Rivals of the sound fleet stand beside it on the sets and seeds that both have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tacit.arena.fleet.suites import FLEET_RIVALS
from tacit.arena.results.fleet_rivals import fleet_rivals
from tacit.arena.results.records import Results
from tacit.arena.suites import suite_tasks

CURRENT = Path(__file__).parents[3] / "results" / "current"


def run(
    method: str, accuracy: float, *, data: str = "WISDM", seed: int = 0, **more: Any
) -> dict[str, Any]:
    ours = method in ("distributed", "privunit")
    options = {"n_clients": 100, "split": "iid", **({"mechanism": method} if ours else {})}
    task = {
        "suite": more.get("suite", "fleet-rivals"), "method": "timefl" if ours else method,
        "data": data, "epsilon": 8.0, "seed": seed, "options": options,
    }  # fmt: skip
    details = {"baselines": more["baselines"]} if "baselines" in more else {}
    return {
        "task": task, "status": "done", "commit": "abc", "accuracy": accuracy, "details": details
    }  # fmt: skip


def rows(folder: Path, records: list[dict[str, Any]]) -> list[str]:
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "results.jsonl").write_text(text)
    return fleet_rivals(Results(folder)).splitlines()[2:]


def test_only_runs_that_both_have_are_compared(tmp_path: Path) -> None:
    records = [
        run("distributed", 0.9, suite="fleet-breadth"),
        run("distributed", 0.7, seed=1),
        run("distributed", 0.1, data="HHAR"),
        run("dp-fedavg", 0.8),
        run("dp-fedavg", 0.8, seed=1),
        run("dp-fedavg", 0.99, data="UCIHAR"),
    ]
    name = "DP-FedAvg, trusted server"
    assert rows(tmp_path, records) == [
        f"| iid | 100 | 8 | {name} | 0.800 ± 0.000 | 0.800 ± 0.141 | +0.000 | 1 | 2 |"
    ]


def test_what_ran_beside_a_fleet_has_a_row_and_what_did_not_run_has_none(tmp_path: Path) -> None:
    records = [run("distributed", 0.9, baselines={"central_dp": 0.95, "fedavg": 0.99})]
    assert rows(tmp_path, records) == [
        "| iid | 100 | 8 | central DP of the same fleet | 0.950 | 0.900 | -0.050 | 1 | 1 |"
    ]


def test_every_recorded_rival_has_its_rows() -> None:
    """No method of the suite is without a name in the table."""
    results = Results(CURRENT)
    shown = fleet_rivals(results)
    ran = {(r["task"]["method"], *cell_of(r["task"])) for r in results.suite("fleet-rivals")}
    rivals = {cell for cell in ran if cell[0] in FLEET_RIVALS}
    assert shown.count("trusted server |") + shown.count("Flower, local noise |") == len(rivals)
    methods = {task.method for task in suite_tasks("fleet-rivals")}
    assert methods == {"timefl", *FLEET_RIVALS}


def cell_of(task: Any) -> tuple[Any, ...]:
    return task["options"]["split"], task["options"]["n_clients"], task["epsilon"]
