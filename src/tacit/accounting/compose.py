"""Composition over rounds and changes of the protected unit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tacit.accounting.batch import Batch, Cap, MixedBatch, cap_at, check_kind
from tacit.accounting.channel import ChannelBatch
from tacit.accounting.clones import LARGEST_LOCAL_EPSILON
from tacit.accounting.shuffle import calibrate_one_round, check_shuffle_delta
from tacit.arrays import Floats
from tacit.errors import TacitError, check_at_least, check_epsilon

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

_KNOTS = 300  # epsilons at which a privacy-loss distribution follows the bound exactly
_GROUPS = 400
_TAIL_SHARE = 1e-3  # of delta, for losses beyond the last knot, counted as infinite
# Convolution by FFT in float64 errs by far less than this per composed round.
_FFT_ERROR = 1e-14
_LARGEST_EXPONENT = 700.0  # e**700 fits a float


def compose_pure(epsilons: Sequence[float]) -> float:
    """Total epsilon of pure mechanisms on one unit's data: the sum, rounded up.

    Guarantee: basic composition, adaptive; also adds (epsilon, delta) pairs if deltas add too.
    """
    for epsilon in epsilons:
        check_epsilon(epsilon)
    return math.nextafter(math.fsum(epsilons), math.inf) if epsilons else 0.0


def group_privacy(*, epsilon: float, delta: float = 0.0, size: int) -> tuple[float, float]:
    """(epsilon, delta) for changing `size` units at once, from that for one.

    Guarantee: epsilon grows to size * epsilon and delta to
    delta * (e^(size * epsilon) - 1) / (e^epsilon - 1); Vadhan 2017, Lemma 2.2.
    """
    check_epsilon(epsilon)
    check_at_least(size, 1, name="size")
    if not 0.0 <= delta < 1.0:
        raise TacitError(f"delta must lie in [0, 1), got {delta!r}.")
    if delta == 0.0 or size == 1:
        return math.nextafter(size * epsilon, math.inf) if size > 1 else float(epsilon), delta
    log_factor = size * epsilon + _log1mexp(size * epsilon) - epsilon - _log1mexp(epsilon)
    grown = math.exp(min(math.log(delta) + log_factor, 1.0)) * (1.0 + 1e-9)
    if grown >= 1.0:
        raise TacitError(
            f"for a group of {size} the guarantee ({epsilon:g}, {delta:g}) gives delta >= 1, which "
            "is nothing; use a smaller epsilon or delta per unit."
        )
    return math.nextafter(size * epsilon, math.inf), grown


def _log1mexp(x: float) -> float:
    return math.log(-math.expm1(-x))


def change_unit(
    *, epsilon: float, delta: float = 0.0, series_per_person: int
) -> tuple[float, float]:
    """From a guarantee per series to one per person who contributes at most that many series."""
    return group_privacy(epsilon=epsilon, delta=delta, size=series_per_person)


def subsample_without_replacement(
    *, epsilon: float, delta: float, n_sampled: int, n_total: int
) -> tuple[float, float]:
    """Amplification for a uniform sample of fixed size whose members stay secret.

    Guarantee: under replacement, (ln(1 + q (e^epsilon - 1)), q delta) with q = n_sampled/n_total;
    Balle, Barthe, Gaboardi 2018, Theorem 9. Assumes: (epsilon, delta) is for replacement within
    the sample. Not covered: an analyser who learns who was sampled; then nothing is gained.
    """
    check_epsilon(epsilon)
    check_at_least(n_sampled, 1, name="n_sampled")
    check_at_least(n_total, n_sampled, name="n_total")
    if n_sampled == n_total:
        return float(epsilon), delta
    share = n_sampled / n_total * (1.0 + 1e-15)
    # ln(1 + q(e^eps - 1)) = eps + ln(q + (1 - q) e^-eps), which cannot overflow, but cancels
    # wherever the result is small: only for an epsilon that e^epsilon does not fit.
    amplified = (
        math.log1p(share * math.expm1(epsilon))
        if epsilon < _LARGEST_EXPONENT
        else epsilon + math.log(share + (1.0 - share) * math.exp(-epsilon))
    )
    return min(amplified * (1.0 + 1e-12), float(epsilon)), share * delta


class Round(Protocol):
    """One shuffled batch: a `Batch`, a client's place in a `MixedBatch`, or a `ChannelBatch`."""

    @property
    def local_epsilon(self) -> float:
        """What each report guarantees on its own."""
        ...

    def deltas(self, epsilons: Floats, target_delta: float, *, groups: int) -> Floats:
        """Upper bounds of delta, in both orders of the pair."""
        ...

    def best(self, *, delta: float) -> tuple[float, str]:
        """The smallest epsilon at `delta` that a theorem proves, and which one."""
        ...

    def __hash__(self) -> int: ...


