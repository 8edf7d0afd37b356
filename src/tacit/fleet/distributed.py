"""The `distributed` report: discrete Gaussian noise in every client, and only the sum is seen.

A client quantises its direction to integers of bounded norm, adds a discrete Gaussian share and
hides the result in additive shares modulo 2**k that travel through the shuffler. The analyser
learns the sum and nothing else, so the noise of all clients together protects each of them:
nearly the accuracy of central differential privacy without a trusted server.

Theorems used:
- Kairouz, Liu, Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning with
  Secure Aggregation" (ICML 2021, arXiv 2102.06387), Theorem 1: the sum of n discrete Gaussians of
  scale sigma >= 1/2 on integer data of L2 sensitivity D in d coordinates gives (e^2 / 2)
  concentrated DP with e = min(sqrt(D^2/(n sigma^2) + tau d / 2), D/(sqrt(n) sigma) + tau sqrt(d)),
  tau = 10 sum_{k<n} exp(-2 pi^2 sigma^2 k/(k+1)). A sum of discrete Gaussians is no discrete
  Gaussian; tau pays for the difference.
- Canonne, Kamath, Steinke 2020, Proposition 12: rho-concentrated DP to (epsilon, delta).
- Balle, Bell, Gascon, Nissim, "Private Summation in the Multi-Message Shuffle Model" (CCS 2020,
  arXiv 2002.00817): split-and-mix over a group of q elements among n >= 19 honest clients reaches
  statistical security 2^-s with m >= (2 s + log2 q)/(log2 n - log2 e) + 2 messages each; distance
  2^-s from an ideal sum adds at most (1 + e^epsilon) 2^-s to delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.fleet.config import DistributedSettings, FleetPlan
from tacit.guarantee import DpGuarantee
from tacit.noise import NoiseSource, bernoulli, discrete_gaussian

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SMALLEST_N = 19  # the split-and-mix theorem needs this many honest clients
_LARGEST_SIGMA = 3000.0  # of the sum: exact sampling works in 64 bits up to here
_SMALLEST_SIGMA = 2.0  # of a client: keeps tau negligible
_MIX_SHARE = 1e-3  # of delta, for the statistical error of split-and-mix
_BLOCK_LENGTH = 8
_TAIL = 12.0  # standard deviations that a sum may stray before it counts as broken

ASSUMPTIONS = (
    "at least n_min reports of the batch come from clients that follow the protocol",
    "the shuffler and the analyser do not collude, and the shuffler permutes uniformly",
    "the noise source is uniform, independent and secret",
)
NOT_COVERED = (
    "a person who holds several clients",
    "who takes part in which round and when",
    "a client that reports out of range: its shares cannot be told apart, the round is spoilt",
)


def settings_of(plan: FleetPlan) -> DistributedSettings:
    """The plan's settings, or a refusal if it is for another mechanism."""
    if not isinstance(plan.settings, DistributedSettings):
        raise TacitError(f"this plan is for the mechanism {plan.mechanism}, not distributed.")
    return plan.settings


def sum_concentration(*, n: int, local_sigma: float, clip_units: int, dimension: int) -> float:
    """rho of one round: concentrated DP of the sum under replacement of one client.

    Replacing a client moves the integer sum by at most 2 * clip_units in L2.
    """
    sensitivity = 2.0 * clip_units
    k = np.arange(1, n)
    tau = 10.0 * float(np.exp(-2.0 * math.pi**2 * local_sigma**2 * k / (k + 1.0)).sum())
    base = sensitivity / (math.sqrt(n) * local_sigma)
    joint = math.sqrt(base**2 + 0.5 * tau * dimension)
    apart = base + tau * math.sqrt(dimension)
    return 0.5 * min(joint, apart) ** 2


