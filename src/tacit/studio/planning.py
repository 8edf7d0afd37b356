"""What to expect before training: accuracy by epsilon under the ceiling, odds, and devices.

The expected accuracy comes from a quick classifier on at most `MOST_SERIES` training series, held
out one by one; no test series is looked at.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data import Dataset
from tacit.local.encoding.body import train_kernels
from tacit.local.releases.channel import accuracy_ceiling, design_channel, label_gain
from tacit.studio.datasets import load_named
from tacit.studio.workspace import Workspace
from tacit.system.files import write_atomic

EPSILONS = tuple(round(float(value), 3) for value in np.geomspace(0.1, 10.0, 25))
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


def plan_for(workspace: Workspace, name: str) -> Plan:
    """The plan of a data set, computed once and kept in the workspace."""
    kept = workspace.place("data", f"{name}.plan.json")
    source = workspace.place("data", f"{name}.npz")
    if kept.exists() and (not source.exists() or kept.stat().st_mtime >= source.stat().st_mtime):
        return Plan(**json.loads(kept.read_text(encoding="utf-8")))
    made = make_plan(load_named(workspace, name))
    plain: dict[str, Any] = {
        field: getattr(made, field)
        for field in ("data", "n_classes", "n_used", "commonest", "rows")
    }
    write_atomic(kept, json.dumps(plain).encode())
    return made


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
