"""The `privunit` report: an update's direction through PrivUnitG, for shuffling and averaging."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan, PrivUnitSettings
from tacit.fleet.reports.privunit_sum import DRAWN_ONE_BY_ONE, SIMULATED, summed_releases
from tacit.fleet.reports.protocol import NodeBudget, Parts, Report, RoundSum
from tacit.guarantee import DpGuarantee, round_up
from tacit.mechanisms import PrivUnitG, calibrate_privunit, randomize_directions, second_moment
from tacit.noise import SYSTEM_NOISE, NoiseSource

_PRECISION = 1e-4  # relative, of a calibrated local epsilon
_TAIL = 8.0  # a standard normal passes it with probability 6e-16
_WORTH_A_DELTA = 0.99  # a gain of less than one percent is no reason to give up pure privacy
_PIECE = 100  # reports that are drawn at a time: what a cache holds
_STEP = 1e-6  # of a local epsilon that people read in a file

ASSUMPTIONS = (
    "the shuffler and the analyser do not collude, and the shuffler permutes uniformly",
    "every counted report comes from a different client that follows the protocol",
    "the noise source is uniform, independent and secret",
)
NOT_COVERED = (
    "a person who holds several clients",
    "who takes part in which round and when",
)


class PrivUnitReport(Report):
    """One float32 vector per client: a direction through PrivUnitG."""

    settings_type = PrivUnitSettings
    shows_single_reports = True
    most_simulated: ClassVar[int | None] = DRAWN_ONE_BY_ONE

    def __init__(self, plan: FleetPlan) -> None:
        super().__init__(plan)
        if not isinstance(plan.settings, PrivUnitSettings):
            raise TacitError(f"this plan is for the mechanism {plan.mechanism}, not privunit.")
        self.local_epsilon = plan.settings.local_epsilon

    @staticmethod
    def calibrate(draft: FleetPlan, *, n_most: int) -> PrivUnitSettings:
        """The largest local epsilon whose rounds compose to the plan's total, to one in 10,000."""
        return PrivUnitSettings(local_epsilon=_calibrated_epsilon(draft))

    @staticmethod
    def default_rounds(n_clients: int) -> int:
        """Few clients do best with many rounds: the less a report spends, the more it is amplified.

        With few clients that outweighs everything else. Chosen on WISDM and HHAR.
        """
        return 320 if n_clients < 500 else 80

    @property
    def parameters(self) -> PrivUnitG:
        """PrivUnitG of least variance for the plan's local epsilon and dimension."""
        return _parameters(self.local_epsilon, self.plan.dimension)

    @property
    def largest_norm(self) -> float:
        """No honest report is longer; the analyser refuses longer ones."""
        g = self.parameters
        return g.sigma * (math.sqrt(self.plan.dimension) + abs(g.gamma) + _TAIL)

    @property
    def message_bytes(self) -> int:
        """Four bytes for every coordinate."""
        return 4 * self.plan.dimension

    def randomize(self, directions: Floats, *, source: NoiseSource) -> Floats:
        """Release every row, a direction of norm at most 1; float32 values within `largest_norm`.

        Guarantee: each row is `local_epsilon`-LDP (pure) when a client's whole data are replaced.
        Assumes: `source` is uniform, independent and secret.
        Composes: shuffled rows amplify, rounds compose by privacy loss distributions; see
        `shuffled_epsilon`.
        Not covered: that a report was sent.
        """
        released = randomize_directions(directions, self.parameters, source=source)
        # Both steps see only the release: shortening an outlier and rounding cost nothing.
        norms = np.linalg.norm(released, axis=1, keepdims=True)
        released *= np.minimum(1.0, self.largest_norm / np.maximum(norms, 1e-300))
        return released.astype(np.float32).astype(np.float64)

    def encode(self, report: Floats | Integers, *, source: NoiseSource = SYSTEM_NOISE) -> Parts:
        """One message of little-endian float32."""
        if report.shape != (self.plan.dimension,):
            raise TacitError(
                f"a report has {self.plan.dimension} values here, got shape {report.shape}."
            )
        return Parts(report.astype("<f4").tobytes())

    def decode(self, message: bytes) -> Floats:
        """Read a report back, or refuse what the randomizer cannot have produced."""
        if len(message) != self.message_bytes:
            raise TacitError(f"a report has {self.message_bytes} bytes here, got {len(message)}.")
        report = np.frombuffer(message, dtype="<f4").astype(np.float64)
        norm = float(np.linalg.norm(report)) if np.all(np.isfinite(report)) else math.inf
        if not norm <= self.largest_norm * (1.0 + 1e-6):
            raise TacitError(
                f"a report of norm {norm:.6g} lies outside the randomizer's range of "
                f"{self.largest_norm:.6g}; it is not counted."
            )
        return report

    def check(self, message: bytes) -> None:
        """Refuse a message that the randomizer cannot have produced."""
        self.decode(message)

    def collect(self, messages: Iterable[bytes], helper_sum: bytes = b"") -> RoundSum:
        """The mean of the valid reports, if there are enough."""
        valid, refused = [], 0
        for message in messages:
            try:
                valid.append(self.decode(message))
            except TacitError:
                refused += 1
        self.check_enough(len(valid))
        reports = np.array(valid).reshape(-1, self.plan.dimension)
        return RoundSum(reports.mean(axis=0), len(reports), refused)

    def block_total(self, directions: Floats, *, source: NoiseSource) -> Floats:
        """The sum of these clients' reports: each drawn by itself, in a large fleet all at once."""
        if self._drawn_at_once:
            return summed_releases(directions, self.parameters, source=source)
        pieces = np.array_split(directions, -(-len(directions) // _PIECE))
        parts = [self.randomize(piece, source=source).sum(axis=0) for piece in pieces]
        total: Floats = np.sum(parts, axis=0)
        return total

    @property
    def _drawn_at_once(self) -> bool:
        return self.plan.n_min > DRAWN_ONE_BY_ONE

    @property
    def simulated_apart(self) -> str:
        """Only a large fleet takes the shortcut, which nothing is proven about."""
        return SIMULATED if self._drawn_at_once else ""

    def released_mean(self, total: Floats | Integers, n: int, *, source: NoiseSource) -> Floats:
        """The noise is in the reports."""
        mean: Floats = total / n
        return mean

    def noise_norm(self) -> float:
        """Root mean square norm of the noise on the mean of `n_min` reports."""
        return math.sqrt(second_moment(self.parameters) / self.plan.n_min)

    def weight(self, n: int) -> float:
        """The inverse of the variance of a mean of `n` reports."""
        return n / second_moment(self.parameters)

    def with_local_epsilon(self, local_epsilon: float, *, n_min: int) -> PrivUnitReport:
        """Clients with this local epsilon, who hide among each other alone."""
        settings = PrivUnitSettings(local_epsilon=local_epsilon)
        return PrivUnitReport(replace(self.plan, settings=settings, n_min=n_min))

    def node_cost(self, round_index: int) -> DpGuarantee:
        """The node's own local guarantee, which needs to trust nobody."""
        return DpGuarantee(
            epsilon=self.local_epsilon,
            model="local",
            unit="client",
            assumptions=(ASSUMPTIONS[-1],),
        )

    def node_budget(self) -> NodeBudget:
        """The sum of the local epsilons."""
        return NodeBudget(epsilon=round_up(self.plan.client_rounds * self.local_epsilon, digits=9))

    def plan_for_files(self) -> FleetPlan:
        """The local epsilon cut to six decimals, so that rounding cannot carry a sum past a budget.

        Where shuffling gains too little to be claimed, it is an equal share of the total instead.
        """
        plan = self.plan
        share, rounds = plan.epsilon / plan.client_rounds, [plan.n_min] * plan.client_rounds
        cut = _cut(max(self.local_epsilon, share))
        total, _ = composed_epsilon(rounds, local_epsilon=cut, delta=plan.delta)
        local_epsilon = cut if total <= plan.epsilon else _cut(share)
        return replace(plan, settings=PrivUnitSettings(local_epsilon=local_epsilon))

    def _composed(self, received: Sequence[int]) -> DpGuarantee:
        plan = self.plan
        found = shuffled_guarantee(
            received,
            local_epsilon=self.local_epsilon,
            delta=plan.delta,
            promised=plan.epsilon,
        )
        if not found.delta:
            return found
        chosen = (
            "nobody chose the sizes of later batches by what earlier ones showed; against a server "
            f"or an analyser that does, ({plan.epsilon:g}, {plan.delta:g}) holds as long as every "
            f"batch has at least {plan.n_min} reports"
        )
        return replace(found, assumptions=(*found.assumptions, chosen))


@lru_cache(maxsize=64)
def _parameters(epsilon: float, dimension: int) -> PrivUnitG:
    return calibrate_privunit(epsilon=epsilon, dimension=dimension)


def _cut(epsilon: float) -> float:
    return round(math.floor(epsilon * (1.0 - 1e-9) / _STEP) * _STEP, 6)


def _calibrated_epsilon(draft: FleetPlan) -> float:
    """The largest local epsilon that fits the total.

    Plain local composition, epsilon / rounds, needs no shuffler and always fits; from there it is
    doubled until it does not, and the root of the logarithms, nearly a line, lies in between.
    """
    from scipy.optimize import brentq

    rounds = [draft.n_min] * draft.client_rounds

    def excess(local_epsilon: float) -> float:
        shuffled = shuffled_epsilon(rounds, local_epsilon=local_epsilon, delta=draft.delta)
        return math.log(min(shuffled, local_epsilon * len(rounds)) / draft.epsilon)

    # Rounding may carry the sum of the shares a hair above what was asked for, and so does
    # accounting, which rounds up.
    share = draft.epsilon / len(rounds)
    starts = [share, math.nextafter(share, 0.0)]
    starts += [share * (1.0 - slack) for slack in (1e-9, 1e-7, 1e-5, 1e-4)]
    fits = (s for s in starts if s * len(rounds) <= draft.epsilon and excess(s) <= 0.0)
    plain = next(fits, None)
    if plain is None:
        raise TacitError(
            f"no local epsilon was found for {draft.client_rounds} rounds of {draft.n_min} reports "
            f"at epsilon = {draft.epsilon:g}; use other rounds or another epsilon."
        )
    low = plain
    while excess(2.0 * low) <= 0.0:
        low *= 2.0
    # A hair wider than the bracket, because a logarithm and back may round.
    ends = math.log(low) - 1e-9, math.log(2.0 * low) + 1e-9
    found = math.exp(brentq(lambda x: excess(math.exp(x)), *ends, xtol=_PRECISION / 4))
    while excess(found) > 0.0:
        found *= 1.0 - _PRECISION / 4
    # What shuffling adds to the plain share must be worth being claimed.
    amplified = found > plain * (1.0 + _PRECISION)
    return found if amplified else plain


def shuffled_epsilon(received: Sequence[int], *, local_epsilon: float, delta: float) -> float:
    """Epsilon at `delta` of rounds in which these many reports were shuffled.

    Guarantee: the privacy blanket of PrivUnitG (docs/guarantees/blanket.md), composed by
    privacy loss distributions, or the sum of the local epsilons where that is smaller. Whether
    `delta` is small enough is decided when a run is planned; what was received is always accounted.
    """
    from tacit.accounting import compose_shuffled, privunit_cap

    rounds = [(local_epsilon, n) for n in received]
    return compose_shuffled(rounds, delta=delta, cap=privunit_cap, force=True)


def composed_epsilon(
    received: Sequence[int], *, local_epsilon: float, delta: float, promised: float = math.inf
) -> tuple[float, float]:
    """(epsilon, delta) of shuffled rounds with these numbers of reports: the better bound.

    The sum of the local epsilons always holds, with delta 0. Amplification by shuffling is
    claimed where it is worth a delta, or where the sum would pass the `promised` epsilon.
    """
    local = float(local_epsilon * len(received))
    shuffled = shuffled_epsilon(received, local_epsilon=local_epsilon, delta=delta)
    worth_it = shuffled < _WORTH_A_DELTA * local or shuffled < local > promised
    return (shuffled, delta) if worth_it else (local, 0.0)


def shuffled_guarantee(
    received: Sequence[int], *, local_epsilon: float, delta: float, promised: float = math.inf
) -> DpGuarantee:
    """The guarantee after batches of these many reports, at least one batch.

    Where shuffling gains nothing, it is the nodes' own, local one, and says that it does not need
    the shuffler at all.
    """
    epsilon, spent_delta = composed_epsilon(
        received, local_epsilon=local_epsilon, delta=delta, promised=promised
    )
    fewest = min(received)
    not_covered: tuple[str, ...] = NOT_COVERED
    if spent_delta:
        said = f"amplified by shuffling batches of at least {fewest} reports"
        assumptions: tuple[str, ...] = (said, *ASSUMPTIONS)
        not_covered = (*NOT_COVERED, _cheating_shuffler(received, local_epsilon=local_epsilon))
    else:
        said = (
            f"no amplification is claimed for batches of {fewest} reports: epsilon is the sum of "
            "the local epsilons, and holds even if shuffler and analyser collude"
        )
        assumptions = (said, ASSUMPTIONS[-1])
    return DpGuarantee(
        epsilon=epsilon,
        delta=spent_delta,
        model="shuffle" if spent_delta else "local",
        unit="client",
        assumptions=assumptions,
        not_covered=not_covered,
    )


def _cheating_shuffler(received: Sequence[int], *, local_epsilon: float) -> str:
    total = round_up(local_epsilon * len(received))
    return (
        "a shuffler that forwards one client among reports of its own making: against it each "
        f"report's own local epsilon holds, {round_up(local_epsilon)} a round and {total} in all"
    )
