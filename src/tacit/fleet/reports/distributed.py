"""The `distributed` report: discrete Gaussian noise in every client, and only the sum is seen.

A client quantises its direction to integers of bounded norm, adds a discrete Gaussian share and
hides the result in additive shares modulo 2**k that travel through the shuffler. The analyser
learns the sum and nothing else, so the noise of all clients together protects each of them:
nearly the accuracy of central differential privacy without a trusted server.

Theorems used:
- docs/reference/accounting.md, Propositions 6 and 7: n discrete Gaussians of scale sigma >= 1/2
  added to integer data are, up to a gap that is charged, a rounded continuous Gaussian of variance
  n sigma^2 - r^2; rounds compose as Gaussians, with the exact curve of Balle and Wang (2018). The
  mechanism is that of Kairouz, Liu, Steinke, "The Distributed Discrete Gaussian Mechanism for
  Federated Learning with Secure Aggregation" (ICML 2021, arXiv 2102.06387).
- Balle, Bell, Gascon, Nissim, "Private Summation in the Multi-Message Shuffle Model" (CCS 2020,
  arXiv 2002.00817): split-and-mix over a group of q elements among n >= 19 honest clients reaches
  statistical security 2^-s with m >= (2 s + log2 q)/(log2 n - log2 e) + 2 messages each; distance
  2^-s from an ideal sum adds at most (1 + e^epsilon) 2^-s to delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.plan import DistributedSettings, FleetPlan
from tacit.guarantee import DpGuarantee
from tacit.noise import NoiseSource, bernoulli, discrete_gaussian

SMALLEST_N = 19  # the split-and-mix theorem needs this many honest clients
_LARGEST_SIGMA = 6000.0  # of the sum: exact sampling works in 64 bits up to here
_SMALLEST_SIGMA = 2.0  # of a client: a sum of them is one discrete Gaussian to 1e-16
_ROUNDING_MARGIN = 3.0  # standard deviations of the squared norm kept free for rounding
_MIX_SHARE = 1e-3  # of delta, for the statistical error of split-and-mix
_BLOCK_LENGTH = 8
_TAIL = 12.0  # standard deviations that a sum may stray before it counts as broken

ASSUMPTIONS = (
    "every counted report comes from a different client that follows the protocol",
    "the shuffler and the analyser do not collude, and the shuffler permutes uniformly",
    "the noise source is uniform, independent and secret",
)
NOT_COVERED = (
    "a person who holds several clients",
    "who takes part in which round and when",
    "clients that do not follow the protocol: with k of them among n counted reports the guarantee "
    "is that of n - k reports",
    "a client that reports out of range: its shares cannot be told apart, the round is spoilt",
)


def settings_of(plan: FleetPlan) -> DistributedSettings:
    """The plan's settings, or a refusal if it is for another mechanism."""
    if not isinstance(plan.settings, DistributedSettings):
        raise TacitError(f"this plan is for the mechanism {plan.mechanism}, not distributed.")
    return plan.settings


def sum_epsilon(
    received: Sequence[int], *, local_sigma: float, clip_units: int, dimension: int, delta: float
) -> float:
    """Epsilon at `delta` of sums over these numbers of clients, when one client is replaced."""
    from tacit.accounting import compose_discrete, summed_noise_gap

    gaps = {
        n: summed_noise_gap(local_sigma=local_sigma, n_clients=n, dimension=dimension)
        for n in set(received)
    }
    return compose_discrete(
        [local_sigma * math.sqrt(n) for n in received],
        clip_units=clip_units,
        dimension=dimension,
        delta=delta,
        summed_gap=math.fsum(gaps[n] for n in received),
    )


def calibrate(draft: FleetPlan, *, n_most: int) -> DistributedSettings:
    """The least noise for the plan's total, counting on `n_min` honest clients a round."""
    if draft.n_min < SMALLEST_N:
        raise TacitError(
            f"split-and-mix is proven for at least {SMALLEST_N} honest clients, got "
            f"n_min = {draft.n_min}; use the mechanism privunit for fewer."
        )
    multiplier = _multiplier(draft)
    largest = _LARGEST_SIGMA * math.sqrt(draft.n_min / n_most)
    clip_units = math.floor(min(largest / multiplier, 2.0**15))
    if clip_units**2 < 4 * _rounding_room(clip_units, draft.dimension):
        raise TacitError(
            f"{draft.n_rounds} rounds at epsilon = {draft.epsilon:g} need so much noise that "
            f"{draft.dimension} coordinates cannot be quantised; use fewer rounds or kernels."
        )
    local_sigma = _local_sigma(draft, clip_units, at_least=multiplier * clip_units)
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
    """Noise of the sum in units of the clip norm, if the grid were infinitely fine."""
    from tacit.accounting import calibrate_gaussian

    return calibrate_gaussian(
        epsilon=draft.epsilon,
        delta=draft.delta * (1.0 - _MIX_SHARE),
        rounds=draft.client_rounds,
        noise="continuous",
    )


