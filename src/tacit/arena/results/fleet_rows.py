"""Records of the fleet suites as the flat rows that the fleet's page draws."""

from __future__ import annotations

from typing import Any

from tacit.arena.results.tables import Record, Results

Row = dict[str, Any]


def fleet_rows(results: Results) -> tuple[list[Row], list[Row]]:
    """The rows of `fleet-published` and those of `fleet-sound`."""
    published = [_published_row(record) for record in results.suite("fleet-published")]
    return published, [_sound_row(record) for record in results.suite("fleet-sound")]


def _published_row(record: Record) -> Row:
    task = record["task"]
    named = {"method": task["options"]["variant"], "nominal_epsilon": task["epsilon"]}
    if task["options"]["preset"] == "paper":
        named["data"] = f"{task['data']} (paper preset)"
    return {**_common(record), **named}


def _sound_row(record: Record) -> Row:
    options = record["task"]["options"]
    chance = 1.0 / options["n_clients"]
    named = {"split": options["split"], "mechanism": options["mechanism"], "chance": chance}
    return {**_common(record), **named, "fedavg": record["details"]["baselines"]["fedavg"]}


def _common(record: Record) -> Row:
    task = record["task"]
    return {
        **record["details"],
        "data": task["data"],
        "clients": task["options"]["n_clients"],
        "seed": task["seed"],
        "accuracy": record["accuracy"],
        "guarantee": record["guarantee"],
        "reidentification": (record["leakage"] or {}).get("reidentification"),
    }
