"""FedST's methods under the paper's names, and pairs of secure and twin runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]
PAPER_METHODS = ("FedST", "GlobalST", "LocalST", "LocalS+FedT", "FedS+LocalT")
_SCOPES = dict(
    zip(
        ("federated", "global", "local", "local-search", "local-transform"),
        PAPER_METHODS,
        strict=True,
    )
)


def method_name(options: Mapping[str, Any]) -> str:
    """ "FedST" is information gain with a forest, "FedST-F" F with a forest.

    Where the kinds of features are compared, these are the name.
    """
    if "features" in options:
        kind = options["features"]
        return f"{kind}, {options.get('n_shapelets', 300 if kind == 'all' else 200)} kept"
    scope = _SCOPES[options.get("scope", "federated")]
    kind = (options.get("quality", "f"), options.get("classifier", "ridge"))
    ends = {("ig", "forest"): "", ("f", "forest"): "-F", ("f", "ridge"): ", default"}
    return scope + ends.get(kind, f", {kind[0]} and {kind[1]}")


def secure_pairs(records: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Every secure run with the twin of the same set, seed and options."""
    twins = {_cell(r): r for r in records if _is_twin(r)}
    return [
        (record, twins[_cell(record)])
        for record in records
        if not _is_twin(record) and _cell(record) in twins
    ]


def shared_shapelets(secure: Record, twin: Record) -> tuple[int, int]:
    """How many of the secure run's shapelets the twin chose too, and how many there are."""
    mine, theirs = (set(r["details"]["shapelets"].split()) for r in (secure, twin))
    return len(mine & theirs), len(mine)


def _is_twin(record: Record) -> bool:
    return bool(record["task"]["options"].get("engine") == "twin")


def _cell(record: Record) -> tuple[Any, ...]:
    task = record["task"]
    options = {key: value for key, value in task["options"].items() if key != "engine"}
    return task["data"], task["seed"], tuple(sorted(options.items()))