def _local_sigma(draft: FleetPlan, clip_units: int, *, at_least: float) -> float:
    """The least noise of a client that keeps the plan's total; `at_least` is that of the sum."""
    sigma = max(_SMALLEST_SIGMA, at_least / math.sqrt(draft.n_min))
    for _ in range(1000):
        # The exact sampler takes sigma in steps of 1/64 below 64 and whole numbers above.
        step = 1.0 / 64.0 if sigma <= 63.0 else 1.0
        sigma = math.ceil(sigma / step) * step
        epsilon = sum_epsilon(
            [draft.n_min] * draft.client_rounds,
            local_sigma=sigma,
            clip_units=clip_units,
            dimension=draft.dimension,
            delta=draft.delta * (1.0 - _MIX_SHARE),
        )
        if epsilon <= draft.epsilon:
            return sigma
        sigma += 0.5 * step
    raise TacitError(
        f"no noise of the clients reaches epsilon = {draft.epsilon:g}; allow a larger one."
    )


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


def proven_bits(plan: FleetPlan, n: int) -> float:
    """Statistical security of the plan's shares mixed among n honest clients: `shares_needed` back.

    Can be negative: then nothing is proven. n counts what was received, not what was planned.
    """
    settings = settings_of(plan)
    group_bits = settings.modulus_bits * settings.block_length
    if n < SMALLEST_N:
        return -math.inf
    return 0.5 * ((settings.n_shares - 2) * (math.log2(n) - math.log2(math.e)) - group_bits)


def mixing_delta(plan: FleetPlan, received: Sequence[int], *, epsilon: float) -> float:
    """What split-and-mix among these numbers of clients adds to the delta of ideal sums."""
    blocks = math.ceil(plan.dimension / settings_of(plan).block_length)
    # Beyond these exponents the answer is "more than any delta" either way.
    distance = math.fsum(2.0 ** min(-proven_bits(plan, n), 500.0) for n in received)
    return blocks * distance * (1.0 + math.exp(min(epsilon, 300.0)))


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
    return math.sqrt(units**2 - _rounding_room(units, plan.dimension)) * (1.0 - 1e-9)


def _rounding_room(clip_units: int, dimension: int) -> float:
    """What stochastic rounding may add to the squared norm before a row has to be truncated.

    On average at most dimension / 4, with a standard deviation of at most `clip_units`.
    """
    return dimension / 4.0 + _ROUNDING_MARGIN * clip_units


def randomize(directions: Floats, plan: FleetPlan, *, source: NoiseSource) -> Integers:
    """Quantised rows plus a discrete Gaussian share each, modulo 2**modulus_bits.

    Guarantee: the sum over n >= n_min rows is (epsilon, delta)-DP as the plan states; one row
    alone is nearly bare, so rows may leave a client only as shares.
    Assumes: an aggregation that reveals only the sum; exact integer arithmetic, as here.
    Composes: over rounds as Gaussian noise does; `sum_epsilon` counts the reports received.
    Not covered: who took part.
    """
    settings = settings_of(plan)
    exact = quantise(directions, plan, source=source)
    noise = discrete_gaussian(exact.shape, sigma=settings.local_sigma, source=source)
    masked: Integers = (exact + noise) % 2**settings.modulus_bits
    return masked


def summed(directions: Floats, plan: FleetPlan, *, source: NoiseSource) -> Integers:
    """The simulator's shortcut: the sum of quantised rows plus one discrete Gaussian draw.

    The draw has the variance of the clients' shares together; by Proposition 6 of
    docs/reference/accounting.md their laws differ by a factor of at most 1 + 1e-16 per coordinate.
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
    """What one client has spent after taking part in rounds with these numbers of reports.

    Guarantee: for n_min reports and more the plan's delta, whose share for mixing the plan has set
    aside. Fewer reports make less noise and mix less well: epsilon grows, and delta by what the
    shares give at this n. Where mixing alone would cost more than the plan's delta, or the
    theorem does not apply (below 19), the secure sum is given up: what is left is every client's
    own noise, which needs neither the others nor the shuffler.
    """
    if not received:
        return None
    ideal = plan.delta * (1.0 - _MIX_SHARE)
    epsilon = _epsilon_at(plan, received, delta=ideal)
    mixing = mixing_delta(plan, received, epsilon=epsilon)
    if mixing > plan.delta:
        return _own_noise(plan, received)
    return DpGuarantee(
        epsilon=epsilon,
        delta=max(plan.delta, ideal + mixing),
        model="distributed",
        unit="client",
        assumptions=ASSUMPTIONS,
        not_covered=NOT_COVERED,
    )


def _own_noise(plan: FleetPlan, received: Sequence[int]) -> DpGuarantee:
    """What protects a client whose report is seen by itself: all messages are drawn from it."""
    said = (
        f"no secure sum is proven for a batch of {min(received)} reports: epsilon is that of each "
        "client's own noise, and holds even if shuffler and analyser collude"
    )
    return DpGuarantee(
        epsilon=_epsilon_at(plan, [1] * len(received), delta=plan.delta),
        delta=plan.delta,
        model="local",
        unit="client",
        assumptions=(said, ASSUMPTIONS[-1]),
        not_covered=NOT_COVERED[:2],
    )


def _epsilon_at(plan: FleetPlan, received: Sequence[int], *, delta: float) -> float:
    settings = settings_of(plan)
    return sum_epsilon(
        received,
        local_sigma=settings.local_sigma,
        clip_units=settings.clip_units,
        dimension=plan.dimension,
        delta=delta,
    )
