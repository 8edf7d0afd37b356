"""Amplification by shuffling, "hiding among the clones", evaluated as a rigorous upper bound.

Feldman, McMillan, Talwar, "Hiding Among the Clones", FOCS 2021 (arXiv 2012.12803), Theorem 3.2:
the shuffled reports of n clients, each through any `local_epsilon`-LDP randomizer, are at most as
distinguishable under replacement of one client as the pair

    P = (A + D, C - A + 1 - D),  Q = (A + 1 - D, C - A + D),
    C ~ Bin(n - 1, e^-eps0),  A ~ Bin(C, 1/2),  D ~ Bernoulli(e^eps0 / (e^eps0 + 1)).

docs/reference/accounting.md proves what this module uses: swapping the two counts turns P into Q,
so both directions of the divergence are one number; given C = c the likelihood ratio is monotone,
so that

    delta_c(eps) = w b_c(u) - (e^eps - 1) F_c(u - 1),   u = ceil((c + 1) kappa) - 1,

with b_c and F_c mass and distribution function of Bin(c, 1/2); and delta_c decreases in c. So the
mean over C may be taken with too small a C: values are grouped under the smallest of each group,
and whatever lies below the window counts as no clone at all. Nothing is dropped.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from tacit.arrays import Floats

LARGEST_N = 10**9  # more reports never hurt, so a larger n is counted as this many
LARGEST_LOCAL_EPSILON = 100.0  # beyond it no report is a clone, and shuffling gives nothing
SMALLEST_DELTA = 1e-200  # below it, sums of float64 tails mean nothing
UNDERFLOW = 1e-290  # added to every bound: what underflows is less


def slack(count: Floats) -> Floats:
    """Relative error allowed to SciPy's binomial functions; tests compare them with mpmath."""
    return 1e-10 + 1e-16 * count


def _coefficients(epsilons: Floats, local_epsilon: float) -> tuple[Floats, Floats]:
    """w and kappa without cancellation, for 0 <= epsilon < local_epsilon."""
    gap = -np.expm1(epsilons - local_epsilon)
    weight = gap / (1.0 + math.exp(-local_epsilon))
    kappa = gap / ((np.exp(epsilons) + 1.0) * -math.expm1(-local_epsilon))
    return weight, kappa


def clones_delta_given(
    count: NDArray[np.int64], *, epsilons: Floats, local_epsilon: float
) -> Floats:
    """Upper bounds of delta_c(eps): one row per epsilon, one column per number of clones."""
    clones = count.astype(np.float64)[None, :]
    weight, kappa = (value[:, None] for value in _coefficients(epsilons, local_epsilon))
    # A threshold off by one through rounding changes the sum by 1e-14 of its first term at most.
    losing = np.maximum(np.ceil((clones + 1.0) * kappa) - 1.0, 0.0)
    error = slack(clones)
    gained = weight * binom.pmf(losing, clones, 0.5) * (1.0 + error)
    lost = np.expm1(epsilons)[:, None] * binom.cdf(losing - 1.0, clones, 0.5) * (1.0 - error)
    bound = np.maximum(gained - lost, 0.0) + UNDERFLOW
    # delta_c decreases in c: a bound at a smaller c also holds here.
    decreasing: Floats = np.minimum.accumulate(bound, axis=1)
    return decreasing


def _window(*, rate: float, n: int, delta: float, groups: int) -> NDArray[np.int64]:
    """Where groups of C start, all over the likely range; the choice affects only tightness."""
    mean = (n - 1) * rate
    reach = math.sqrt(2.0 * math.log(1e4 / delta))
    low = max(0, math.floor(mean - reach * math.sqrt(mean)))
    high = min(n - 1, math.ceil(mean + reach * math.sqrt(mean) + reach**2))
    starts = np.unique(np.linspace(low, high, min(groups, high - low + 1)).astype(np.int64))
    return starts if low == 0 else np.concatenate(([0], starts))


def clones_delta(
    *,
    epsilons: Floats,
    local_epsilon: float,
    n: int,
    target_delta: float,
    n_symbols: int | None = None,
    cap: float | None = None,
    groups: int = 4000,
) -> Floats:
    """Upper bounds of delta at each epsilon in [0, local_epsilon] for n shuffled reports.

    Holds for every randomizer; with `n_symbols`, for k-ary randomized response over that many
    symbols only (docs/reference/accounting.md, Proposition 5); with `cap`, for PrivUnitG whose cap
    has at most this probability (Proposition 8). `target_delta` says where the bound should be
    tight; the bound holds whatever it is.
    """
    if local_epsilon > LARGEST_LOCAL_EPSILON:
        return np.where(epsilons >= local_epsilon, 0.0, 1.0)
    n = min(n, LARGEST_N)
    rate, weight = _rate_and_weight(local_epsilon, n_symbols, cap)
    starts = _window(rate=rate, n=n, delta=target_delta, groups=groups)
    below = np.minimum(epsilons, local_epsilon)
    given = clones_delta_given(starts, epsilons=below, local_epsilon=local_epsilon)
    reached = binom.cdf(starts[1:] - 1, n - 1, rate) * (1.0 + slack(np.array(float(n))))
    reached = np.minimum(np.maximum.accumulate(reached), 1.0)
    # Summation by parts: only positive terms, so no cancellation.
    total = weight * (given[:, -1] + (given[:, :-1] - given[:, 1:]) @ reached)
    return np.where(epsilons >= local_epsilon, 0.0, np.minimum(total * (1.0 + 1e-12), 1.0))


def _rate_and_weight(
    local_epsilon: float, n_symbols: int | None, cap: float | None
) -> tuple[float, float]:
    """How likely another report is a clone, rounded down, and the share of reports that matter."""
    down, inverse = 1.0 - 1e-14, math.exp(-local_epsilon)
    if n_symbols is not None:
        whole = 1.0 + (n_symbols - 1) * inverse
        return 2.0 * inverse / whole * down, (1.0 + inverse) / whole
    if cap is not None:
        # (2 + K q) / ((1 + K q) (e^eps0 + 1)) with K = e^eps0 - 1, times e^-2 eps0 above and below.
        lifted = cap * -math.expm1(-local_epsilon)
        rate = inverse * (2.0 * inverse + lifted) / ((inverse + lifted) * (1.0 + inverse))
        return rate * down, 1.0
    return inverse * down, 1.0