def compose_shuffled(
    rounds: Sequence[tuple[float, int]],
    *,
    delta: float,
    n_symbols: int | None = None,
    cap: Cap | None = None,
    force: bool = False,
) -> float:
    """Central epsilon at `delta` over rounds of (local_epsilon, reports really received).

    Guarantee: adaptive composition by privacy-loss distributions that dominate each round's pair
    (clones, or the privacy blanket if the kind of report is known), or by the pure sum of local
    epsilons where that is smaller. A client may take part in every round.
    Assumes: the conditions of `shuffle_epsilon` in each round, with independent permutations, and
    epsilons and sizes that are not chosen from earlier reports; with `n_symbols`, k-ary randomized
    response over that many symbols; with `cap`, PrivUnitG whose caps have at most this
    probability, which may be a function of the local epsilon (`privunit_cap`).
    Not covered: reuse of one report in two rounds.
    """
    check_kind(n_symbols, cap)
    if not rounds:
        return 0.0
    for local_epsilon, n in rounds:
        check_epsilon(local_epsilon, name="local_epsilon")
        check_at_least(n, 1, name="n")
    check_shuffle_delta(delta, n=max(n for _, n in rounds), force=force)
    kinds: Counter[Round] = Counter()
    for (local, n), count in Counter((float(local), int(n)) for local, n in rounds).items():
        own = Batch(local_epsilon=local, n=n, n_symbols=n_symbols, cap=cap_at(cap, local))
        kinds[own] = count
    return _compose(kinds, delta=delta)


def compose_mixed(
    rounds: Sequence[Mapping[float, int]],
    *,
    local_epsilon: float,
    delta: float,
    n_symbols: int | None = None,
    cap: Cap | None = None,
    force: bool = False,
) -> float:
    """Central epsilon at `delta` of a client over rounds whose batches mix local epsilons.

    Every round has the number of reports of each local epsilon; the client's own is
    `local_epsilon` in all of them. Rounds that it takes no part in cost it nothing; leave them out.

    Guarantee: as `compose_shuffled`, by loss distributions that follow, at every epsilon, the
    smallest of the bounds of docs/guarantees/blanket.md, Proposition B7.
    Assumes: as `compose_shuffled`; nobody's local epsilon depends on data or on earlier reports.
    Not covered: reuse of one report in two rounds.
    """
    check_kind(n_symbols, cap)
    check_epsilon(local_epsilon, name="local_epsilon")
    if not rounds:
        return 0.0
    kinds: Counter[Round] = Counter(
        MixedBatch.of(counts, local_epsilon=local_epsilon, n_symbols=n_symbols, cap=cap)
        for counts in rounds
    )
    check_shuffle_delta(delta, n=max(sum(counts.values()) for counts in rounds), force=force)
    return _compose(kinds, delta=delta)


def compose_channel(
    rows: ArrayLike, batches: Sequence[int], *, delta: float, force: bool = False
) -> float:
    """Central epsilon at `delta` over rounds of these many reports of one finite channel.

    Guarantee, Assumes and Not covered: as `compose_shuffled`, with the privacy blanket of the
    channel (`shuffled_channel_epsilon`) in every round.
    """
    if not batches:
        return 0.0
    kinds: Counter[Round] = Counter(ChannelBatch.of(rows, n=n) for n in batches)
    check_shuffle_delta(delta, n=max(batches), force=force)
    return _compose(kinds, delta=delta)


def _compose(kinds: Counter[Round], *, delta: float) -> float:
    total, locals_ = sum(kinds.values()), [one.local_epsilon for one in kinds.elements()]
    candidates = [compose_pure(locals_)]
    room = delta - _FFT_ERROR * total
    amplified = max(locals_) <= LARGEST_LOCAL_EPSILON
    if total > 1 and room > 0.5 * delta and amplified:
        whole = _composed(kinds, delta=delta)
        candidates.append(whole.get_epsilon_for_delta(room) * (1.0 + 1e-9))
    else:
        # Sum of single-round epsilons, delta split evenly: for deltas that FFTs cannot resolve.
        share = delta if total == 1 else delta / total * (1.0 - 1e-12)
        plain = math.fsum(one.best(delta=share)[0] * count for one, count in kinds.items())
        candidates.append(plain if total == 1 else plain * (1.0 + 1e-12))
    # A guarantee needs some epsilon above 0, also where delta alone would do.
    return max(min(candidates), 1e-9 * max(locals_))


