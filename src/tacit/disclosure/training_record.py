"""What a training measured, kept beside the model so that a disclosure can quote it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit._version import VERSION
from tacit.errors import BundleError, reason_of
from tacit.system.files import write_atomic

NAME = "training.json"
_KEPT = (
    *("accuracy", "accuracy_interval", "ceiling", "clean_accuracy", "held_out_accuracy"),
    *("data", "evaluated_on", "n_train", "n_test", "split", "clients", "rounds", "seed"),
    *("mode", "release", "mechanism", "warnings"),
)

_RATES = ("accuracy", "ceiling", "clean_accuracy", "held_out_accuracy")
_COUNTS = ("n_train", "n_test", "clients", "rounds", "seed")


def record_path(model: Path) -> Path:
    """In the folder of a bundle; beside a model that is one file."""
    return model / NAME if model.is_dir() else model.with_name(f"{model.name}.{NAME}")


def write_training_record(model: Path, result: Mapping[str, Any]) -> Path:
    """Keep what a training measured; `result` is what its command prints."""
    kept = {key: result[key] for key in _KEPT if result.get(key) is not None}
    path = record_path(model)
    content = json.dumps({"version": VERSION, **kept}, indent=1, allow_nan=False)
    write_atomic(path, content.encode())
    return path


def read_training_record(model: Path) -> dict[str, Any] | None:
    """The record beside a model; None if there is none."""
    path = record_path(model)
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BundleError(
            f"cannot read the training record {path} ({reason_of(error)}); "
            "remove it to disclose without "
            "measured accuracy."
        ) from error
    if not isinstance(record, dict) or not _is_plausible(record):
        raise BundleError(f"{path} is not a training record; remove it, or train again.")
    return record


def _is_plausible(record: Mapping[str, Any]) -> bool:
    """Whether rates lie in [0, 1], counts are whole numbers, and texts are texts."""
    interval = record.get("accuracy_interval", {"low": 0.0, "high": 1.0})
    if not isinstance(interval, dict):
        return False
    rates = [record.get(key, 0.0) for key in _RATES] + [interval.get("low"), interval.get("high")]
    counts = [record.get(key, 0) for key in _COUNTS]
    warnings = record.get("warnings", [])
    return (
        all(type(rate) in (int, float) and 0.0 <= rate <= 1.0 for rate in rates)
        and all(type(count) is int and count >= 0 for count in counts)
        and isinstance(warnings, list)
        and all(isinstance(text, str) for text in warnings)
    )
