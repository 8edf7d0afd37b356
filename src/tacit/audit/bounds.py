"""From counted successes to a lower bound on epsilon that holds with a stated confidence.

A test that says "x" with probability `tpr` on runs of x and `fpr` on runs of x' shows how far the
two output distributions lie apart. A `Claim` turns the pair (tpr, fpr) into the epsilon that any
mechanism of the claimed kind must have to allow such a test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy import optimize, special, stats

from tacit.arrays import Floats


def proportion_above(hits: int, runs: int, *, false_alarm: float) -> float:
    """Clopper-Pearson: the proportion is at least this, wrong with probability `false_alarm`."""
    return 0.0 if hits == 0 else float(special.betaincinv(hits, runs - hits + 1, false_alarm))


def proportion_below(hits: int, runs: int, *, false_alarm: float) -> float:
    """Clopper-Pearson: the proportion is at most this, wrong with probability `false_alarm`."""
    return 1.0 if hits == runs else float(special.betainccinv(hits + 1, runs - hits, false_alarm))


def proportions_above(hits: Floats, runs: int, *, false_alarm: float) -> Floats:
    """`proportion_above` for several numbers of hits."""
    some = np.maximum(hits, 1.0)
    return np.where(hits > 0.0, special.betaincinv(some, runs - some + 1.0, false_alarm), 0.0)


def proportions_below(hits: Floats, runs: int, *, false_alarm: float) -> Floats:
    """`proportion_below` for several numbers of hits."""
    most = np.minimum(hits, runs - 1.0)
    return np.where(hits < runs, special.betainccinv(most + 1.0, runs - most, false_alarm), 1.0)


POWER = 0.95  # of the violations that a verdict says it would have seen


def detectable(claim: Claim, fpr: float, *, runs: int, false_alarm: float) -> float:
    """The smallest epsilon that this test would refute with 95 % power.

    A mechanism under which the test fires with probability `fpr` on x' and as often on x as this
    epsilon allows is refuted by `runs` runs of each, with that probability or more.
    """
    fpr = max(fpr, 1.0 / runs)
    alarms = _quantile(1.0 - (1.0 - POWER) / 2.0, runs, fpr)
    high = proportion_below(alarms, runs, false_alarm=false_alarm)
    tpr = _least_tpr(claim, high, runs=runs, false_alarm=false_alarm, miss=(1.0 - POWER) / 2.0)
    return math.inf if tpr is None else claim.epsilon_for(tpr, fpr)


def detectable_event(claim: Claim, *, runs: int, false_alarm: float) -> float:
    """How likely outputs of x that x' never gives must be to be found with 95 % power."""
    high = proportion_below(0, runs, false_alarm=false_alarm)
    tpr = _least_tpr(claim, high, runs=runs, false_alarm=false_alarm, miss=1.0 - POWER)
    return 1.0 if tpr is None else tpr


def _least_tpr(
    claim: Claim, high: float, *, runs: int, false_alarm: float, miss: float
) -> float | None:
    """The least rate whose `miss` quantile of hits still refutes the claim; None if none does."""

    def refutes(hits: int) -> bool:
        low = proportion_above(hits, runs, false_alarm=false_alarm)
        return claim.epsilon_for(low, high) > claim.epsilon

    if not refutes(runs):
        return None
    least, most = 0, runs
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if refutes(middle) else (middle, most)
    # P[Binomial(runs, rate) >= most] = 1 - miss
    return float(special.betaincinv(most, runs - most + 1, 1.0 - miss)) if most < runs else None


def _quantile(level: float, runs: int, rate: float) -> int:
    return int(stats.binom.ppf(level, runs, rate))