def calibrate(draft: FleetPlan, *, n_most: int) -> DistributedSettings:
    """The least noise for the plan's total, counting on `n_min` honest clients a round."""
    if draft.n_min < SMALLEST_N:
        raise TacitError(
            f"split-and-mix is proven for at least {SMALLEST_N} honest clients, got "
            f"n_min = {draft.n_min}; use the mechanism privunit for fewer."
        )
    multiplier = _multiplier(draft)
    clip_units = math.floor(min(_LARGEST_SIGMA / (2.0 * multiplier), 2.0**15))
    if clip_units**2 < 4 * (draft.dimension / 4.0 + 6.0 * clip_units):
        raise TacitError(
            f"{draft.n_rounds} rounds at epsilon = {draft.epsilon:g} need so much noise that "
            f"{draft.dimension} coordinates cannot be quantised; use fewer rounds or kernels."
        )
    sigma = max(_SMALLEST_SIGMA, 2.0 * clip_units * multiplier / math.sqrt(draft.n_min))
    # The exact sampler takes sigma in steps of 1/64 below 64 and whole numbers above.
    local_sigma = math.ceil(sigma * 64.0) / 64.0 if sigma < 63.0 else float(math.ceil(sigma))
    widest = n_most * clip_units + _TAIL * local_sigma * math.sqrt(n_most)
    modulus_bits = math.ceil(math.log2(2.0 * widest + 2.0))
    security_bits = _security_bits(draft)
    return DistributedSettings(
        clip_units=clip_units,
        local_sigma=local_sigma,
        modulus_bits=modulus_bits,
        block_length=_BLOCK_LENGTH,
        n_shares=shares_needed(
            n=draft.n_min, group_bits=modulus_bits * _BLOCK_LENGTH, security_bits=security_bits
        ),
        security_bits=security_bits,
    )


def _multiplier(draft: FleetPlan) -> float:
    """Noise of the sum in units of the sensitivity, with a hair in hand for tau and rounding."""
    from tacit.accounting import zcdp_epsilon

    low, high = 1e-3, 1e6
    while high / low > 1.0 + 1e-6:
        middle = math.sqrt(low * high)
        rho = draft.client_rounds * 0.5 / middle**2
        fits = zcdp_epsilon(rho=rho, delta=draft.delta * (1.0 - _MIX_SHARE)) <= draft.epsilon
        low, high = (low, middle) if fits else (middle, high)
    return high * (1.0 + 1e-6)


def _security_bits(draft: FleetPlan) -> int:
    """Bits per block and round so that all of them together cost `_MIX_SHARE` of delta."""
    n_blocks = math.ceil(draft.dimension / _BLOCK_LENGTH)
    room = _MIX_SHARE * draft.delta / (draft.client_rounds * n_blocks)
    return math.ceil(-math.log2(room) + math.log2(1.0 + math.exp(min(draft.epsilon, 500.0))))


def shares_needed(*, n: int, group_bits: float, security_bits: float) -> int:
    """Messages per client and block for split-and-mix among n honest clients."""
    if n < SMALLEST_N:
        raise TacitError(f"split-and-mix needs at least {SMALLEST_N} honest clients, got {n}.")
    return math.ceil((2.0 * security_bits + group_bits) / (math.log2(n) - math.log2(math.e)) + 2)


def noise_norm(plan: FleetPlan) -> float:
    """Root mean square norm of the noise on the mean of `n_min` unit updates."""
    settings = settings_of(plan)
    one = settings.local_sigma / settings.clip_units
    return one * math.sqrt(plan.dimension / plan.n_min)


def quantise(directions: Floats, plan: FleetPlan, *, source: NoiseSource) -> Integers:
    """Round rows of norm at most 1 to integers of norm at most `clip_units`, checked exactly.

    Stochastic rounding, which is unbiased; a row that comes out too long is rounded towards zero
    instead, which cannot lengthen it.
    """
    units = settings_of(plan).clip_units
    scale = direction_scale(plan)
    norms = np.linalg.norm(directions, axis=1, keepdims=True)
    scaled = directions * (scale / np.maximum(norms, 1.0))
    floor = np.floor(scaled)
    up = bernoulli(scaled - floor, scaled.shape, source=source)
    rounded: Integers = (floor + up).astype(np.int64)
    too_long = np.einsum("ij,ij->i", rounded, rounded) > units**2
    rounded[too_long] = np.trunc(scaled[too_long]).astype(np.int64)
    if np.any(np.einsum("ij,ij->i", rounded, rounded) > units**2):
        raise TacitError("an update exceeds its norm bound after rounding; it is not released.")
    return rounded


