"""The `distributed` report: discrete Gaussian noise in every client, and only the sum is seen.

A client quantises its direction to integers of bounded norm, adds a discrete Gaussian share and
splits the result into two additive shares, one for each of two servers. Both add up what they have,
and only the sums meet: the noise of all clients together protects each of them. Nearly the accuracy
of central differential privacy without a trusted server.

Theorems used:
- docs/reference/accounting.md, Propositions 6 and 7: n discrete Gaussians of scale sigma >= 1/2
  added to integer data are, up to a gap that is charged, a rounded continuous Gaussian of variance
  n sigma^2 - r^2; rounds compose as Gaussians, with the exact curve of Balle and Wang (2018). The
  mechanism is that of Kairouz, Liu, Steinke, "The Distributed Discrete Gaussian Mechanism for
  Federated Learning with Secure Aggregation" (ICML 2021, arXiv 2102.06387).
- docs/guarantees/fleet.md, "Two servers": what either server sees, even if it cheats, is worked out
  from the sum over at least n_min reports, up to the security of the ciphers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.plan import DistributedSettings, FleetPlan
from tacit.fleet.reports import shares
from tacit.fleet.reports.protocol import NodeBudget, Parts, Report, RoundSum
from tacit.fleet.reports.stated_costs import check_stated_costs
from tacit.guarantee import DpGuarantee, round_up
from tacit.noise import NoiseSource, discrete_gaussian, rounded_at_random

_LARGEST_SIGMA = 6000.0  # of the sum: exact sampling works in 64 bits up to here
_SMALLEST_SIGMA = 2.0  # of a client: a sum of them is one discrete Gaussian to 1e-16
_ROUNDING_MARGIN = 3.0  # standard deviations of the squared norm kept free for rounding
_TAIL = 12.0  # standard deviations that a sum's length may stray before it counts as broken

ASSUMPTIONS = (
    "every counted report comes from a different client that follows the protocol",
    "the share helper and the analyser do not collude; either of them alone may cheat",
    "AES-256, X25519 with ChaCha20-Poly1305 and Ed25519 are secure: the guarantee is computational",
    "the noise source is uniform, independent and secret",
)
NOT_COVERED = (
    "a person who holds several clients",
    "who takes part in which round and when",
    "clients that do not follow the protocol: with k of them among n counted reports the guarantee "
    "is that of n - k reports",
    "the model, which a client or a server that cheats can spoil within the range of honest sums",
)


class DistributedReport(Report):
    """Two shares that mean nothing one by one; the sum of all carries the noise of all clients."""

    settings_type = DistributedSettings
    shows_single_reports = False

    def __init__(self, plan: FleetPlan) -> None:
        super().__init__(plan)
        if not isinstance(plan.settings, DistributedSettings):
            raise TacitError(f"this plan is for the mechanism {plan.mechanism}, not distributed.")
        self.settings = plan.settings

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
        """The size of a masked vector."""
        return shares.vector_bytes(self.plan.dimension)

    @property
    def helper_bytes(self) -> int:
        """The size of a mask's seed."""
        return shares.SEED_BYTES

    def randomize(self, directions: Floats, *, source: NoiseSource) -> Integers:
        """Quantised rows plus a discrete Gaussian share each, modulo 2**32.

        Guarantee: the sum over n >= n_min rows is (epsilon, delta)-DP as the plan states; one row
        alone is hardly protected, so rows may leave a client only as shares.
        Assumes: an aggregation that reveals only the sum; exact integer arithmetic, as here.
        Composes: over rounds as Gaussian noise does; `sum_epsilon` counts the reports received.
        Not covered: who took part.
        """
        exact = self.quantise(directions, source=source)
        noise = discrete_gaussian(exact.shape, sigma=self.settings.local_sigma, source=source)
        masked: Integers = (exact + noise) % shares.MODULUS
        return masked

    def encode(self, report: Floats | Integers, *, source: NoiseSource) -> Parts:
        """The masked report for the analyser, the mask's seed for the share helper."""
        return Parts(*shares.split(report.astype(np.int64), source=source))

    def check(self, message: bytes) -> None:
        """Every masked vector looks like any other: nothing but its size can be told."""
        shares.read_vector(message, dimension=self.plan.dimension)

    def sum_helper_parts(self, parts: Iterable[bytes]) -> bytes:
        """The sum of the masks of the agreed reports."""
        return shares.sum_masks(parts, dimension=self.plan.dimension)

    def collect(self, messages: Iterable[bytes], helper_sum: bytes = b"") -> RoundSum:
        """The mean of all reports from the two servers' sums; refuses one that cannot be honest."""
        vectors, n = shares.sum_vectors(messages, dimension=self.plan.dimension)
        self.check_enough(n)
        total = shares.unmask(vectors, helper_sum, dimension=self.plan.dimension)
        return RoundSum(self.mean_direction(total, n), n, 0)

    def block_total(self, directions: Floats, *, source: NoiseSource) -> Integers:
        """The sum of quantised rows; the noise is drawn once, for all clients together."""
        total: Integers = self.quantise(directions, source=source).sum(axis=0)
        return total

    def released_mean(self, total: Floats | Integers, n: int, *, source: NoiseSource) -> Floats:
        """The mean from one draw of the clients' noise together."""
        return self.mean_direction(self.noised_total(total.astype(np.int64), n, source=source), n)

    def noised_total(self, total: Integers, n: int, *, source: NoiseSource) -> Integers:
        """The simulator's shortcut: a sum of `n` quantised rows plus one discrete Gaussian draw.

        The draw has the variance of the clients' shares together; by Proposition 6 of
        docs/reference/accounting.md their laws differ by at most a factor of 1 + 1e-16 per
        coordinate.
        """
        sigma = self.settings.local_sigma * math.sqrt(n)
        noise = discrete_gaussian(total.shape, sigma=sigma, source=source)
        masked: Integers = (total + noise) % shares.MODULUS
        return masked

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
        """What the round adds to the guarantee of sums over `n_min` nodes, the fewest there are."""
        n_min, delta = self.plan.n_min, self.plan.delta
        epsilon = self._epsilon_at([n_min] * round_index, delta=delta)
        if round_index == 1:
            return self.stated_cost(epsilon=epsilon, delta=delta)
        before = self._epsilon_at([n_min] * (round_index - 1), delta=delta)
        return self.stated_cost(epsilon=epsilon - before, delta=0.0)

    def stated_cost(self, *, epsilon: float, delta: float) -> DpGuarantee:
        """A node's cost of one round as a guarantee; the first of a run carries its delta."""
        return DpGuarantee(
            epsilon=epsilon,
            delta=delta,
            model="distributed",
            unit="client",
            assumptions=ASSUMPTIONS,
            not_covered=NOT_COVERED,
        )

    def check_stated(self, costs: Sequence[tuple[float, float]]) -> None:
        """Refuse costs below those of Gaussian noise of the same variance on `n_min` reports."""
        sigma = self.settings.local_sigma * math.sqrt(self.plan.n_min)
        shift = 2.0 * self.settings.clip_units / sigma  # replacing a client moves a sum this far
        check_stated_costs(costs, shift_per_sigma=shift, delta=self.plan.delta)

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
        norms = np.sqrt(np.einsum("ij,ij->i", directions, directions))[:, None]
        scaled = directions * (self.direction_scale / np.maximum(norms, 1.0))
        rounded = rounded_at_random(scaled, source=source)
        # Whole numbers below 2**53: sums of their squares are exact in float64.
        too_long = np.einsum("ij,ij->i", rounded, rounded) > units**2
        if np.any(too_long):
            rounded[too_long] = np.trunc(scaled[too_long])
            if np.any(np.einsum("ij,ij->i", rounded, rounded) > units**2):
                raise TacitError(
                    "an update exceeds its norm bound after rounding; it is not released."
                )
        return rounded.astype(np.int64)

    @property
    def direction_scale(self) -> float:
        """Integer units of a direction of norm 1; what `quantise` multiplies with."""
        units = self.settings.clip_units
        return math.sqrt(units**2 - _rounding_room(units, self.plan.dimension)) * (1.0 - 1e-9)

    def mean_direction(self, total: Integers, n: int) -> Floats:
        """The mean update from a sum modulo 2**32; refuses a sum that is too long to be honest.

        A client or a server that cheats can move the sum anywhere within that length, and no
        further. An honest sum is longer with probability below e^-72: its noise is subgaussian.
        """
        signed = (total + shares.MODULUS // 2) % shares.MODULUS - shares.MODULUS // 2
        norm, longest = float(np.linalg.norm(signed)), self.longest_sum(n)
        if norm > longest:
            raise TacitError(
                f"the sum has a norm of {norm:.6g}, beyond the {longest:.6g} that {n} honest "
                "reports can reach; the round is not used."
            )
        mean: Floats = signed / (n * self.direction_scale)
        return mean

    def longest_sum(self, n: int) -> float:
        """The norm that the sum of `n` honest reports does not pass."""
        return _longest_sum(
            n,
            clip_units=self.settings.clip_units,
            local_sigma=self.settings.local_sigma,
            dimension=self.plan.dimension,
        )

    def _composed(self, received: Sequence[int]) -> DpGuarantee:
        """What sums over these numbers of clients cost each of them.

        A server that cheats can leave reports out, but never go below `n_min`: against it the
        plan's own total holds, which the assumptions say.
        """
        epsilon = self._epsilon_at(received, delta=self.plan.delta)
        plan = self.plan
        cheated = (
            f"against a share helper or an analyser that leaves reports out, ({plan.epsilon:g}, "
            f"{plan.delta:g}) holds: a sum of fewer than {plan.n_min} reports never exists"
        )
        return DpGuarantee(
            epsilon=epsilon,
            delta=plan.delta,
            model="distributed",
            unit="client",
            assumptions=(*ASSUMPTIONS, cheated),
            not_covered=(*NOT_COVERED, self._collusion(len(received))),
        )

    def _collusion(self, n_rounds: int) -> str:
        alone = round_up(self._epsilon_at([1] * n_rounds, delta=self.plan.delta))
        return (
            "share helper and analyser in collusion: against both, each client's own noise is "
            f"left, epsilon {alone} over the rounds so far"
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
    multiplier = _multiplier(draft)
    largest = _LARGEST_SIGMA * math.sqrt(draft.n_min / n_most)
    clip_units = math.floor(min(largest / multiplier, 2.0**15))
    if clip_units**2 < 4 * _rounding_room(clip_units, draft.dimension):
        raise TacitError(
            f"{draft.n_rounds} rounds at epsilon = {draft.epsilon:g} need so much noise that "
            f"{draft.dimension} coordinates cannot be quantised; use fewer rounds or kernels."
        )
    local_sigma = _local_sigma(draft, clip_units, at_least=multiplier * clip_units)
    longest = _longest_sum(
        n_most, clip_units=clip_units, local_sigma=local_sigma, dimension=draft.dimension
    )
    if longest >= shares.MODULUS // 2:
        raise TacitError(
            f"the sum of {n_most} reports would pass 2**31; ask fewer clients per round."
        )
    return DistributedSettings(clip_units=clip_units, local_sigma=local_sigma)


def _longest_sum(n: int, *, clip_units: int, local_sigma: float, dimension: int) -> float:
    noise = local_sigma * math.sqrt(n) * (math.sqrt(dimension) + _TAIL)
    return n * clip_units + noise


def _multiplier(draft: FleetPlan) -> float:
    """Noise of the sum in units of the clip norm, if the grid were infinitely fine."""
    from tacit.accounting import calibrate_gaussian

    return calibrate_gaussian(
        epsilon=draft.epsilon,
        delta=draft.delta,
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
            delta=draft.delta,
        )
        if epsilon <= draft.epsilon:
            return sigma
        sigma += 0.5 * step
    raise TacitError(
        f"no noise of the clients reaches epsilon = {draft.epsilon:g}; allow a larger one."
    )


def _rounding_room(clip_units: int, dimension: int) -> float:
    """What stochastic rounding may add to the squared norm before a row has to be truncated.

    On average at most dimension / 4, with a standard deviation of at most `clip_units`.
    """
    return dimension / 4.0 + _ROUNDING_MARGIN * clip_units
