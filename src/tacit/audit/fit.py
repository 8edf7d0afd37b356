"""Do the runs of a mechanism follow the law that it states?

Every cell is compared with its probability by an exact binomial test, and the false alarm is split
over all cells: a mechanism that follows its law is called a misfit with probability at most
`false_alarm`, whatever the cells. An output that the law rules out needs no test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from tacit.arrays import Floats
from tacit.audit.bounds import POWER, Claim
from tacit.audit.laws import Event, Input, Law, View

_CHUNK = 2**21  # numbers held at a time


@dataclass(frozen=True, slots=True)
class Fit:
    """The first cell that does not fit, and what the comparison would have noticed."""

    misfit: str | None
    runs: int  # of each input
    detectable_epsilon: float
    detectable_event: float


def check_fit(
    law: Law,
    outputs_of: Callable[[Input, int], Floats],
    inputs: Sequence[Input],
    *,
    event: Event,
    claim: Claim,
    runs: int,
    false_alarm: float,
) -> Fit:
    """Compare `runs` runs of each input with the law; the first two inputs are those of `event`."""
    views: list[View] = []
    misfit = None
    for number, x in enumerate(inputs):
        likely = (event.tpr, event.fpr)[number] if number < 2 else None
        found, impossible = _tally(law, outputs_of, x, runs, event, likely)
        views += found
        if impossible and misfit is None:
            misfit = f"{impossible} of {runs} outputs are impossible under the stated law"
    level = false_alarm / (2 * sum(view.counts.size for view in views))
    misfit = misfit or next(filter(None, (_misfit(view, level) for view in views)), None)
    up, down = _noticed_above(event.tpr, runs, level), _noticed_below(event.fpr, runs, level)
    return Fit(
        misfit,
        runs,
        claim.epsilon_for(up, down) if down > 0.0 else math.inf,
        1.0 - (1.0 - POWER) ** (1.0 / runs),
    )


def _tally(
    law: Law,
    outputs_of: Callable[[Input, int], Floats],
    x: Input,
    runs: int,
    event: Event,
    likely: float | None,
) -> tuple[list[View], int]:
    """Views of all runs of x, made in parts, and the number of impossible outputs."""
    chunk = max(1, _CHUNK // outputs_of(x, 1).shape[1])
    views: list[View] = []
    impossible = 0
    for start in range(0, runs, chunk):
        outputs = outputs_of(x, min(chunk, runs - start))
        impossible += law.impossible(x, outputs)
        found = law.views(x, outputs)
        if likely is not None:
            hits = int(np.count_nonzero(event.contains(outputs)))
            counts = np.array([hits, len(outputs) - hits])
            found.append(View("the worst event", counts, np.array([likely, 1.0 - likely])))
        views = found if not views else [_added(a, b) for a, b in zip(views, found, strict=True)]
    return views, impossible


def _added(first: View, second: View) -> View:
    return View(first.name, first.counts + second.counts, first.probabilities)


def _misfit(view: View, level: float) -> str | None:
    """The worst cell of a view if its count is too unlikely."""
    runs = int(view.counts.sum())
    p = np.clip(view.probabilities, 0.0, 1.0)
    either = np.minimum(
        stats.binom.cdf(view.counts, runs, p), stats.binom.sf(view.counts - 1, runs, p)
    )
    worst = int(np.argmin(either))
    if either[worst] >= level:
        return None
    return (
        f"{view.name}: cell {worst} holds {view.counts[worst] / runs:.6g} of {runs} runs instead "
        f"of {p[worst]:.6g}"
    )


def _noticed_above(p: float, runs: int, level: float) -> float:
    """The least probability above p that would be noticed with 95 % power."""
    least = int(stats.binom.isf(level, runs, p)) + 1
    return 1.0 if least > runs else float(special.betaincinv(least, runs - least + 1, POWER))


def _noticed_below(p: float, runs: int, level: float) -> float:
    """The largest probability below p that would be noticed with 95 % power; 0 if none is."""
    most = int(stats.binom.ppf(level, runs, p)) - 1
    return 0.0 if most < 0 else float(special.betaincinv(most + 1, runs - most, 1.0 - POWER))
