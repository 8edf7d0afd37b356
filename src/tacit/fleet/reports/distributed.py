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
from collections.abc import Iterable, Sequence

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.plan import DistributedSettings, FleetPlan
from tacit.fleet.reports import shares
from tacit.fleet.reports.protocol import NodeBudget, Report, RoundSum
from tacit.guarantee import DpGuarantee, round_up
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


class DistributedReport(Report):
    """Integer shares that mean nothing one by one; their sum carries the noise of all clients."""

    settings_type = DistributedSettings
    shows_single_reports = False

    def __init__(self, plan: FleetPlan) -> None:
        super().__init__(plan)
        if not isinstance(plan.settings, DistributedSettings):
            raise TacitError(f"this plan is for the mechanism {plan.mechanism}, not distributed.")
        self.settings = plan.settings
        self._modulus = 2**plan.settings.modulus_bits
        self._n_blocks = shares.n_blocks(plan.dimension, plan.settings)

    @staticmethod
    def calibrate(draft: FleetPlan, *, n_most: int) -> DistributedSettings:
        """The least noise for the plan's total, counting on `n_min` honest clients a round."""
        return _calibrated(draft, n_most=n_most)

    @staticmethod
    def default_rounds(n_clients: int) -> int:
        """Chosen on WISDM and HHAR."""
        return 80

    @property
    def message_bytes(self) -> int:
        """The size of one share of one block."""
        return shares.message_bytes(self.settings)

    @property
    def messages_per_client(self) -> int:
        """Every block of coordinates travels in `n_shares` messages."""
        return self._n_blocks * self.settings.n_shares

    def randomize(self, directions: Floats, *, source: NoiseSource) -> Integers:
        """Quantised rows plus a discrete Gaussian share each, modulo 2**modulus_bits.

        Guarantee: the sum over n >= n_min rows is (epsilon, delta)-DP as the plan states; one row
        alone is hardly protected, so rows may leave a client only as shares.
        Assumes: an aggregation that reveals only the sum; exact integer arithmetic, as here.
        Composes: over rounds as Gaussian noise does; `sum_epsilon` counts the reports received.
        Not covered: who took part.
        """
        exact = self.quantise(directions, source=source)
        noise = discrete_gaussian(exact.shape, sigma=self.settings.local_sigma, source=source)
        masked: Integers = (exact + noise) % self._modulus
        return masked

    def encode(self, report: Floats | Integers, *, source: NoiseSource) -> list[bytes]:
        """The report split into shares, a message each."""
        return shares.encode(shares.split(report.astype(np.int64), self.settings, source=source))

    def check(self, message: bytes) -> None:
        """Every share looks like any other: nothing can be told from one alone."""

    def collect(self, messages: Iterable[bytes]) -> RoundSum:
        """The mean of all reports from their mixed shares; one bad share spoils the round."""
        mixed = shares.combine(messages, self.settings, dimension=self.plan.dimension)
        self.check_enough(mixed.n)
        return RoundSum(self.mean_direction(mixed.total, mixed.n), mixed.n, 0)

    def simulated_mean(self, directions: Floats, *, source: NoiseSource) -> Floats:
        """The mean from one draw of the clients' noise together."""
        return self.mean_direction(self.summed(directions, source=source), len(directions))

    def noise_norm(self) -> float:
        """Root mean square norm of the noise on the mean of `n_min` unit updates."""
        one = self.settings.local_sigma / self.settings.clip_units
        return one * math.sqrt(self.plan.dimension / self.plan.n_min)

    def weight(self, n: int) -> float:
        """All reports of a plan have equal noise."""
        return float(n)

    def with_local_epsilon(self, local_epsilon: float, *, n_min: int) -> Report:
        """Refused: the noise of a sum belongs to all of its clients."""
        raise TacitError(
            "a local epsilon per client needs the mechanism privunit; a sum has one noise for all."
        )

    def node_cost(self, round_index: int) -> DpGuarantee:
        """What the round adds to the guarantee of sums over `n_min` nodes: one report is shares."""
        after = self._composed([self.plan.n_min] * round_index)
        epsilon, delta = after.epsilon, after.delta
        if round_index > 1:
            before = self._composed([self.plan.n_min] * (round_index - 1))
            epsilon, delta = epsilon - before.epsilon, delta - before.delta
        return DpGuarantee(
            epsilon=epsilon,
            delta=delta,
            model=after.model,
            unit="client",
            assumptions=after.assumptions,
            not_covered=after.not_covered,
        )

    def node_budget(self) -> NodeBudget:
        """The plan's own total."""
        epsilon = round_up(self.plan.epsilon, digits=9)
        return NodeBudget(epsilon=epsilon, delta=self.plan.delta)

    def quantise(self, directions: Floats, *, source: NoiseSource) -> Integers:
        """Round rows of norm at most 1 to integers of norm at most `clip_units`, checked exactly.

        Stochastic rounding, which is unbiased; a row that comes out too long is rounded towards
        zero instead, which cannot lengthen it.
        """
        units = self.settings.clip_units
        norms = np.linalg.norm(directions, axis=1, keepdims=True)
        scaled = directions * (self.direction_scale / np.maximum(norms, 1.0))
        floor = np.floor(scaled)
        up = bernoulli(scaled - floor, scaled.shape, source=source)
        rounded: Integers = (floor + up).astype(np.int64)
        too_long = np.einsum("ij,ij->i", rounded, rounded) > units**2
        rounded[too_long] = np.trunc(scaled[too_long]).astype(np.int64)
        if np.any(np.einsum("ij,ij->i", rounded, rounded) > units**2):
            raise TacitError("an update exceeds its norm bound after rounding; it is not released.")
        return rounded

    @property
    def direction_scale(self) -> float:
        """Integer units of a direction of norm 1; what `quantise` multiplies with."""
        units = self.settings.clip_units
        return math.sqrt(units**2 - _rounding_room(units, self.plan.dimension)) * (1.0 - 1e-9)

    def summed(self, directions: Floats, *, source: NoiseSource) -> Integers:
        """The simulator's shortcut: the sum of quantised rows plus one discrete Gaussian draw.

        The draw has the variance of the clients' shares together; by Proposition 6 of
        docs/reference/accounting.md their laws differ by at most a factor of 1 + 1e-16 per
        coordinate.
        """
        total = self.quantise(directions, source=source).sum(axis=0)
        sigma = self.settings.local_sigma * math.sqrt(len(directions))
        noise = discrete_gaussian(total.shape, sigma=sigma, source=source)
        masked: Integers = (total + noise) % self._modulus
        return masked

    def mean_direction(self, total: Integers, n: int) -> Floats:
        """The mean update from a sum modulo 2**modulus_bits; refuses an impossible sum."""
        signed = (total + self._modulus // 2) % self._modulus - self._modulus // 2
        spread = _TAIL * self.settings.local_sigma * math.sqrt(n)
        limit = n * self.settings.clip_units + spread
        if np.abs(signed).max() > limit:
            raise TacitError(
                f"a coordinate of the sum is {int(np.abs(signed).max())}, beyond the {limit:.0f} "
                f"that {n} honest reports can reach; the round is not used."
            )
        mean: Floats = signed / (n * self.direction_scale)
        return mean

    def proven_bits(self, n: int) -> float:
        """Statistical security of the plan's shares mixed among n honest clients.

        `shares_needed` solved for the security; can be negative: then nothing is proven. n counts
        what was received, not what was planned.
        """
        settings = self.settings
        group_bits = settings.modulus_bits * settings.block_length
        if n < SMALLEST_N:
            return -math.inf
        return 0.5 * ((settings.n_shares - 2) * (math.log2(n) - math.log2(math.e)) - group_bits)

    def mixing_delta(self, received: Sequence[int], *, epsilon: float) -> float:
        """What split-and-mix among these numbers of clients adds to the delta of ideal sums."""
        # Beyond these exponents the answer is "more than any delta" either way.
        distance = math.fsum(2.0 ** min(-self.proven_bits(n), 500.0) for n in received)
        return self._n_blocks * distance * (1.0 + math.exp(min(epsilon, 300.0)))

    def _composed(self, received: Sequence[int]) -> DpGuarantee:
        """What sums over these numbers of clients cost each of them.

        Guarantee: for n_min reports and more the plan's delta, whose share for mixing the plan has
        set aside. Fewer reports make less noise and mix less well: epsilon grows, and delta by what
        the shares give at this n. Where mixing alone would cost more than the plan's delta, or the
        theorem does not apply (below 19), the secure sum is given up: what is left is every
        client's own noise, which needs neither the others nor the shuffler.
        """
        ideal = self.plan.delta * (1.0 - _MIX_SHARE)
        epsilon = self._epsilon_at(received, delta=ideal)
        mixing = self.mixing_delta(received, epsilon=epsilon)
        if mixing > self.plan.delta:
            return self._own_noise(received)
        return DpGuarantee(
            epsilon=epsilon,
            delta=max(self.plan.delta, ideal + mixing),
            model="distributed",
            unit="client",
            assumptions=ASSUMPTIONS,
            not_covered=NOT_COVERED,
        )

    def _own_noise(self, received: Sequence[int]) -> DpGuarantee:
        """What protects a client whose report is seen by itself: all messages are drawn from it."""
        said = (
            f"no secure sum is proven for a batch of {min(received)} reports: epsilon is that of "
            "each client's own noise, and holds even if shuffler and analyser collude"
        )
        return DpGuarantee(
            epsilon=self._epsilon_at([1] * len(received), delta=self.plan.delta),
            delta=self.plan.delta,
            model="local",
            unit="client",
            assumptions=(said, ASSUMPTIONS[-1]),
            not_covered=NOT_COVERED[:2],
        )

    def _epsilon_at(self, received: Sequence[int], *, delta: float) -> float:
        return sum_epsilon(
            received,
            local_sigma=self.settings.local_sigma,
            clip_units=self.settings.clip_units,
            dimension=self.plan.dimension,
            delta=delta,
        )


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


def _calibrated(draft: FleetPlan, *, n_most: int) -> DistributedSettings:
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
    blocks = math.ceil(draft.dimension / _BLOCK_LENGTH)
    room = _MIX_SHARE * draft.delta / (draft.client_rounds * blocks)
    return math.ceil(-math.log2(room) + math.log2(1.0 + math.exp(min(draft.epsilon, 500.0))))


def shares_needed(*, n: int, group_bits: float, security_bits: float) -> int:
    """Messages per client and block for split-and-mix among n honest clients."""
    if n < SMALLEST_N:
        raise TacitError(f"split-and-mix needs at least {SMALLEST_N} honest clients, got {n}.")
    return math.ceil((2.0 * security_bits + group_bits) / (math.log2(n) - math.log2(math.e)) + 2)


def _rounding_room(clip_units: int, dimension: int) -> float:
    """What stochastic rounding may add to the squared norm before a row has to be truncated.

    On average at most dimension / 4, with a standard deviation of at most `clip_units`.
    """
    return dimension / 4.0 + _ROUNDING_MARGIN * clip_units
