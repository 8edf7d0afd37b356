"""What to expect before training: accuracy by epsilon under the ceiling, odds, devices, costs.

The expected accuracy comes from a quick classifier on at most `MOST_SERIES` training series, held
out one by one; no test series is looked at.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from tacit._version import VERSION
from tacit.data import Dataset
from tacit.local.encoding.body import train_kernels
from tacit.local.releases.channel import accuracy_ceiling, design_channel, label_gain
from tacit.studio.datasets import load_named
from tacit.studio.plans.costs import FLEET_DELTA, fleet_rows, silo_rows
from tacit.studio.workspace import Workspace
from tacit.system.files import write_atomic

EPSILONS = (
    0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0,
    8.0, 10.0,
)  # fmt: skip
MOST_SERIES = 300
_HALF_WIDTH = 0.02
_NORMAL = 1.96  # the 97.5 % quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A row per epsilon, for one data set."""

    data: str
    n_classes: int
    n_used: int
    commonest: float
    rows: list[dict[str, float]]
    fleet: list[dict[str, Any]]
    fleet_delta: float
    silo: list[dict[str, Any]]


def kept_plan(workspace: Workspace, name: str) -> Plan | None:
    """The plan of a data set, if it was computed since the data changed."""
    kept, source = kept_place(workspace, name), workspace.place("data", f"{name}.npz")
    if not kept.exists() or (source.exists() and kept.stat().st_mtime < source.stat().st_mtime):
        return None
    return _read_plan(kept)


def kept_place(workspace: Workspace, name: str) -> Path:
    """Where the plan of a data set is kept."""
    return workspace.place("data", f"{name}.plan.json")


def write_plan(workspace: Workspace, name: str) -> None:
    """Compute the plan of a data set and keep it in the workspace."""
    made = make_plan(load_named(workspace, name))
    plain = {field.name: getattr(made, field.name) for field in fields(made)}
    text = json.dumps({"version": VERSION, **plain})
    write_atomic(kept_place(workspace, name), text.encode())


def _read_plan(path: Path) -> Plan | None:
    """What was computed before; None if another version did it."""
    plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Plan)}
    version = plain.pop("version", None)
    return Plan(**plain) if version == VERSION and plain.keys() == known else None


def make_plan(data: Dataset, *, seed: int = 0) -> Plan:
    """Fit the quick classifier and read the curve off its held-out confusion."""
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(data.y_train, return_inverse=True)
    used = rng.permutation(len(codes))[:MOST_SERIES]
    X, y = data.X_train[used], codes[used]
    body = train_kernels(X, y, n_classes=len(classes), rng=rng)
    gain = label_gain(body.held_out, y)
    prior = np.bincount(codes, minlength=len(classes))
    return Plan(
        data=data.name,
        n_classes=len(classes),
        n_used=len(used),
        commonest=float(prior.max() / prior.sum()),
        rows=[_row(epsilon, gain, prior) for epsilon in EPSILONS],
        fleet=fleet_rows(data, EPSILONS),
        fleet_delta=FLEET_DELTA,
        silo=silo_rows(data),
    )


def _row(epsilon: float, gain: Any, prior: Any) -> dict[str, float]:
    channel = design_channel(gain, epsilon=epsilon)
    n_classes = len(prior)
    return {
        "epsilon": epsilon,
        "expected": float((gain.T * channel.T).sum() / gain.sum()),
        "ceiling": accuracy_ceiling(prior, epsilon=epsilon),
        "odds": math.exp(epsilon),
        "belief": math.exp(epsilon) / (1.0 + math.exp(epsilon)),
        "devices": devices_needed(epsilon, n_classes),
    }


def devices_needed(epsilon: float, n_classes: int) -> float:
    """About how many devices give a class share within 2 points at 95 %, by k-ary response.

    The estimate's variance is l (1 - l) / (n (p - q)^2), where l is the share of the symbol; at
    worst l is one half, or where the symbol cannot be that frequent the most it can be.
    """
    keep = math.exp(epsilon) / (math.exp(epsilon) + n_classes - 1)
    other = (1.0 - keep) / (n_classes - 1)
    share = min(0.5, keep)
    return math.ceil((_NORMAL / _HALF_WIDTH) ** 2 * share * (1.0 - share) / (keep - other) ** 2)
