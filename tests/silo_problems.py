"""A small problem of FedST with three classes, for tests that run whole federations.

Tests that use it with the same number of series in all, and of P0, also share compiled programs.
"""

from __future__ import annotations

import numpy as np

from tacit.silo.fedst.settings import settings_from
from tacit.silo.plan import Plan, default_protocol
from tacit.silo.secure.session import LocalInputs

SMALL = {
    "n_candidates": 10,
    "n_shapelets": 5,
    "classifier": "forest",
    "n_trees": 3,
    "depth": 2,
    "lengths": (5, 9),
}


def owners(*counts: int, length: int = 12, n_channels: int = 1) -> list[LocalInputs]:
    """Every channel holds the same shape of its class, shifted, under noise of its own."""
    rng = np.random.default_rng(1)
    found = []
    for count in counts:
        y = np.arange(count) % 3
        shift = np.sin(np.arange(length) * (1 + y)[:, None])[:, None, :]
        shapes = [np.roll(shift, c, axis=2) for c in range(n_channels)]
        X = rng.normal(size=(count, n_channels, length)) + 2 * np.concatenate(shapes, axis=1)
        found.append(LocalInputs(X=X, y=y.astype(np.intp), private={"seed": 9}))
    return found


def plan_for(inputs: list[LocalInputs], **params: object) -> Plan:
    return Plan(
        program="fedst",
        parties=tuple(f"P{i}" for i in range(len(inputs))),
        protocol=default_protocol(len(inputs)),
        classes=("a", "b", "c"),
        series_length=12,
        n_channels=inputs[0].X.shape[1],
        counts=tuple(len(own.X) for own in inputs),
        params=settings_from(SMALL | params).to_params(),
    )
