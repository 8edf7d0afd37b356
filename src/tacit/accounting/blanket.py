"""Amplification by shuffling through the privacy blanket, evaluated as a rigorous upper bound.

Balle, Bell, Gascon, Nissim, "The Privacy Blanket of the Shuffle Model", CRYPTO 2019: if every
report has at least the density gamma * omega, then

    delta(eps) <= 1 / (gamma n) E[(L_1 + ... + L_m)+],   m ~ Bin(n, gamma),
    L = (mu_x(W) - e^eps mu_x'(W)) / omega(W),   W ~ omega.

This module evaluates it for the pair of two caps: mu_x is e^eps0 l on a cap of probability q and
l = 1 / (1 + (e^eps0 - 1) q) elsewhere, and the caps of x and x' do not meet. docs/accounting-
blanket.md proves that this is the worst pair of PrivUnitG over all angles, that k-ary randomized
response is q = 1/k, and that the bound grows with q and with eps0 as long as q <= 1/2.

With T reports in either cap, c blanket reports outside of both, and D_T a walk of T steps +-1,

    delta(eps) = (e^eps + 1)(e^eps0 - 1) / (2 n) E[f_T(theta)],   f_T(theta) = E[(D_T - theta)+],
    theta = tanh(eps/2) u,   u = T / tanh(eps0/2) + 2 c / (e^eps0 - 1),
    T ~ Bin(n, 2 q l),   c ~ Bin(n - T, l (1 - 2q) / (1 - 2 q l)).

f_T grows with T, and it falls and is convex in theta. So values of T may be grouped under the most
steps and the smallest u of each group, c may be taken too small, and u and theta may be moved to
the ends of intervals with the mean kept. The evaluation does only that: nothing is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.stats import binom

from tacit.accounting.clones import LARGEST_LOCAL_EPSILON, LARGEST_N, UNDERFLOW, slack
from tacit.arrays import Floats, Integers

LARGEST_CAP = 0.5  # beyond it two caps must meet; such a PrivUnitG is never calibrated
SMALLEST = 1e-9  # below this local epsilon, probabilities near 1 lose their digits
_SHORT = 512  # walks of up to this many steps come from one exact table
_SINGLE = 512  # so many values of a count are taken one by one; more are grouped
_PLACES = 1024  # values of u
_DISTANCES = 256  # intervals of theta, for longer walks
_PARAMETER = 2e-15  # relative error of a probability computed below
_DOWN, _UP = 1.0 - 1e-14, 1.0 + 1e-11


@dataclass(frozen=True, slots=True, eq=False)
class BlanketCurve:
    """Upper bounds of delta as a function of epsilon, for one batch of two-cap reports."""

    local_epsilon: float
    n: int
    places: Floats
    spacing: int
    excess: Floats  # a row per place, a column per multiple of the spacing

    def delta(self, epsilons: Floats) -> Floats:
        """At each epsilon >= 0; 0 from the local epsilon on."""
        tangents = np.tanh(0.5 * np.asarray(epsilons, dtype=np.float64))
        position = np.multiply.outer(tangents, self.places) * (_DOWN / self.spacing)
        position = np.minimum(position, self.excess.shape[1] - 1)
        left = np.minimum(position.astype(np.int64), self.excess.shape[1] - 2)
        # Too little weight on the right end, where the excess is smaller: rounding is covered.
        share = np.maximum(position - left - 1e-12, 0.0)
        rows = np.arange(self.places.size)
        between = self.excess[rows, left] * (1.0 - share) + self.excess[rows, left + 1] * share
        outer = (np.exp(epsilons) + 1.0) * (math.expm1(self.local_epsilon) / (2.0 * self.n))
        total = (between.sum(axis=1) + UNDERFLOW) * outer * _UP + UNDERFLOW
        return np.where(epsilons >= self.local_epsilon, 0.0, np.minimum(total, 1.0))


def blanket_applies(*, local_epsilon: float, cap: float) -> bool:
    """Whether the bound below is proven and can be computed for these parameters."""
    return cap <= LARGEST_CAP and SMALLEST <= local_epsilon <= LARGEST_LOCAL_EPSILON


@lru_cache(maxsize=16)
def blanket_curve(*, local_epsilon: float, n: int, cap: float, target_delta: float) -> BlanketCurve:
    """The bound for n reports of PrivUnitG with a cap of at most `cap` <= 1/2, or k-RR at 1/k.

    `target_delta` says where the bound should be tight; it holds whatever that is.
    """
    n = min(n, LARGEST_N)
    lifted, free = math.expm1(local_epsilon), 1.0 - 2.0 * cap
    in_caps = 2.0 * cap / (1.0 + lifted * cap)
    # Fewer reports outside of the caps are worse, so this probability is rounded down.
    outside = free / (free + lifted * cap) * _DOWN
    reach = math.sqrt(2.0 * (math.log(1e4 / target_delta) + 2.0 * local_epsilon))
    edges = _edges(np.array([n]), in_caps, reach=reach)
    first, last = edges[0, :-1], edges[0, 1:] - 1
    weights = _masses(edges, np.array([n]), in_caps)[0]
    weights *= 1.0 + _drift(edges[0], n, in_caps)
    kept = weights > 0.0
    first, last, weights = first[kept], last[kept], weights[kept]
    places, spread = _spread(
        first, last, weights, n=n, outside=outside, reach=reach, local_epsilon=local_epsilon
    )
    longest = int(last[-2]) if last.size > 1 else int(last[-1])
    nodes = _nodes(longest, reach=reach)
    return BlanketCurve(
        local_epsilon=local_epsilon,
        n=n,
        places=places,
        spacing=int(nodes[1]),
        excess=spread @ _walks(last, nodes),
    )


def _edges(trials: Integers, p: float, *, reach: float) -> Integers:
    """Where groups of a binomial count start, a row per number of trials; the last entry ends them.

    The first and the last group are the tails; between them lie single values, or equal groups if
    there are too many. The choice affects only tightness.
    """
    deviation = np.sqrt(trials * p * (1.0 - p))
    margin = reach * deviation + reach**2 / 3.0 + 1.0
    low = np.maximum(np.floor(trials * p - margin), 0.0).astype(np.int64)
    high = np.minimum(np.ceil(trials * p + margin).astype(np.int64), trials)
    width = int((high - low).max()) + 1
    groups = width if width <= _SINGLE else max(64, round(_SINGLE * math.sqrt(_SINGLE / width)))
    inside = np.arange(groups + 1) * width // groups
    starts = np.minimum(low[:, None] + inside[None, :], trials[:, None] + 1)
    return np.hstack([np.zeros((trials.size, 1), np.int64), starts, trials[:, None] + 1])


def _masses(edges: Integers, trials: Integers, p: float) -> Floats:
    """Upper bounds of the probability of each group between two edges of a row."""
    count = np.broadcast_to(trials[:, None], edges.shape)
    error = slack(count[:, :1].astype(np.float64))
    single = bool((np.diff(edges[:, 1:-1]) <= 1).all())
    masses = np.zeros((edges.shape[0], edges.shape[1] - 1))
    # The tails under a probability that is off in the unfavourable direction.
    below, above = p * (1.0 - _PARAMETER), min(p * (1.0 + _PARAMETER), 1.0)
    masses[:, 0] = binom.cdf(edges[:, 1] - 1, trials, below)
    masses[:, -1] = binom.sf(edges[:, -2] - 1, trials, above)
    if single:
        masses[:, 1:-1] = binom.pmf(edges[:, 1:-2], count[:, 1:-2], p)
        masses *= 1.0 + error
    else:
        masses[:, [0, -1]] *= 1.0 + error
        masses[:, 1:-1] = _differences(edges[:, 1:-1], count[:, 1:-1], p, error)
    masses[edges[:, :-1] >= edges[:, 1:]] = 0.0
    return masses


def _differences(edges: Integers, count: Integers, p: float, error: Floats) -> Floats:
    """Probabilities between neighbouring edges, from the tail that is the smaller one at each."""
    upper = edges > count * p
    tails = np.empty(edges.shape)
    tails[~upper] = binom.cdf(edges[~upper] - 1, count[~upper], p)
    tails[upper] = binom.sf(edges[upper] - 1, count[upper], p)
    left, right = tails[:, :-1], tails[:, 1:]
    between = np.where(
        upper[:, :-1], left - right, np.where(upper[:, 1:], 1.0 - left - right, right - left)
    )
    bound: Floats = np.maximum(between, 0.0) + error * (left + right) + 1e-15 * between
    return bound


def _drift(edges: Integers, n: int, p: float) -> float:
    """By how much the rounding of p can change the probability of a count inside the window."""
    low, high = float(edges[1]), float(edges[-2])
    exponent = _PARAMETER * (high + (n - low) * p / (1.0 - p))
    return math.expm1(min(exponent, 700.0))


def _spread(
    first: Integers,
    last: Integers,
    weights: Floats,
    *,
    n: int,
    outside: float,
    reach: float,
    local_epsilon: float,
) -> tuple[Floats, Floats]:
    """Places on the axis of u, and the mass that each group of T has there, a column per group."""
    trials = n - last
    edges = _edges(trials, outside, reach=reach)
    masses = _masses(edges, trials, outside) * weights[:, None]
    slope, step = 1.0 / math.tanh(0.5 * local_epsilon), 2.0 / math.expm1(local_epsilon)
    points = (first[:, None] * slope + edges[:, :-1] * step) * _DOWN
    # Few values of T make small tables, and lie where single values of c matter.
    places = _places(points[masses > 0.0], most=_PLACES if first.size > 48 else 4 * _PLACES)
    points = np.minimum(points, places[-1])
    left = np.clip(np.searchsorted(places, points, side="right") - 1, 0, places.size - 2)
    # Too little weight on the right end: rounding is covered.
    share = np.maximum((points - places[left]) / (places[left + 1] - places[left]) - 1e-12, 0.0)
    column = np.broadcast_to(np.arange(first.size)[:, None], points.shape)
    spread = np.zeros((places.size, first.size))
    np.add.at(spread, (left, column), masses * (1.0 - share))
    np.add.at(spread, (left + 1, column), masses * share)
    return places, spread


def _places(points: Floats, *, most: int) -> Floats:
    """Where mass may lie on the axis of u: 0 and the points, or if they are many, some of them.

    By rank, so that the values of c around each of few values of T stay apart.
    """
    exact = np.unique(np.append(points, 0.0))
    if exact.size > most:
        exact = exact[np.linspace(0, exact.size - 1, most).astype(np.int64)]
    return exact if exact.size > 1 else np.array([0.0, 1.0])


def _nodes(longest: int, *, reach: float) -> Integers:
    """Distances at which walks are evaluated, as far as they matter: multiples of the second."""
    far = min(longest, math.ceil(reach * math.sqrt(longest))) + 1
    spacing = -(-far // (_SHORT if longest <= _SHORT else _DISTANCES))
    return np.arange(-(-far // spacing) + 1, dtype=np.int64) * spacing


def _walks(steps: Integers, nodes: Integers) -> Floats:
    """Upper bounds of f_T at the nodes, a row per number of steps."""
    short = steps <= _SHORT
    walks = np.empty((steps.size, nodes.size))
    walks[short] = short_walks()[steps[short][:, None], np.minimum(nodes, _SHORT + 1)[None, :]]
    walks[short] *= 1.0 + 1e-12
    walks[~short] = long_walks(steps[~short], nodes)
    return walks


@lru_cache(maxsize=1)
def short_walks() -> Floats:
    """f_T(d) for T up to 512 and d up to 513, by f_(T+1)(d) = (f_T(d - 1) + f_T(d + 1)) / 2."""
    table = np.zeros((_SHORT + 1, _SHORT + 2))
    for now, after in pairwise(table):
        after[0] = 0.5 + now[1]  # because f_T(-1) = 1 + f_T(1)
        after[1:-1] = 0.5 * (now[:-2] + now[2:])
    return table


def long_walks(steps: Integers, nodes: Integers) -> Floats:
    """f_T(d) = j b(j) - d Pr[A >= j] with A ~ Bin(T, 1/2), b its mass and j = ceil((T + d) / 2)."""
    count, distance = steps[:, None], nodes[None, :]
    ahead = (count + distance + 1) // 2
    error = slack(count.astype(np.float64))
    gained = ahead * binom.pmf(ahead, count, 0.5) * (1.0 + error)
    lost = distance * binom.sf(ahead - 1, count, 0.5) * (1.0 - error)
    excess: Floats = np.maximum(gained - lost, 0.0)
    return excess
