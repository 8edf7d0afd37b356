"""The `privunit` report: an update's direction through PrivUnitG, for shuffling and averaging."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
_WORTH_A_DELTA = 0.99  # a gain of less than one percent is no reason to give up pure privacy

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
    return PrivUnitSettings(local_epsilon=found if amplified else plain)


def shuffled_epsilon(received: Sequence[int], *, local_epsilon: float, delta: float) -> float:
    """Epsilon at `delta` of rounds in which these many reports were shuffled.

    Guarantee: clones of PrivUnitG (docs/accounting.md, Proposition 8), composed by privacy loss
    distributions, or the sum of the local epsilons where that is smaller. Whether `delta` is small
    enough is decided when a run is planned; what was received is always accounted.
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
) -> DpGuarantee | None:
    """The guarantee after batches of these many reports; None before the first.

    Where shuffling gains nothing, it is the nodes' own, local one, and says that it does not need
    the shuffler at all.
    """
    if not received:
        return None
    epsilon, spent_delta = composed_epsilon(
        received, local_epsilon=local_epsilon, delta=delta, promised=promised
    )
    fewest = min(received)
    if spent_delta:
        said = f"amplified by shuffling batches of at least {fewest} reports"
        assumptions: tuple[str, ...] = (said, *ASSUMPTIONS)
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
        not_covered=NOT_COVERED,
    )


def spent(plan: FleetPlan, received: Sequence[int]) -> DpGuarantee | None:
    """What one client has spent after taking part in rounds with these numbers of reports."""
    return shuffled_guarantee(
        received,
        local_epsilon=settings_of(plan).local_epsilon,
        delta=plan.delta,
        promised=plan.epsilon,
    )
