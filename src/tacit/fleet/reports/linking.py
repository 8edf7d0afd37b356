"""How often shuffled reports can be joined again to the clients that sent them.

The attacker is the server of the paper: it sees every report of a round in shuffled order and
knows, from elsewhere, about what each client's update looks like. It assigns reports to clients so
that the total correlation is largest. A sound report leaves it near what its local epsilon allows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.reports.protocol import Report
from tacit.noise import SYSTEM_NOISE, NoiseSource, permutation


def reidentification_rate(reports: Floats, references: Floats, senders: NDArray[np.int64]) -> float:
    """Share of reports that the best assignment joins to the client that sent them.

    `reports` (n, d) in shuffled order, `references` (n, d) one clean update per client, and
    `senders` the true client of every report, used only to score. Chance is 1/n.
    """
    guessed = link_reports(reports, references)
    return float(np.mean(guessed == np.asarray(senders)))


def sound_rate(
    directions: Floats, report: Report, *, source: NoiseSource = SYSTEM_NOISE
) -> float | None:
    """The same attack on one round of sound reports, knowing every clean direction.

    Chance is 1/n, and the local epsilon bounds how far above it any attack can get. None where
    nobody sees a single report.
    """
    if not report.shows_single_reports:
        return None
    reports = np.asarray(report.randomize(directions, source=source), dtype=np.float64)
    senders = permutation(len(reports), source=source)
    return reidentification_rate(reports[senders], directions, senders)


def link_reports(reports: Floats, references: Floats) -> NDArray[np.int64]:
    """The client guessed for every report: the assignment of largest total correlation."""
    from scipy.optimize import linear_sum_assignment

    if reports.ndim != 2 or reports.shape != references.shape or len(reports) < 2:
        raise TacitError(
            f"linking needs as many reports as references, at least two, of one length; got "
            f"shapes {reports.shape} and {references.shape}."
        )
    # What all clients share says nothing about who sent what: it is taken out first.
    likeness = _unit(reports - reports.mean(axis=0)) @ _unit(references - references.mean(axis=0)).T
    rows, columns = linear_sum_assignment(-likeness)
    guessed = np.empty(len(reports), dtype=np.int64)
    guessed[rows] = columns
    return guessed


def _unit(rows: Floats) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.where(norms > 0.0, norms, 1.0)
    return unit
