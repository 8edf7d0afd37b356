"""One-run audits of whole trainings by name: every client of a fleet is a canary.

Client i holds one generated series with the label 0 or 1, decided by a fair coin; its two
possible data sets are neighbours under replacement, which is the fleet's claim. From the released
model alone the auditor guesses every client's label (`tacit.audit.onerun`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.audit.onerun import audit_training
from tacit.errors import TacitError
from tacit.system.progress import Progress, silent

if TYPE_CHECKING:
    from tacit.audit.engine import AuditResult

# The method pays about 2 * clients * delta; with the usual 1e-5 it could prove nothing.
TRAINING_DELTA = 1e-10
_MECHANISMS = {"privunit-training": "privunit", "distributed-training": "distributed"}
_CLASSES = ("0", "1")
_LENGTH = 64
_N_CLIENTS = 200
_N_ROUNDS = 20
_RIDGE = 0.1  # of the mean squared length of a row


def training_names() -> list[str]:
    """The trainings that can be audited by name."""
    return list(_MECHANISMS)


def audit_fleet(
    name: str,
    *,
    epsilon: float,
    delta: float = TRAINING_DELTA,
    claim: float | None = None,
    confidence: float = 0.999999,
    n_clients: int = _N_CLIENTS,
    n_rounds: int = _N_ROUNDS,
    progress: Progress = silent,
) -> AuditResult:
    """Train a sound fleet once at (epsilon, delta) and test `claim`, or epsilon itself.

    The simulator draws the real randomizers with noise from the operating system; features,
    clients and rounds are as in `tacit train timefl`.
    """
    from tacit.features.feature_map import generated_signals
    from tacit.fleet.learning.head import class_scores, feature_map
    from tacit.fleet.reports.calibration import make_plan
    from tacit.fleet.simulation.fleet import make_fleet
    from tacit.fleet.simulation.simulator import simulate

    if name not in _MECHANISMS:
        raise TacitError(f"there is no training {name!r}; use one of {', '.join(_MECHANISMS)}.")
    rng = np.random.default_rng(0)  # canaries and their order are public; the coins are not
    plan = make_plan(
        classes=_CLASSES,
        n_channels=1,
        length=_LENGTH,
        mechanism=_MECHANISMS[name],
        n_clients=n_clients,
        epsilon=epsilon,
        delta=delta,
        n_rounds=n_rounds,
    )
    rows = feature_map(plan).transform(generated_signals(n_clients, 1, _LENGTH, rng))
    products = rows @ rows.T
    ridge = _RIDGE * np.trace(products) / n_clients
    solver = np.linalg.solve(products + ridge * np.eye(n_clients), rows)

    def train(included: NDArray[np.bool_]) -> NDArray[np.float64]:
        labels = included.astype(np.int64)
        fleet = make_fleet(rows, labels, np.arange(n_clients), n_clients=n_clients, n_classes=2)
        run = simulate(fleet, plan, rng=np.random.default_rng(1), progress=progress)
        scores = class_scores(np.eye(plan.n_features), run.model.average)
        # A head learned from these rows is a sum of them: solve for each client's share of it.
        return np.asarray(solver @ (scores[:, 1] - scores[:, 0]), dtype=np.float64)

    return audit_training(
        train,
        name=name,
        n_canaries=n_clients,
        claimed_epsilon=epsilon if claim is None else claim,
        delta=delta,
        confidence=confidence,
    )
