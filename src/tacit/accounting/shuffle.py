"""From a local epsilon to a central one through a shuffled batch, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tacit.accounting.batch import Batch, Bound, Cap, MixedBatch, cap_at, check_kind, pointwise
from tacit.accounting.clones import LARGEST_LOCAL_EPSILON, LARGEST_N, SMALLEST_DELTA
from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon
from tacit.guarantee import rounded_up

CLOSED_FORM = "Feldman, McMillan, Talwar 2021 (arXiv 2012.12803), Theorem 3.1 (clones), closed form"
_LITTLE = 0.9  # a central epsilon above this share of the local one is next to no amplification


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffleBound:
    """A proven central guarantee of one shuffled batch, with what it rests on.

    Guarantee: (central_epsilon, delta)-DP for replacing one client's whole input.
    Assumes: `conditions`.
    Composes: see `compose_shuffled` for many batches.
    Not covered: who took part, the size of the batch, when reports were sent.
    """

    central_epsilon: float
    delta: float
    local_epsilon: float
    n: int
    theorem: str
    conditions: tuple[str, ...]

    @property
    def amplification(self) -> float:
        """How many times smaller the central epsilon is than the local one; 1 is none."""
        return self.local_epsilon / self.central_epsilon

    @property
    def note(self) -> str:
        """In plain words whether shuffling helped."""
        return amplification_note(
            local_total=self.local_epsilon, central_epsilon=self.central_epsilon, n=self.n
        )


def amplification_note(*, local_total: float, central_epsilon: float, n: int) -> str:
    """In plain words whether shuffling helped, against the sum of the local epsilons."""
    if central_epsilon > _LITTLE * local_total:
        return (
            f"There is next to no amplification: {n} shuffled reports protect hardly more than "
            f"each client's reports do alone (local epsilon {rounded_up(local_total)} in total); "
            "use a smaller local epsilon or many more clients."
        )
    return (
        f"Shuffling {n} reports lowers epsilon from {rounded_up(local_total)} to "
        f"{rounded_up(central_epsilon, digits=4)}, a factor of {local_total / central_epsilon:.3g}."
    )


def shuffle_conditions(*, local_epsilon: float, n: int, kind: str | None = None) -> tuple[str, ...]:
    """What must hold outside of the mathematics for the bound to be true."""
    return (
        "each report leaves its client through a randomizer that is "
        f"{rounded_up(local_epsilon)}-LDP (pure) for replacing the client's whole input",
        *([f"every report is {kind}"] if kind else []),
        f"the batch holds {n} reports of clients that follow the protocol; "
        "a client that colludes with the analyser does not count",
        "reports are permuted uniformly and carry nothing else: no identity, order, time or size",
        "shuffler and analyser do not collude",
        "neighbours differ by the replacement of one client's input",
    )


def _kind_of(batch: Batch) -> str | None:
    if batch.n_symbols is not None:
        return f"k-ary randomized response over the same {batch.n_symbols} symbols"
    if batch.cap is not None:
        return (
            "PrivUnitG with the same dimension and the same parameters, its cap of probability "
            f"{rounded_up(batch.cap)} or less"
        )
    return None


def check_shuffle_delta(delta: float, *, n: int, force: bool) -> float:
    """Refuse a delta that would allow one client in the batch to be exposed outright."""
    check_delta(delta)
    if delta < SMALLEST_DELTA:
        raise TacitError(
            f"delta must be at least {SMALLEST_DELTA:g}, got {delta!r}; "
            "smaller values cannot be computed reliably."
        )
    if delta >= 1.0 / n and not force:
        raise TacitError(
            f"delta = {delta:g} is not below 1/n = {1.0 / n:g}: it would allow publishing one "
            "client's data outright; choose a smaller delta, or force it to see the number."
        )
    return float(delta)


def shuffle_delta(
    *,
    local_epsilon: float,
    n: int,
    central_epsilon: float,
    n_symbols: int | None = None,
    cap: float | None = None,
) -> float:
    """An upper bound of delta at `central_epsilon` for one shuffled batch of n reports."""
    batch = Batch(local_epsilon=local_epsilon, n=n, n_symbols=n_symbols, cap=cap)

    def at(epsilon: float, target_delta: float) -> float:
        return min(pointwise(deltas)(epsilon, target_delta) for _, deltas in batch.theorems())

    return closest_delta(at, central_epsilon)


def closest_delta(at: Bound, central_epsilon: float) -> float:
    """The bound at an epsilon, evaluated where it is tight."""
    if not 0.0 <= central_epsilon < math.inf:
        raise TacitError(f"central_epsilon must be finite and at least 0, got {central_epsilon!r}.")
    # The first value only says where to look closely; both are bounds.
    first = at(central_epsilon, 1e-6)
    return min(first, at(central_epsilon, min(max(first, SMALLEST_DELTA), 0.5)))


def shuffle_epsilon(
    *,
    local_epsilon: float,
    n: int,
    delta: float,
    n_symbols: int | None = None,
    cap: float | None = None,
    force: bool = False,
) -> ShuffleBound:
    """The central epsilon of n shuffled reports, each `local_epsilon`-LDP, at `delta`.

    Guarantee: an upper bound, never above `local_epsilon`; see `ShuffleBound`. It holds for every
    randomizer; `n_symbols` gives a smaller one for k-ary randomized response over that many
    symbols, `cap` for PrivUnitG whose cap has at most this probability, and for nothing else.
    The smallest of the bounds that hold is returned, with its theorem.
    """
    batch = Batch(local_epsilon=local_epsilon, n=n, n_symbols=n_symbols, cap=cap)
    check_shuffle_delta(delta, n=n, force=force)
    best, theorem = batch.best(delta=delta)
    return shuffle_bound(
        best,
        local_epsilon=local_epsilon,
        n=n,
        delta=delta,
        theorem=theorem,
        kind=_kind_of(batch),
    )


def shuffle_bound(
    central_epsilon: float,
    *,
    local_epsilon: float,
    n: int,
    delta: float,
    theorem: str,
    kind: str | None = None,
) -> ShuffleBound:
    """What was found, with the theorem and the conditions that it rests on."""
    return ShuffleBound(
        central_epsilon=central_epsilon,
        delta=float(delta),
        local_epsilon=float(local_epsilon),
        n=int(n),
        theorem=theorem if n <= LARGEST_N else f"{theorem}, with n counted as {LARGEST_N}",
        conditions=shuffle_conditions(local_epsilon=local_epsilon, n=n, kind=kind),
    )


def mixed_epsilons(
    counts: Mapping[float, int],
    *,
    delta: float,
    n_symbols: int | None = None,
    cap: Cap | None = None,
    force: bool = False,
) -> dict[float, ShuffleBound]:
    """The bound for the clients of each local epsilon in one batch that mixes several.

    `counts` has the number of reports for each local epsilon. Guarantee: a client hides among the
    reports whose local epsilon is at most some threshold, as if all had that one; the best
    threshold is taken (docs/guarantees/blanket.md, Proposition B7). Reports of PrivUnitG with
    other parameters are other randomizers: among them a client hides by clones only.
    """
    check_kind(n_symbols, cap)
    if not counts:
        raise TacitError("a batch needs at least one report; give the number for each epsilon.")
    found: dict[float, ShuffleBound] = {}
    for own in sorted(counts):
        batch = MixedBatch.of(counts, local_epsilon=own, n_symbols=n_symbols, cap=cap)
        bounds = [
            shuffle_epsilon(
                local_epsilon=one.local_epsilon,
                n=one.n,
                delta=delta,
                n_symbols=one.n_symbols,
                cap=one.cap,
                force=force,
            )
            for one in batch.among
        ]
        best = min(bounds, key=lambda bound: bound.central_epsilon)
        central = min(best.central_epsilon, own)
        found[own] = replace(best, local_epsilon=own, central_epsilon=central)
    return found


def closed_form_limit(*, n: int, delta: float) -> float:
    """The largest local epsilon for which the closed form holds; may be negative."""
    return math.log(n / (16.0 * math.log(4.0 / delta)))


def closed_form_epsilon(
    *, local_epsilon: float, n: int, delta: float, force: bool = False
) -> ShuffleBound:
    """The closed form of the clones bound; looser, and refused outside of its condition."""
    check_epsilon(local_epsilon, name="local_epsilon")
    check_at_least(n, 1, name="n")
    check_shuffle_delta(delta, n=n, force=force)
    limit = closed_form_limit(n=n, delta=delta)
    if local_epsilon > limit:
        raise TacitError(
            f"the closed form needs local_epsilon <= ln(n / (16 ln(4/delta))) = {limit:.4g}, got "
            f"{local_epsilon:g}; use the numerical bound, which always holds."
        )
    e = math.exp(local_epsilon)
    spread = 8.0 * math.sqrt(e * math.log(4.0 / delta) / n) + 8.0 * e / n
    central = math.log1p((e - 1.0) / (e + 1.0) * spread) * (1.0 + 1e-12)
    return shuffle_bound(
        min(central, float(local_epsilon)),
        local_epsilon=local_epsilon,
        n=n,
        delta=delta,
        theorem=f"{CLOSED_FORM}, valid for local_epsilon <= {limit:.4g}",
    )


def calibrate_one_round(
    *,
    central_epsilon: float,
    n: int,
    delta: float,
    n_symbols: int | None = None,
    cap: Cap | None = None,
) -> float:
    """The largest local epsilon whose single shuffled batch stays within `central_epsilon`."""

    def fits(local: float) -> bool:
        batch = Batch(local_epsilon=local, n=n, n_symbols=n_symbols, cap=cap_at(cap, local))
        bounds = (pointwise(deltas) for _, deltas in batch.theorems())
        return any(at(central_epsilon, delta) <= delta for at in bounds)

    # A report that is central_epsilon-LDP needs no shuffler, so this much is always allowed.
    low, high = central_epsilon, central_epsilon + math.log(n) + 1.0
    while high < LARGEST_LOCAL_EPSILON and fits(high):
        low, high = high, 2.0 * high
    while high - low > 1e-7 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    # The search above and the account below round differently: step back until they agree.
    while low > central_epsilon:
        account = shuffle_epsilon(
            local_epsilon=low,
            n=n,
            delta=delta,
            n_symbols=n_symbols,
            cap=cap_at(cap, low),
            force=True,
        )
        if account.central_epsilon <= central_epsilon:
            return low
        low = max(central_epsilon, low * (1.0 - 1e-7))
    return low
