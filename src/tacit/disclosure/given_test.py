"""A measured accuracy for models that no training recorded: what 'classify --json' printed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.disclosure.evidence import Evidence
from tacit.errors import BundleError
from tacit.guarantee import from_dict


def with_test(evidence: Evidence, path: Path) -> Evidence:
    """The evidence with the accuracy of a test; it must be one of a model with this guarantee."""
    if evidence.record is not None:
        raise BundleError(
            f"the training of this model has a record, {evidence.record_source}; leave --tested "
            "out, or remove the record."
        )
    found = _read(path)
    if from_dict(found["guarantee"]) != evidence.main:
        raise BundleError(
            f"{path} is a test of a model with another guarantee; classify with this one."
        )
    record = {"accuracy": found["accuracy"], "n_test": len(found["labels"]), "computed": ["n_test"]}
    return replace(evidence, record=record, record_source=path.name)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        accuracy = found["accuracy"]
        fits = isinstance(found["labels"], list) and isinstance(found["guarantee"], dict)
    except OSError as error:
        raise BundleError(f"cannot read {path}: {error.strerror}; check the path.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _no_test(path) from error
    if accuracy is None:
        raise BundleError(f"{path} has no accuracy: its series had no labels; test with labels.")
    if not fits or type(accuracy) not in (int, float) or not 0.0 <= accuracy <= 1.0:
        raise _no_test(path)
    return dict(found)


def _no_test(path: Path) -> BundleError:
    return BundleError(
        f"{path} is no test; write one with 'tacit silo classify' or 'tacit fleet classify', "
        "--json, on series with labels."
    )