class Claim(Protocol):
    """What a mechanism says of itself, as far as a test between two inputs can contradict it."""

    @property
    def epsilon(self) -> float:
        """The epsilon that is claimed."""
        ...

    @property
    def delta(self) -> float:
        """The delta at which it is claimed."""
        ...

    def epsilon_for(self, tpr: float, fpr: float) -> float:
        """The smallest epsilon at `delta` of a mechanism that allows this test; at least 0."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DpClaim:
    """(epsilon, delta)-DP and nothing more: tpr <= e**epsilon fpr + delta for every test."""

    epsilon: float
    delta: float = 0.0

    def epsilon_for(self, tpr: float, fpr: float) -> float:
        """ln((tpr - delta) / fpr), at least 0."""
        if tpr <= self.delta:
            return 0.0
        return max(0.0, math.log((tpr - self.delta) / fpr)) if fpr > 0.0 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianClaim:
    """Gaussian noise whose sigma gives (epsilon, delta): the whole trade-off curve is claimed.

    At a small delta no test of a million runs can tell sigma from 0.9 sigma by (epsilon, delta)
    alone; the curve tpr <= Phi(Phi^-1(fpr) + 1/sigma) can be refuted anywhere (Nasr et al. 2023).
    """

    epsilon: float
    delta: float

    def epsilon_for(self, tpr: float, fpr: float) -> float:
        """The epsilon at `delta` of the largest sigma that allows this test."""
        if not 0.0 < fpr < tpr:
            return 0.0 if tpr <= fpr else math.inf
        mu = float(special.ndtri(tpr) - special.ndtri(fpr))
        return gaussian_epsilon(1.0 / mu, self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianClaim:
    """Discrete Gaussian noise on an integer of sensitivity 1; the exact curve is claimed."""

    epsilon: float
    delta: float

    def epsilon_for(self, tpr: float, fpr: float) -> float:
        """The epsilon at `delta` of the largest sigma that allows this test."""
        if tpr <= fpr:
            return 0.0

        def excess(log_sigma: float) -> float:
            tail = _discrete_tail(math.exp(log_sigma))
            # Thresholds are the most powerful tests; between two of them one may randomise.
            return float(np.interp(fpr, tail[1:][::-1], tail[:-1][::-1])) - tpr

        low, high = math.log(0.1), math.log(2000.0)
        if excess(low) <= 0.0:
            return math.inf
        if excess(high) >= 0.0:
            return 0.0
        sigma = math.exp(optimize.brentq(excess, low, high, xtol=1e-9))
        return discrete_gaussian_epsilon(sigma, self.delta)


def gaussian_epsilon(sigma: float, delta: float) -> float:
    """The exact epsilon of Gaussian noise on a query of sensitivity 1 (Balle and Wang 2018)."""

    def excess(epsilon: float) -> float:
        first = special.ndtr(0.5 / sigma - epsilon * sigma)
        # e**epsilon times the second tail through logarithms: no overflow for large epsilon.
        second = math.exp(epsilon + special.log_ndtr(-0.5 / sigma - epsilon * sigma))
        return float(first - second) - delta

    return _root_above(excess)


def calibrate_gaussian_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma with `gaussian_epsilon` <= epsilon at sensitivity 1."""
    return _smallest_sigma(gaussian_epsilon, epsilon, delta)


def discrete_gaussian_epsilon(sigma: float, delta: float, *, shift: int = 1) -> float:
    """The exact epsilon of discrete Gaussian noise on an integer of sensitivity `shift`."""
    tail = np.append(_discrete_tail(sigma), np.zeros(shift))

    def excess(epsilon: float) -> float:
        return float(np.max(tail[:-shift] - math.exp(min(epsilon, 700.0)) * tail[shift:])) - delta

    return _root_above(excess)


def calibrate_discrete_gaussian_sigma(epsilon: float, delta: float) -> float:
    """The smallest sigma on a grid of 1/64 with `discrete_gaussian_epsilon` <= epsilon."""
    sigma = _smallest_sigma(discrete_gaussian_epsilon, epsilon, delta)
    return math.ceil(sigma * 64 - 1e-6) / 64


@lru_cache(maxsize=256)
def _discrete_tail(sigma: float) -> Floats:
    """P[Z >= t] for the integers t around 0; the first entry is 1 and the last 0 to rounding."""
    reach = math.ceil(40.0 * sigma) + 2
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(support**2) / (2.0 * sigma**2))
    tail: Floats = np.cumsum((mass / mass.sum())[::-1])[::-1]
    return tail


def _root_above(excess: Callable[[float], float]) -> float:
    """The least epsilon >= 0 at which a falling `excess` is no longer positive."""
    if excess(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while excess(high) > 0.0:
        high *= 2.0
        if high > 1e6:
            return math.inf
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-12))


def _smallest_sigma(
    epsilon_of: Callable[[float, float], float], epsilon: float, delta: float
) -> float:
    low, high = 0.02, 0.04
    while epsilon_of(high, delta) > epsilon:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon_of(middle, delta) <= epsilon else (middle, high)
    return high
