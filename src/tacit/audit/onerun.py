"""Audit a training from one run, with many canaries put in or left out at random.

Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run" (NeurIPS 2023). Each of
m canaries is included by a fair coin; from the result the auditor guesses which were, and may
abstain. For an (epsilon, delta)-DP training the number of right guesses among r is at most
Binomial(r, e**epsilon / (1 + e**epsilon)), up to a term of order m delta.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tacit.arrays import Floats
from tacit.audit.bounds import POWER
from tacit.audit.engine import AuditResult, check_confidence
from tacit.errors import TacitError, check_at_least, check_epsilon
from tacit.noise import SYSTEM_NOISE, NoiseSource, bernoulli

Train = Callable[[NDArray[np.bool_]], Floats]

_GUESS_SHARES = (1.0, 0.5, 0.25, 0.1, 0.05)  # how many canaries to guess about, tried in turn


def audit_training(
    train: Train,
    *,
    name: str,
    n_canaries: int,
    claimed_epsilon: float,
    delta: float = 0.0,
    confidence: float = 0.999,
    source: NoiseSource = SYSTEM_NOISE,
) -> AuditResult:
    """Audit one call of `train`, which takes the inclusion of each canary and scores them.

    A higher score must mean "looks included". The claim under test is add-or-remove DP for one
    canary. Several numbers of guesses are tried and the confidence is split over them, so a sound
    training is refuted with probability at most 1 - `confidence`.
    """
    check_at_least(n_canaries, 10, name="n_canaries")
    check_epsilon(claimed_epsilon, name="claimed_epsilon")
    check_confidence(confidence)
    started = time.perf_counter()
    included = bernoulli(0.5, (n_canaries,), source=source)
    scores = np.asarray(train(included.copy()), dtype=np.float64)
    if scores.shape != (n_canaries,) or not np.all(np.isfinite(scores)):
        raise TacitError(f"train must return {n_canaries} finite scores, got {scores.shape}.")
    false_alarm = (1.0 - confidence) / len(_GUESS_SHARES)
    order = np.argsort(scores, kind="stable")
    bounds = []
    for share in _GUESS_SHARES:
        half = max(1, int(share * n_canaries / 2))
        right = int(included[order[-half:]].sum() + (~included[order[:half]]).sum())
        lower = one_run_lower_bound(
            n_canaries=n_canaries,
            n_guesses=2 * half,
            n_right=right,
            delta=delta,
            false_alarm=false_alarm,
        )
        bounds.append((lower, right / (2 * half)))
    lower, rate = max(bounds)
    noticed = detectable_by_guesses(
        n_canaries=n_canaries, claimed_epsilon=claimed_epsilon, delta=delta, false_alarm=false_alarm
    )
    refuted = lower > claimed_epsilon
    return AuditResult(
        mechanism=name,
        claimed_epsilon=claimed_epsilon,
        delta=delta,
        lower_bound=lower,
        confidence=confidence,
        trials=1,
        verdict="refuted" if refuted else "consistent",
        tpr=rate,
        fpr=1.0 - rate,
        n_pairs=n_canaries,
        seconds=time.perf_counter() - started,
        detectable_epsilon=noticed,
        finding="more canaries were guessed right than the claim allows"
        if refuted
        else "no more canaries were guessed right than the claim allows",
    )


def one_run_lower_bound(
    *, n_canaries: int, n_guesses: int, n_right: int, delta: float, false_alarm: float
) -> float:
    """The largest epsilon that so many right guesses refute; 0 if they refute none."""

    def excess(epsilon: float) -> float:
        p = one_run_p_value(
            n_canaries=n_canaries,
            n_guesses=n_guesses,
            n_right=n_right,
            epsilon=epsilon,
            delta=delta,
        )
        return p - false_alarm

    if excess(0.0) >= 0.0:
        return 0.0
    high = 1.0
    while excess(high) < 0.0:
        high *= 2.0
        if high > 700.0:
            return math.inf
    low = 0.0
    # Bisection that keeps a refuted epsilon at its lower end: the result is never optimistic.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0.0 else (low, middle)
    return low


def detectable_by_guesses(
    *, n_canaries: int, claimed_epsilon: float, delta: float, false_alarm: float
) -> float:
    """The smallest epsilon that would be refuted with 95 % power if guesses were as good as it.

    That is, if each guess were right with probability e**epsilon / (1 + e**epsilon), the most that
    epsilon-DP allows. From a model one guesses far worse, so much larger ones may go unnoticed.
    """
    found = math.inf
    for share in _GUESS_SHARES:
        guesses = 2 * max(1, int(share * n_canaries / 2))

        def refutes(right: int, guesses: int = guesses) -> bool:
            p = one_run_p_value(
                n_canaries=n_canaries,
                n_guesses=guesses,
                n_right=right,
                epsilon=claimed_epsilon,
                delta=delta,
            )
            return p < false_alarm

        if not refutes(guesses):
            continue
        low, high = 0, guesses
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if refutes(middle) else (middle, high)
        rate = float(special.betaincinv(high, guesses - high + 1, POWER))
        found = min(found, float(special.logit(rate)))
    return found


def one_run_p_value(
    *, n_canaries: int, n_guesses: int, n_right: int, epsilon: float, delta: float
) -> float:
    """A bound on the probability of at least `n_right` right guesses under (epsilon, delta)-DP."""
    if not 0 <= n_right <= n_guesses <= n_canaries:
        raise TacitError(
            f"needs 0 <= right <= guesses <= canaries, got {n_right}, {n_guesses}, {n_canaries}."
        )
    keep = float(special.expit(epsilon))
    tail = _binomial_tail(n_guesses, keep)
    reach = tail[n_right]
    if delta == 0.0 or n_right == 0:
        return float(reach)
    steps = np.arange(1, n_right + 1)
    alpha = float(np.max((tail[n_right - steps] - reach) / steps))
    return min(1.0, float(reach) + 2.0 * n_canaries * delta * alpha)


def _binomial_tail(n: int, p: float) -> Floats:
    """P[Binomial(n, p) >= k] for k = 0..n."""
    k = np.arange(1, n + 1)
    return np.concatenate([[1.0], special.betainc(k, n - k + 1, p)])
