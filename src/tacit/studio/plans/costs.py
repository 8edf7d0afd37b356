"""What a fleet or a silo would cost on one data set, before anybody is asked to take part.

Fleet: the calibration that a real run uses. Its noise falls with the number of clients, so one
calibration tells for every number. Silo: traffic and time by the sizes that are public in a plan;
the coefficients were fitted to results/current/silo_speed_ridge.jsonl (three parties, ridge
regression, two cores) and hold for those runs within half as much again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tacit.data import Dataset
from tacit.errors import TacitError
from tacit.guarantee import rounded_up

_CALIBRATED_AT = 1000  # clients; noise beside the sum falls as one over their number
FLEET_DELTA = 1e-5  # as estimators have it when nothing is said
_QUIET = 0.015  # noise per coordinate from which on plans train as if there were little
_SHARE_BYTES = 4  # a share is a number modulo 2**32
# (candidates, shapelets): a try, the default, a thorough search.
SILO_SIZES = ((100, 20), (500, 200), (2000, 200))
_SECONDS_BETWEEN = 0.02  # a round trip between cities
_ROUNDS = 820
_START_SECONDS = 3.0
_SECONDS_PER_BYTE = 2.2e-8


def fleet_rows(data: Dataset, epsilons: Sequence[float]) -> list[dict[str, Any]]:
    """Per total epsilon of a client: how many clients make the noise small, rounds and bytes.

    `clients` is None where the budget is too small for the numbers that clients send.
    """
    return [_fleet_row(data, epsilon) for epsilon in epsilons]


def _fleet_row(data: Dataset, epsilon: float) -> dict[str, Any]:
    from tacit.fleet.reports.calibration import default_rounds, make_plan, run_noise
    from tacit.fleet.reports.mechanisms import report_of

    rounds = default_rounds(mechanism="distributed", n_clients=_CALIBRATED_AT)
    try:
        plan = make_plan(
            classes=tuple(data.classes), n_channels=data.channels, length=data.length,
            mechanism="distributed", n_clients=_CALIBRATED_AT, epsilon=epsilon, delta=FLEET_DELTA,
            n_rounds=rounds,
        )  # fmt: skip
    except TacitError:
        return {"epsilon": epsilon, "clients": None, "rounds": rounds, "kilobytes": None}
    noise = run_noise(report_of(plan).noise_norm(), plan)
    return {
        "epsilon": epsilon,
        "clients": two_digits(noise * _CALIBRATED_AT / _QUIET),
        "rounds": rounds,
        "kilobytes": math.ceil(2 * _SHARE_BYTES * plan.dimension / 1000),
    }


def silo_rows(data: Dataset) -> list[dict[str, Any]]:
    """Per size of the search: what the initiator sends, and how long it takes near and far."""
    rows = []
    for candidates, shapelets in SILO_SIZES:
        sent = silo_bytes(
            n_series=len(data.y_train), length=data.length, candidates=candidates,
            shapelets=shapelets,
        )  # fmt: skip
        near = _START_SECONDS + _SECONDS_PER_BYTE * sent
        rows.append({
            "candidates": candidates,
            "shapelets": shapelets,
            "megabytes": sent / 1e6,
            "near_seconds": near,
            "far_seconds": near + _ROUNDS * _SECONDS_BETWEEN,
        })  # fmt: skip
    return rows


def silo_bytes(*, n_series: int, length: int, candidates: int, shapelets: int) -> float:
    """What the initiator of three sends: distances of all candidates, then the classifier."""
    distances = n_series * candidates * (6.3 * length + 130.0)
    return distances + 355.0 * n_series * shapelets


def two_digits(value: float) -> int:
    """Rounded up to two digits: an estimate should not look like a count."""
    return max(2, math.ceil(float(rounded_up(value, digits=2))))