def _composed(kinds: Counter[Round], *, delta: float) -> PrivacyLossDistribution:
    tail = _TAIL_SHARE * delta / sum(kinds.values())
    reaches = {one: _reach(one, tail=tail) for one in kinds}
    step = min(reaches.values()) / _KNOTS
    whole: Any = None
    for one, count in kinds.items():
        alone = loss_distribution(one, reach=reaches[one], step=step, tail=tail)
        part = alone.self_compose(count) if count > 1 else alone
        whole = part if whole is None else whole.compose(part)
    return whole


def _reach(one: Round, *, tail: float) -> float:
    """Roughly the epsilon beyond which the loss of one round has probability below `tail`."""
    low, high = one.local_epsilon * 1e-9, one.local_epsilon
    for points in (64, 32):
        grid = np.geomspace(low, high, points)
        small = one.deltas(grid, tail, groups=_GROUPS) <= tail
        first = int(np.argmax(small))  # the last one always is: its delta is 0
        low, high = grid[max(first - 1, 0)], grid[first]
    return float(high)


@lru_cache(maxsize=256)
def loss_distribution(
    one: Round, *, reach: float, step: float, tail: float
) -> PrivacyLossDistribution:
    """A discrete privacy-loss distribution that dominates one shuffled round.

    The bound delta(epsilon) is evaluated at multiples of `step`; its lower convex hull in e^epsilon
    still lies above the true, convex curve, and is the curve of a distribution on these multiples.
    The bound holds in both orders of the pair, so the distribution may be symmetric: the mass at
    -epsilon is e^-epsilon times that at epsilon.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    last = math.ceil(reach / step)
    last += last * step < reach  # by a rounding, just below an epsilon whose delta is 0
    knots = np.unique(np.linspace(0, last, min(last, 2 * _KNOTS) + 1).astype(np.int64))
    epsilons = knots * step
    # Outwards by more than the float64 error of the slopes below.
    deltas = np.minimum(one.deltas(epsilons, tail, groups=_GROUPS) * (1.0 + 1e-9), 1.0)
    positive = _masses(epsilons, deltas)
    losses: dict[int, float] = {}
    for knot, mass in zip(knots.tolist(), positive.tolist(), strict=True):
        if knot and mass > 0.0:
            losses[knot], losses[-knot] = mass, mass * math.exp(-knot * step)
    losses[0] = max(0.0, 1.0 - float(deltas[-1]) - math.fsum(losses.values()))
    pmf = pld_pmf.create_pmf(losses, step, float(deltas[-1]), pessimistic_estimate=True)
    return PrivacyLossDistribution(pmf)


def _masses(epsilons: Floats, deltas: Floats) -> Floats:
    """Probabilities at each epsilon whose hockey-stick curve is the lower convex hull."""

    def slope(a: int, b: int) -> float:
        # e^eps_b - e^eps_a without cancellation, for steps as small as 1e-15.
        run = math.exp(epsilons[a]) * math.expm1(epsilons[b] - epsilons[a])
        return min(float(deltas[b] - deltas[a]) / run, 0.0)

    hull: list[int] = []
    for i in range(epsilons.size):
        while len(hull) > 1 and slope(hull[-2], hull[-1]) >= slope(hull[-1], i):
            hull.pop()
        hull.append(i)
    slopes = [slope(a, b) for a, b in pairwise(hull)] + [0.0]
    masses = np.zeros_like(epsilons)
    for k, (left, right) in zip(hull[1:], pairwise(slopes), strict=True):
        masses[k] = math.exp(epsilons[k]) * max(right - left, 0.0)
    return masses


def calibrate_shuffle(
    *,
    central_epsilon: float,
    n: int,
    delta: float,
    rounds: int = 1,
    n_symbols: int | None = None,
    cap: Cap | None = None,
    force: bool = False,
) -> float:
    """The local epsilon per round such that `rounds` batches of n stay within the target.

    Guarantee: `compose_shuffled([(result, n)] * rounds, delta=delta)`, with the same `n_symbols`
    or `cap`, is at most `central_epsilon`, never above.
    """
    check_epsilon(central_epsilon, name="central_epsilon")
    check_at_least(n, 1, name="n")
    check_at_least(rounds, 1, name="rounds")
    check_kind(n_symbols, cap)
    check_shuffle_delta(delta, n=n, force=force)
    high = calibrate_one_round(
        central_epsilon=central_epsilon, n=n, delta=delta, n_symbols=n_symbols, cap=cap
    )
    if rounds == 1:
        return high

    def fits(local: float) -> bool:
        total = compose_shuffled(
            [(local, n)] * rounds, delta=delta, n_symbols=n_symbols, cap=cap, force=True
        )
        return total <= central_epsilon

    low = central_epsilon / rounds * (1.0 - 1e-12)  # the pure sum always fits
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
