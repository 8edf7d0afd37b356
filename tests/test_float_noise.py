"""No release reaches the float64 samplers, whose last bits give the value away."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import noise
from tacit.audit import build, mechanism_names
from tacit.errors import TacitError

PACKAGE = Path(__file__).parent.parent / "src" / "tacit"
SAMPLERS = ("float_laplace", "float_gaussian")
# Who may: published mechanisms that state no epsilon, methods to compare with, audits and attacks,
# and the simulator's sum of more reports than it draws one by one, which states no guarantee then.
ALLOWED = {
    "arena/fleet/rivals.py",
    "arena/rivals.py",
    "audit/bundles.py",
    "audit/registry.py",
    "audit/shuffled.py",
    "fleet/published/perturbation.py",
    "fleet/published/training.py",
    "fleet/reports/privunit_sum.py",
    "fleet/simulation/baselines.py",
    "local/softshape/leakage.py",
    "local/softshape/network.py",
}
# An audit that draws the other clients' noise at once, on their side of the sum; and releases of a
# model, which takes seconds to train: they go through the channels and vectors that are here.
NOT_RUN = {"fleet-distributed", "local-label", "local-place", "local-vector", "local-shapes"}


def named(source: str) -> set[str]:
    """Float samplers that this source mentions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute | ast.Name):
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            found |= {name} & {*SAMPLERS}
        elif isinstance(node, ast.alias):
            found |= {node.name} & {*SAMPLERS}
    return found


def test_only_what_is_compared_with_names_a_float_sampler() -> None:
    sources = {file: file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py")}
    found = {
        str(file.relative_to(PACKAGE))
        for file, source in sources.items()
        if "float_" in source and named(source)
    }
    spelt = {
        str(file.relative_to(PACKAGE))
        for file, source in sources.items()
        if re.search(r"\bfloat_(laplace|gaussian)\b", source)
    }
    assert found == spelt - {"noise.py"} == ALLOWED


def test_the_check_notices() -> None:
    assert named("from tacit.noise import float_laplace")
    assert named("x = noise.float_gaussian((3,), sigma=1.0, source=s)")
    assert not named("from tacit.noise import discrete_laplace")


def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every module that holds a float sampler refuse to draw from it."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise TacitError("float noise was drawn")

    for name in SAMPLERS:
        for module in [m for key, m in sys.modules.items() if key.startswith("tacit")]:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, refuse)


@pytest.mark.parametrize("name", sorted({*mechanism_names()} - NOT_RUN))
def test_a_mechanism_that_states_an_epsilon_draws_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited = build(name)
    poison(monkeypatch)
    assert np.all(np.isfinite(audited.run(audited.pairs[0][0], 50)))


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_a_report_of_a_fleet_draws_none(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.fleet.learning.learner import Learner
    from tacit.fleet.reports.calibration import make_plan

    plan = make_plan(
        classes=("a", "b"), n_channels=1, length=32, mechanism=mechanism, n_clients=20,
        epsilon=8.0, n_rounds=2, n_kernels=2,
    )  # fmt: skip
    learner = Learner(plan)
    poison(monkeypatch)
    X = np.random.default_rng(0).normal(size=(4, 1, 32))
    parts = learner.report(learner.initial(), X, np.array(["a", "b", "a", "b"]))
    assert len(parts.analyser) == learner.message_bytes


def test_the_poison_works(monkeypatch: pytest.MonkeyPatch) -> None:
    poison(monkeypatch)
    with pytest.raises(TacitError, match="float noise was drawn"):
        build("float-laplace").run(0.0, 5)
    with pytest.raises(TacitError, match="float noise was drawn"):
        noise.float_gaussian((1,), sigma=1.0, source=noise.SYSTEM_NOISE)
