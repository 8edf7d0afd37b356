"""The `privunit` report: an update's direction through PrivUnitG, for shuffling and averaging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.plan import FleetPlan, PrivUnitSettings
from tacit.guarantee import DpGuarantee
from tacit.mechanisms import PrivUnitG, calibrate_privunit, randomize_directions, second_moment
from tacit.noise import NoiseSource

_PRECISION = 1e-4  # relative, of a calibrated local epsilon
_TAIL = 8.0  # a standard normal passes it with probability 6e-16

ASSUMPTIONS = (
    "the shuffler and the analyser do not collude, and the shuffler permutes uniformly",
    "every counted report comes from a different client that follows the protocol",
    "the noise source is uniform, independent and secret; idealised real arithmetic",
)
NOT_COVERED = (
    "a person who holds several clients",
    "who takes part in which round and when",
)


def settings_of(plan: FleetPlan) -> PrivUnitSettings:
    """The plan's settings, or a refusal if it is for another mechanism."""
    if not isinstance(plan.settings, PrivUnitSettings):
        raise TacitError(f"this plan is for the mechanism {plan.mechanism}, not privunit.")
    return plan.settings


@lru_cache(maxsize=64)
def _parameters(epsilon: float, dimension: int) -> PrivUnitG:
    return calibrate_privunit(epsilon=epsilon, dimension=dimension)


def parameters(plan: FleetPlan) -> PrivUnitG:
    """PrivUnitG of least variance for the plan's local epsilon and dimension."""
    return _parameters(settings_of(plan).local_epsilon, plan.dimension)


def calibrate(draft: FleetPlan) -> PrivUnitSettings:
    """The largest local epsilon whose rounds compose to the plan's total, to one in 10,000.

    Plain local composition, epsilon / rounds, needs no shuffler and always fits; from there it is
    doubled until it does not, and the root of the logarithms, nearly a line, lies in between.
    """
    from scipy.optimize import brentq

    def excess(local_epsilon: float) -> float:
        settings = PrivUnitSettings(local_epsilon=local_epsilon)
        total = spent(replace(draft, settings=settings), [draft.n_min] * draft.client_rounds)
        return math.inf if total is None else math.log(total.epsilon / draft.epsilon)

    # Accounting rounds up: what is spent may lie a hair above the share of it that was asked for.
    share = draft.epsilon / draft.client_rounds
    starts = [share * (1.0 - slack) for slack in (0.0, 1e-9, 1e-7, 1e-5, 1e-4)]
    plain = next((start for start in starts if excess(start) <= 0.0), None)
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
    return PrivUnitSettings(local_epsilon=found if amplified else plain)


def shuffled_epsilon(received: Sequence[int], *, local_epsilon: float, delta: float) -> float:
    """Epsilon at `delta` of rounds in which these many reports were shuffled.

    Guarantee: clones of PrivUnitG (docs/reference/accounting.md, Proposition 8), composed by
    privacy loss distributions, or the sum of the local epsilons where that is smaller. Whether
    `delta` is small enough is decided when a run is planned; what was received is always accounted.
    """
    from tacit.accounting import compose_shuffled

    # The cap depends on epsilon only, not on the dimension; a larger one is on the safe side.
    cap = _parameters(local_epsilon, 1).q * (1.0 + 1e-9)
    rounds = [(local_epsilon, n) for n in received]
    return compose_shuffled(rounds, delta=delta, cap=cap, force=True)


def randomize(directions: Floats, plan: FleetPlan, *, source: NoiseSource) -> Floats:
    """Release every row, a direction of norm at most 1; float32 values within `largest_norm`.

    Guarantee: each row is `local_epsilon`-LDP (pure) when a client's whole data are replaced.
    Assumes: idealised real arithmetic; `source` is uniform, independent and secret.
    Composes: shuffled rows amplify, rounds compose by privacy loss distributions; see
    `shuffled_epsilon`.
    Not covered: that a report was sent.
    """
    released = randomize_directions(directions, parameters(plan), source=source)
    # Both steps see only the release: shortening an outlier and rounding cost nothing.
    norms = np.linalg.norm(released, axis=1, keepdims=True)
    released *= np.minimum(1.0, largest_norm(plan) / np.maximum(norms, 1e-300))
    return released.astype(np.float32).astype(np.float64)


def largest_norm(plan: FleetPlan) -> float:
    """No honest report is longer; the analyser refuses longer ones."""
    g = parameters(plan)
    return g.sigma * (math.sqrt(plan.dimension) + abs(g.gamma) + _TAIL)


def noise_norm(plan: FleetPlan) -> float:
    """Root mean square norm of the noise on the mean of `n_min` reports."""
    return math.sqrt(second_moment(parameters(plan)) / plan.n_min)


def encode(report: Floats, plan: FleetPlan) -> bytes:
    """A report as `message_bytes` bytes of little-endian float32."""
    if report.shape != (plan.dimension,):
        raise TacitError(f"a report has {plan.dimension} values here, got shape {report.shape}.")
    return report.astype("<f4").tobytes()


def message_bytes(plan: FleetPlan) -> int:
    """The one size that a report has."""
    return 4 * plan.dimension


def decode(message: bytes, plan: FleetPlan) -> Floats:
    """Read a report back, or refuse what the randomizer cannot have produced."""
    if len(message) != message_bytes(plan):
        raise TacitError(f"a report has {message_bytes(plan)} bytes here, got {len(message)}.")
    report = np.frombuffer(message, dtype="<f4").astype(np.float64)
    norm = float(np.linalg.norm(report)) if np.all(np.isfinite(report)) else math.inf
    if not norm <= largest_norm(plan) * (1.0 + 1e-6):
        raise TacitError(
            f"a report of norm {norm:.6g} lies outside the randomizer's range of "
            f"{largest_norm(plan):.6g}; it is not counted."
        )
    return report


def spent(plan: FleetPlan, received: Sequence[int]) -> DpGuarantee | None:
    """What one client has spent after taking part in rounds with these numbers of reports."""
    if not received:
        return None
    local_epsilon = settings_of(plan).local_epsilon
    plain = local_epsilon * len(received)
    shuffled = shuffled_epsilon(received, local_epsilon=local_epsilon, delta=plan.delta)
    return DpGuarantee(
        epsilon=min(plain, shuffled),
        delta=plan.delta if shuffled < plain else 0.0,
        model="shuffle",
        unit="client",
        assumptions=ASSUMPTIONS,
        not_covered=NOT_COVERED,
    )
