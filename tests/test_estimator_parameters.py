"""Wrong types of an estimator's parameters: one sentence that names parameter and value."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import tacit
from contract import toy_problem
from tacit.errors import TacitError

# Complete and small, so that the one bad value is what gets refused.
ESTIMATORS: dict[str, dict[str, Any]] = {
    "DPSoftShapeClassifier": {},
    "FedSTClassifier": {"scope": "local", "n_candidates": 5, "n_shapelets": 2},
    "DPTimeFLClassifier": {"n_clients": 8, "n_rounds": 1, "n_kernels": 20},
    "DPHybridClassifier": {"n_clients": 8, "n_rounds": 1, "n_kernels": 20},
}
# Any path is fine, and so is anything that can be called.
NOT_CHECKED = {"progress", "ledger"}
BAD = ("3", "nonsense", [None], {"a"}, object())
# Text is what these parameters take; "3" is then a name that nobody knows, or a path.
FINE = {("checkpoint", "3"), ("checkpoint", "nonsense")}


def parameters(name: str) -> dict[str, Any]:
    signature = inspect.signature(getattr(tacit, name).__init__)
    found = {key: value.default for key, value in signature.parameters.items()}
    return {key: found[key] for key in found if key not in {"self", *NOT_CHECKED}}


def cases() -> Iterator[Any]:
    for name in ESTIMATORS:
        marks = [pytest.mark.silo] if name == "FedSTClassifier" else []
        for parameter in parameters(name):
            for bad in BAD:
                if not (isinstance(bad, str) and (parameter, bad) in FINE):
                    shown = type(bad).__name__ if not isinstance(bad, str) else bad
                    label = f"{name} {parameter} {shown}"
                    yield pytest.param(name, parameter, bad, id=label, marks=marks)


@pytest.mark.parametrize(("name", "parameter", "bad"), list(cases()))
def test_a_wrong_type_is_refused_in_one_sentence(name: str, parameter: str, bad: Any) -> None:
    X, y = toy_problem()
    classifier = getattr(tacit, name)(**{**ESTIMATORS[name], parameter: bad})
    with pytest.raises(TacitError, match=parameter) as refused:
        classifier.fit(X, y)
    told = str(refused.value)
    assert repr(bad) in told or (isinstance(bad, list) and f"got {bad[0]!r}" in told)
    assert told.endswith(".")
    assert "\n" not in told


@pytest.mark.parametrize("name", ESTIMATORS)
def test_true_is_not_a_number(name: str) -> None:
    """A slip that Python would take for 1; switches take it, paths and names refuse it."""
    X, y = toy_problem()
    for parameter, default in parameters(name).items():
        if isinstance(default, bool) or parameter in {"features", "lengths"}:
            continue
        classifier = getattr(tacit, name)(**{**ESTIMATORS[name], parameter: True})
        with pytest.raises(TacitError, match="True"):
            classifier.fit(X, y)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "FedSTClassifier"])
def test_the_values_here_are_good_ones(name: str) -> None:
    """Else all would be refused for another reason; FedST compiles for seconds and is left out."""
    X, y = toy_problem()
    more = {"n_clients": 24} if "n_clients" in ESTIMATORS[name] else {}
    getattr(tacit, name)(**{**ESTIMATORS[name], **more}).fit(X, y)
