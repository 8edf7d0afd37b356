"""Records that scripts wrote before their grids became suites, read as records of those suites.

Lines are never edited, so five files of results/current keep the form that their scripts gave
them. A record made here names the task of today's suite that has the same method, data set,
budget, seed and options.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.arena.suites import RELEASE_DRAWS
from tacit.arena.task import Task

Line = Mapping[str, Any]
_VARIANTS: dict[str, dict[str, Any]] = {
    "full": {},
    "hard": {"soft": False},
    "no-moe": {"use_moe": False},
    "uniform": {"attention_guided": False},
}
_SCOPES = {
    "FedST-F": ("federated", "f"),
    "GlobalST-F": ("global", "f"),
    "LocalST-F": ("local", "f"),
    "LocalS+FedT": ("local-search", "f"),
    "FedS+LocalT": ("local-transform", "f"),
    "FedST-IG": ("federated", "ig"),
}
_SOUND_DETAILS = (
    "floor", "ceiling", "clean_accuracy", "expected_accuracy", "hindsight", "draws", "encoder",
    "held_out_accuracy",
)  # fmt: skip
_FLEET_DETAILS = (
    "rounds", "clients", "split", "evaluated_on", "mechanism", "local_epsilon", "stopped",
    "chance", "nominal_delta", "accuracy_per_round", "epsilon_per_round",
    "nominal_delta_per_round", "nominal_epsilon_per_round",
)  # fmt: skip


def earlier_records(folder: Path, suite: str) -> list[dict[str, Any]]:
    """The records of a suite that the folder holds in an earlier form; none if it has no file."""
    if suite == "fedst-contract":
        return contract_records(folder)
    if suite not in _READERS:
        return []
    name, convert = _READERS[suite]
    return [convert(line) for line in read_lines(folder / f"{name}.jsonl")]


def read_lines(path: Path) -> list[dict[str, Any]]:
    """One dictionary per line of a file, none if there is no file."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def contract_records(folder: Path) -> list[dict[str, Any]]:
    """What a script recorded of time contracts, one record a set; it kept no guarantee objects."""
    sets: dict[str, list[Line]] = {}
    for line in read_lines(folder / "silo_contract.jsonl"):
        sets.setdefault(line["data"], []).append(line)
    return [_contract_record(name, lines) for name, lines in sets.items()]


def _contract_record(name: str, lines: list[Line]) -> dict[str, Any]:
    full, again = (line for line in lines if line["contract"] is None)
    contracts = [line for line in lines if line["contract"] is not None]
    task = Task(
        suite="fedst-contract",
        method="fedst-contract",
        data=name,
        options=_options(n_candidates=full["n_candidates"]),
    )
    record = _record(task, full, details=())
    details = {"full": full, "again": again, "contracts": contracts}
    return {**record, "details": details}


def _local_published(line: Line) -> dict[str, Any]:
    task = Task(
        suite="softshape-published",
        method="softshape-published",
        data=line["set"],
        epsilon=line["epsilon"],
        seed=line["seed"],
        options=_options(**_VARIANTS[line["variant"]]),
    )
    return _record(task, line, details=("ceiling",), leakage=line["leakage"])


def _local_sound(line: Line) -> dict[str, Any]:
    task = Task(
        suite="softshape-sound",
        method=f"softshape-{line['release']}",
        data=line["dataset"],
        epsilon=line["epsilon"],
        seed=line["seed"],
        options=_options(draws=RELEASE_DRAWS),
    )
    return _record(task, line, details=_SOUND_DETAILS)


def _silo_accuracy(line: Line) -> dict[str, Any]:
    scope, quality = _SCOPES[line["method"]]
    task = Task(
        suite="fedst-scopes",
        method="fedst",
        data=line["data"],
        seed=line["seed"],
        options=_options(scope=scope, quality=quality, classifier="logistic", engine="twin"),
    )
    return _record(task, line, details=("engine", "classifier"))


def _fleet_sound(line: Line) -> dict[str, Any]:
    options = {"mechanism": line["mechanism"], "split": line["split"], "baselines": True}
    task = Task(
        suite="fleet-sound",
        method="timefl",
        data=line["data"],
        epsilon=8.0,
        seed=line["seed"],
        options=_options(n_clients=line["clients"], **options),
    )
    record = _record(task, line, details=_FLEET_DETAILS, leakage=_linked(line))
    record["details"]["baselines"] = {"fedavg": line["fedavg"]}
    return record


def _options(**options: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(options.items()))


def _linked(line: Line) -> dict[str, float] | None:
    rate = line["reidentification"]
    return None if rate is None else {"reidentification": rate}


def _record(
    task: Task,
    line: Line,
    *,
    details: tuple[str, ...],
    leakage: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    return {
        "task": task.to_dict(),
        "status": "done",
        "accuracy": line["accuracy"],
        "guarantee": line.get("guarantee"),
        "leakage": leakage,
        "details": {key: line[key] for key in details if line.get(key) is not None},
        "seconds": line.get("seconds"),
        "commit": line.get("commit", "unknown"),
        "versions": line.get("versions", {}),
    }


_READERS: dict[str, tuple[str, Callable[[Line], dict[str, Any]]]] = {
    "softshape-published": ("local_published", _local_published),
    "softshape-sound": ("local_sound", _local_sound),
    "fedst-scopes": ("silo_accuracy", _silo_accuracy),
    "fleet-sound": ("fleet_sound", _fleet_sound),
}
EARLIER_SUITES = (*_READERS, "fedst-contract")