def direction_scale(plan: FleetPlan) -> float:
    """Integer units of a direction of norm 1; what `quantise` multiplies with."""
    units = settings_of(plan).clip_units
    # Rounding adds at most dimension / 4 to the squared norm on average, with a standard
    # deviation of at most `units`; with six of them in hand, truncation stays the exception.
    return math.sqrt(units**2 - plan.dimension / 4.0 - 6.0 * units) * (1.0 - 1e-9)


def randomize(directions: Floats, plan: FleetPlan, *, source: NoiseSource) -> Integers:
    """Quantised rows plus a discrete Gaussian share each, modulo 2**modulus_bits.

    Guarantee: the sum over n >= n_min rows is (epsilon, delta)-DP as the plan states; one row
    alone is nearly bare, so rows may leave a client only as shares.
    Assumes: an aggregation that reveals only the sum; exact integer arithmetic, as here.
    Composes: rho of `sum_concentration` adds over rounds.
    Not covered: who took part.
    """
    settings = settings_of(plan)
    exact = quantise(directions, plan, source=source)
    noise = discrete_gaussian(exact.shape, sigma=settings.local_sigma, source=source)
    masked: Integers = (exact + noise) % 2**settings.modulus_bits
    return masked


def summed(directions: Floats, plan: FleetPlan, *, source: NoiseSource) -> Integers:
    """The simulator's shortcut: the sum of quantised rows plus one discrete Gaussian draw.

    The draw has the variance of the clients' shares together; Kairouz et al. bound its max
    divergence from their sum by tau per coordinate, below 1e-15 for the scales used here.
    """
    settings = settings_of(plan)
    total = quantise(directions, plan, source=source).sum(axis=0)
    sigma = settings.local_sigma * math.sqrt(len(directions))
    noise = discrete_gaussian(total.shape, sigma=sigma, source=source)
    masked: Integers = (total + noise) % 2**settings.modulus_bits
    return masked


def mean_direction(total: Integers, n: int, plan: FleetPlan) -> Floats:
    """The mean update from a sum modulo 2**modulus_bits; refuses a sum that cannot be honest."""
    settings = settings_of(plan)
    modulus = 2**settings.modulus_bits
    signed = (total + modulus // 2) % modulus - modulus // 2
    limit = n * settings.clip_units + _TAIL * settings.local_sigma * math.sqrt(n)
    if np.abs(signed).max() > limit:
        raise TacitError(
            f"a coordinate of the sum is {int(np.abs(signed).max())}, beyond the {limit:.0f} that "
            f"{n} honest reports can reach; the round is not used."
        )
    mean: Floats = signed / (n * direction_scale(plan))
    return mean


def spent(plan: FleetPlan, received: Sequence[int]) -> DpGuarantee | None:
    """What one client has spent after taking part in rounds with these numbers of reports."""
    from tacit.accounting import zcdp_epsilon

    if not received:
        return None
    settings = settings_of(plan)
    rhos = {
        n: sum_concentration(
            n=n,
            local_sigma=settings.local_sigma,
            clip_units=settings.clip_units,
            dimension=plan.dimension,
        )
        for n in set(received)
    }
    rho = math.fsum(rhos[n] for n in received)
    return DpGuarantee(
        epsilon=zcdp_epsilon(rho=rho, delta=plan.delta * (1.0 - _MIX_SHARE)),
        delta=plan.delta,
        model="distributed",
        unit="client",
        assumptions=ASSUMPTIONS,
        not_covered=NOT_COVERED,
    )
