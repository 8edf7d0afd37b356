"""Plan the next run of a fleet after the last one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tacit.errors import TacitError
from tacit.fleet.deployment.config import RunDescription, read_run
from tacit.fleet.deployment.setup import check_batch_size
from tacit.fleet.learning.learner import Learner
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import report_of
from tacit.system.toml import write_toml

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """What changes from the last run; None keeps its value."""

    rounds: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    n_min: int | None = None
    most_nodes: int | None = None
    round_seconds: float | None = None
    analyser_key: str | None = None
    shuffler_key: str | None = None


def plan_next(folder: Path, asked: NextRun) -> RunDescription:
    """The next run after the one whose plan lies in `folder`."""
    last = read_run(folder / "plan.toml")
    most = _or(asked.most_nodes, last.most_nodes)
    plan = make_plan(
        classes=last.plan.classes,
        n_channels=last.plan.n_channels,
        length=last.plan.length,
        mechanism=last.plan.mechanism,
        n_clients=most,
        epsilon=_or(asked.epsilon, last.plan.epsilon),
        delta=_or(asked.delta, last.plan.delta),
        n_rounds=_or(asked.rounds, last.plan.n_rounds),
        n_min=_or(asked.n_min, last.plan.n_min),
        n_kernels=last.plan.n_kernels,
    )
    check_batch_size(report_of(plan), most)
    written = report_of(plan).plan_for_files()
    return RunDescription(
        run=secrets.token_hex(8),
        round_seconds=_or(asked.round_seconds, last.round_seconds),
        analyser_key=_or(asked.analyser_key, last.analyser_key),
        shuffler_key=_or(asked.shuffler_key, last.shuffler_key),
        plan=written,
        most_nodes=most,
        node_costs=Learner(written).node_costs(),
    )


def write_next(path: Path, fleet: RunDescription) -> None:
    """Write a plan file that is not there yet."""
    if path.exists():
        raise TacitError(f"{path} is there already; choose another name.")
    write_toml(path, fleet.to_plain())


def _or(value: _T | None, otherwise: _T) -> _T:
    return otherwise if value is None else value
