"""Learn, from runs on x and on x', a test that tells the two apart.

The log-likelihood ratio is the best test statistic there is, so it is what gets learned: by
histogram for one number, and for vectors by the better of two ways down to one number, the sum of
the coordinates' own log ratios and a linear discriminant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.audit.bounds import Claim, proportion_above, proportion_below

Score = Callable[[Floats], Floats]

_BINS = 64


@dataclass(frozen=True, slots=True)
class Detector:
    """Says "x" where the learned statistic exceeds its threshold; `swapped`: says it of x'."""

    score: Score
    edges: Floats
    positive_bins: NDArray[np.bool_]
    swapped: bool
    promise: float

    def hits(self, outputs: Floats) -> int:
        """How many of these outputs the test takes for the positive input."""
        bins = np.searchsorted(self.edges, self.score(outputs), side="right")
        return int(np.count_nonzero(self.positive_bins[bins]))


def learn_detector(first: Floats, second: Floats, *, claim: Claim, false_alarm: float) -> Detector:
    """The detector that would give the largest bound on the part of the runs kept for choosing.

    Using the confidence bound there, not the raw rates, keeps lucky thresholds in a tail away.
    """
    fit_first, choose_first = _halves(first)
    fit_second, choose_second = _halves(second)
    detectors = []
    for score in _scores(fit_first, fit_second):
        fits = [score(fit_first), score(fit_second)]
        chooses = [score(choose_first), score(choose_second)]
        for swapped in (False, True):
            edges, order = _learn_order(*fits)
            cut, promise = _best_cut(edges, order, *chooses, claim=claim, false_alarm=false_alarm)
            positive_bins = np.zeros(order.size, dtype=bool)
            positive_bins[order[:cut]] = True
            detectors.append(Detector(score, edges, positive_bins, swapped, promise))
            fits.reverse()
            chooses.reverse()
    return max(detectors, key=lambda detector: detector.promise)


def _learn_order(positive: Floats, negative: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Bins of the score, and their order from the most to the least typical of `positive`."""
    edges = _edges(np.concatenate([positive, negative]))
    return edges, np.argsort(-_log_ratio(edges, positive, negative), kind="stable")


def _best_cut(
    edges: Floats,
    order: NDArray[np.intp],
    positive: Floats,
    negative: Floats,
    *,
    claim: Claim,
    false_alarm: float,
) -> tuple[int, float]:
    """How many bins to call positive, and the bound that these runs give."""
    hits = np.cumsum(_histogram(edges, positive)[order]).tolist()
    alarms = np.cumsum(_histogram(edges, negative)[order]).tolist()
    best, promise = 1, 0.0
    for cut in range(1, order.size):
        low = proportion_above(hits[cut - 1], positive.size, false_alarm=false_alarm)
        high = proportion_below(alarms[cut - 1], negative.size, false_alarm=false_alarm)
        bound = claim.epsilon_for(low, high)
        if bound > promise:
            best, promise = cut, bound
    return best, promise


def _scores(first: Floats, second: Floats) -> list[Score]:
    """Ways to one number, learned from these runs."""
    if first.shape[1] == 1:
        return [lambda outputs: outputs[:, 0]]
    return [_naive_bayes(first, second), _discriminant(first, second)]


def _naive_bayes(first: Floats, second: Floats) -> Score:
    """The sum over coordinates of histogram log ratios: exact if noise is independent."""
    tables = []
    for a, b in zip(first.T, second.T, strict=True):
        edges = _edges(np.concatenate([a, b]))
        tables.append((edges, _log_ratio(edges, a, b)))

    def score(outputs: Floats) -> Floats:
        total = np.zeros(len(outputs))
        for column, (edges, ratio) in zip(outputs.T, tables, strict=True):
            total += ratio[np.searchsorted(edges, column, side="right")]
        return total

    return score


def _discriminant(first: Floats, second: Floats) -> Score:
    """Fisher's direction, with a ridge so that constant coordinates do no harm."""
    centre = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    spread = centre.T @ centre / len(centre)
    ridge = 1e-3 * np.trace(spread) / len(spread) + 1e-300
    difference = first.mean(axis=0) - second.mean(axis=0)
    direction = np.linalg.solve(spread + ridge * np.eye(len(spread)), difference)
    return lambda outputs: np.asarray(outputs @ direction)


def _edges(values: Floats) -> Floats:
    """Bin edges: between the values if they are few, else at quantiles."""
    distinct = np.unique(values)
    if distinct.size <= _BINS:
        return np.asarray((distinct[1:] + distinct[:-1]) / 2.0)
    return np.asarray(np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS)))


def _histogram(edges: Floats, values: Floats) -> NDArray[np.int64]:
    bins = np.searchsorted(edges, values, side="right")
    return np.bincount(bins, minlength=edges.size + 1).astype(np.int64)


def _log_ratio(edges: Floats, positive: Floats, negative: Floats) -> Floats:
    # Half a run of each kind in every bin: an empty bin is no proof.
    hits = (_histogram(edges, positive) + 0.5) / (positive.size + 1.0)
    misses = (_histogram(edges, negative) + 0.5) / (negative.size + 1.0)
    return np.asarray(np.log(hits) - np.log(misses))


def _halves(outputs: Floats) -> tuple[Floats, Floats]:
    middle = len(outputs) // 2
    return outputs[:middle], outputs[middle:]
