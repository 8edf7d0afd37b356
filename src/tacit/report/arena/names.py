"""Plain names of methods for rows and legends: only what tells the settings of a suite apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.arena.statistics import label_of
from tacit.report.arena.tables import Record, renamed

_METHODS = {"timefl": "DP-TimeFL", "fedst": "FedST"}
_VALUES = {
    ("quality", "ig"): "information gain",
    ("quality", "f"): "F",
    ("split", "subject"): "by person",
    ("scope", "global"): "pooled",
    ("scope", "local"): "one owner alone",
    ("scope", "local-search"): "local search",
    ("scope", "local-transform"): "local transform",
    ("total", "True"): "sound input noise",
    ("attention_guided", "False"): "uniform noise",
    ("use_moe", "False"): "no MoE",
    ("soft", "False"): "hard sparsification",
}
_UNITS = {
    "n_clients": "clients",
    "n_candidates": "candidates",
    "n_shapelets": "shapelets",
    "n_train": "training series",
    "steps": "steps",
    "draws": "draws",
    "n_members": "members",
    "n_updates": "updates",
}
_SELF_SAID = ("mechanism", "split", "scope", "classifier")  # their values need no noun


def plainly_named(records: Sequence[Record]) -> list[Record]:
    """The records under names without the options that all records of their method share."""
    names = _names([record["task"] for record in records])
    return [renamed(record, names[label_of(record["task"])]) for record in records]


def _names(tasks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The name of every label; labels that would share a name stay as they are."""
    options: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for task in tasks:
        options[task["method"]][label_of(task)] = task["options"]
    names = {
        label: _name(method, given, _varied(list(found.values())))
        for method, found in options.items()
        for label, given in found.items()
    }
    given_names = list(names.values())
    return {label: name if given_names.count(name) == 1 else label for label, name in names.items()}


def _varied(options: Sequence[Mapping[str, Any]]) -> set[str]:
    """The options that differ between settings of one method."""
    keys = {key for one in options for key in one}
    return {key for key in keys if len({str(one.get(key)) for one in options}) > 1}


def _name(method: str, options: Mapping[str, Any], varied: set[str]) -> str:
    order = [key for key in (*_SELF_SAID, *sorted(options)) if key in varied and key in options]
    words = [_word(key, options[key]) for key in dict.fromkeys(order)]
    return ", ".join([_METHODS.get(method, method), *words])


def _word(key: str, value: Any) -> str:
    if (key, str(value)) in _VALUES:
        return _VALUES[key, str(value)]
    if key in _UNITS:
        return f"{value} {_UNITS[key]}"
    return str(value) if key in _SELF_SAID else f"{key.replace('_', ' ')} {value}"
