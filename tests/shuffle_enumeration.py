"""Exact privacy of shuffled k-ary randomized response by enumeration: the oracle of the bounds.

The shuffled batch is a histogram over k symbols. With the first client's symbol and everybody
else's fixed, its distribution is a product of multinomials; the hockey-stick divergence between
two inputs of the first client is summed over all histograms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tacit.arrays import Floats


def krr_rows(k: int, local_epsilon: float) -> Floats:
    keep = math.exp(local_epsilon) / (math.exp(local_epsilon) + k - 1)
    rows = np.full((k, k), (1.0 - keep) / (k - 1))
    np.fill_diagonal(rows, keep)
    return rows


def histogram(reports: list[Floats]) -> Floats:
    """The exact distribution of the counts of all symbols but the last, one report at a time."""
    k, n = reports[0].size, len(reports)
    table = np.zeros((n + 1,) * (k - 1))
    table[(0,) * (k - 1)] = 1.0
    for report in reports:
        after = float(report[-1]) * table
        for symbol in range(k - 1):
            # A count never reaches n before the last report, so nothing wraps around.
            after += float(report[symbol]) * np.roll(table, 1, axis=symbol)
        table = after
    return table.ravel()


def divergence(p: Floats, q: Floats, epsilon: float) -> float:
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0.0).tolist())


def pair(
    *, k: int, local_epsilon: float, others: tuple[int, ...], first: int, second: int
) -> tuple[Floats, Floats]:
    """Distributions of the batch when one client holds `first`, and when it holds `second`."""
    rows = krr_rows(k, local_epsilon)
    rest = [rows[symbol] for symbol in others]
    return histogram([rows[first], *rest]), histogram([rows[second], *rest])


def neighbourhoods(k: int, n: int, *, few: bool) -> list[tuple[int, ...]]:
    """Inputs of the other n - 1 clients up to order; with `few`, the extreme ones."""
    if few:
        halves = (n - 1) // 2
        return [(0,) * (n - 1), (k - 1,) * (n - 1), (0,) * halves + (1,) * (n - 1 - halves)]
    sizes: Any = product(range(n), repeat=k - 1)
    found = []
    for size in sizes:
        last = n - 1 - sum(size)
        if last >= 0:
            symbols = [s for s, count in enumerate((*size, last)) for _ in range(count)]
            found.append(tuple(symbols))
    return found


def exact_deltas(
    *, k: int, local_epsilon: float, n: int, epsilons: Sequence[float], few: bool
) -> list[float]:
    """For each epsilon the largest divergence over the others' inputs and what one client swaps."""
    worst = [0.0] * len(epsilons)
    for others in neighbourhoods(k, n, few=few):
        for second in range(1, k):
            p, q = pair(k=k, local_epsilon=local_epsilon, others=others, first=0, second=second)
            for i, epsilon in enumerate(epsilons):
                worst[i] = max(worst[i], divergence(p, q, epsilon), divergence(q, p, epsilon))
    return worst
