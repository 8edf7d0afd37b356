"""Learn, from runs on x and on x', a test that tells the two apart.

The log-likelihood ratio is the best test statistic there is, so it is what gets learned, by several
ways down to one number: by histogram; for vectors also the sum of the coordinates' own log ratios,
a linear and a quadratic discriminant. Two more look at what values are instead of where they lie:
the lattice on which they sit (the lowest bit that is set, at their magnitude), which floating point
gives away, and values that one input produces and the other never does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.audit.bounds import Claim, proportions_above, proportions_below

Score = Callable[[Floats], Floats]

_BINS = 64
# Shares of the outputs at which bins end: evenly, and finer at both ends, where rare outputs lie
# that only one input can produce.
_RARE = np.array([0.0002, 0.001, 0.004])
_SHARES = np.sort(np.concatenate([_RARE, np.arange(1, _BINS) / _BINS, 1.0 - _RARE]))
_MOST_COORDINATES = 32  # of a vector whose bits and products are looked at


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


def learn_detectors(
    first: Floats, second: Floats, *, claim: Claim, false_alarm: float, growth: float = 1.0
) -> list[Detector]:
    """The detectors that promise most on the part of the runs kept for choosing: one or two.

    The first gives the largest bound on these runs; using the confidence bound there, not the raw
    rates, keeps lucky thresholds in a tail away. The second would if there were `growth` times as
    many runs with the same rates: a rare event that few runs cannot prove, and the count can.
    """
    fit_first, choose_first = _halves(first)
    fit_second, choose_second = _halves(second)
    found: list[list[Detector]] = [[], []]
    for score in _scores(fit_first, fit_second):
        fits = [score(fit_first), score(fit_second)]
        chooses = [score(choose_first), score(choose_second)]
        for swapped in (False, True):
            edges, order = _learn_order(*fits)
            counts = [_histogram(edges, part)[order] for part in chooses]
            for which, times in enumerate((1.0, growth)):
                cut, promise = _best_cut(counts, times, claim=claim, false_alarm=false_alarm)
                positive_bins = np.zeros(order.size, dtype=bool)
                positive_bins[order[:cut]] = True
                found[which].append(Detector(score, edges, positive_bins, swapped, promise))
            fits.reverse()
            chooses.reverse()
    best = [max(detectors, key=lambda detector: detector.promise) for detectors in found]
    return best[:1] if growth == 1.0 else best


def _learn_order(positive: Floats, negative: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Bins of the score, and their order from the most to the least typical of `positive`."""
    edges = _edges(np.concatenate([positive, negative]))
    return edges, np.argsort(-_log_ratio(edges, positive, negative), kind="stable")


def _best_cut(
    counts: list[NDArray[np.int64]], times: float, *, claim: Claim, false_alarm: float
) -> tuple[int, float]:
    """How many bins to call positive, and the bound that `times` these counts give."""
    hits, alarms = (np.cumsum(part) for part in counts)
    positive, negative = (round(times * int(part[-1])) for part in (hits, alarms))
    hits = np.floor(times * hits[:-1])
    alarms = np.minimum(negative, np.ceil(times * alarms[:-1]))
    low = proportions_above(hits, positive, false_alarm=false_alarm)
    high = proportions_below(alarms, negative, false_alarm=false_alarm)
    bounds = [0.0, *map(claim.epsilon_for, low.tolist(), high.tolist())]
    best = int(np.argmax(bounds))
    return max(1, best), bounds[best]


def _scores(first: Floats, second: Floats) -> list[Score]:
    """Ways to one number, learned from these runs."""
    values = [_lattices(first, second), _own_values(first, second)]
    if first.shape[1] == 1:
        return [lambda outputs: outputs[:, 0], *values]
    return [
        _naive_bayes(first, second),
        _discriminant(first, second),
        _quadratic(first, second),
        *values,
    ]


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


def _quadratic(first: Floats, second: Floats) -> Score:
    """The log ratio of two normals with their own means and covariances.

    Draws that are shared by coordinates under one input only show in nothing else.
    """
    shown = min(first.shape[1], _MOST_COORDINATES)
    laws = []
    for sample in (first[:, :shown], second[:, :shown]):
        mean = sample.mean(axis=0)
        spread = (sample - mean).T @ (sample - mean) / len(sample)
        ridge = 1e-9 * np.trace(spread) / shown + 1e-300
        laws.append((mean, np.linalg.inv(spread + ridge * np.eye(shown))))

    def score(outputs: Floats) -> Floats:
        centred = [(outputs[:, :shown] - mean, inverse) for mean, inverse in laws]
        far = [np.einsum("ni,ni->n", apart @ inverse, apart) for apart, inverse in centred]
        return np.asarray(far[1] - far[0])

    return score


def _lattices(first: Floats, second: Floats) -> Score:
    """The sum over coordinates of the log ratio of `_bit_code`."""
    shown = min(first.shape[1], _MOST_COORDINATES)
    codes = [_bit_code(sample[:, :shown]) for sample in (first, second)]
    found, places = np.unique(np.concatenate(codes), return_inverse=True)
    places = places.reshape(-1, shown)
    tables = []
    for i in range(shown):
        hits = np.bincount(places[: len(first), i], minlength=found.size) + 0.5
        misses = np.bincount(places[len(first) :, i], minlength=found.size) + 0.5
        tables.append(np.append(np.log(hits / hits.sum()) - np.log(misses / misses.sum()), 0.0))

    def score(outputs: Floats) -> Floats:
        codes = _bit_code(outputs[:, :shown])
        at = np.minimum(np.searchsorted(found, codes), found.size - 1)
        at = np.where(found[at] == codes, at, found.size)  # never seen: says nothing
        return np.asarray(sum(table[at[:, i]] for i, table in enumerate(tables)))

    return score


def _bit_code(values: Floats) -> NDArray[np.int64]:
    """Magnitude and lowest set bit of each number: which lattices it can come from.

    A sum of a value and floating-point noise sits on the coarser lattice of the two, and the parity
    of a number on a grid is its lowest bit.
    """
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((whole & -whole) + (whole == 0)).astype(np.int64)
    return np.asarray(exponent.astype(np.int64) * 64 + lowest)


def _own_values(first: Floats, second: Floats) -> Score:
    """How many coordinates hold a value that only x gave, less those that only x' gave."""
    shown = min(first.shape[1], _MOST_COORDINATES)
    own = [
        (np.setdiff1d(_repeated(a), b), np.setdiff1d(_repeated(b), a))
        for a, b in zip(first[:, :shown].T, second[:, :shown].T, strict=True)
    ]

    def score(outputs: Floats) -> Floats:
        total = np.zeros(len(outputs))
        for column, (mine, others) in zip(outputs[:, :shown].T, own, strict=True):
            total += _among(column, mine)
            total -= _among(column, others)
        return total

    return score


def _repeated(values: Floats) -> Floats:
    """Values that occur more than once: others will hardly come again."""
    found, counts = np.unique(values, return_counts=True)
    return np.asarray(found[counts > 1])


def _among(values: Floats, known: Floats) -> NDArray[np.bool_]:
    if not known.size:
        return np.zeros(values.shape, dtype=bool)
    at = np.minimum(np.searchsorted(known, values), known.size - 1)
    return np.asarray(known[at] == values)


def _edges(values: Floats) -> Floats:
    """Bin edges: between the values if they are few, else at quantiles."""
    distinct = np.unique(values)
    if distinct.size <= _BINS:
        return np.asarray((distinct[1:] + distinct[:-1]) / 2.0)
    return np.asarray(np.unique(np.quantile(values, _SHARES)))


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
