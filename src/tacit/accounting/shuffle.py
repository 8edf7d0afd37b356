"""From a local epsilon to a central one through a shuffled batch, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.accounting.clones import LARGEST_N, SMALLEST_DELTA, clones_delta
from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon
from tacit.guarantee import show_up

NUMERICAL = (
    "Feldman, McMillan, Talwar 2021 (arXiv 2012.12803), Theorem 3.2 (clones), evaluated numerically"
)
RANDOMIZED_RESPONSE = (
    "clones of k-ary randomized response only (docs/reference/accounting.md, Proposition 5), "
    "evaluated numerically"
)
PRIVUNIT = (
    "clones of PrivUnitG only (docs/reference/accounting.md, Proposition 8), evaluated numerically"
)
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
            f"each client's reports do alone (local epsilon {show_up(local_total)} in total); "
            "use a smaller local epsilon or many more clients."
        )
    return (
        f"Shuffling {n} reports lowers epsilon from {show_up(local_total)} to "
        f"{show_up(central_epsilon, digits=4)}, a factor of {local_total / central_epsilon:.3g}."
    )


def shuffle_conditions(*, local_epsilon: float, n: int) -> tuple[str, ...]:
    """What must hold outside of the mathematics for the bound to be true."""
    return (
        "each report leaves its client through a randomizer that is "
        f"{show_up(local_epsilon)}-LDP (pure) for replacing the client's whole input",
        f"the batch holds {n} reports of clients that follow the protocol; "
        "a client that colludes with the analyser does not count",
        "reports are permuted uniformly and carry nothing else: no identity, order, time or size",
        "shuffler and analyser do not collude",
        "neighbours differ by the replacement of one client's input",
    )


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
    check_epsilon(local_epsilon, name="local_epsilon")
    check_at_least(n, 1, name="n")
    check_kind(n_symbols, cap)
    if not 0.0 <= central_epsilon < math.inf:
        raise TacitError(f"central_epsilon must be finite and at least 0, got {central_epsilon!r}.")
    at = _curve(local_epsilon=local_epsilon, n=n, n_symbols=n_symbols, cap=cap)
    # The first value only says where to look closely; both are bounds.
    first = at(central_epsilon, 1e-6)
    return min(first, at(central_epsilon, min(max(first, SMALLEST_DELTA), 0.5)))


def check_kind(n_symbols: int | None, cap: float | None) -> None:
    """Refuse what is neither k-ary randomized response nor PrivUnitG."""
    if n_symbols is not None:
        check_at_least(n_symbols, 2, name="n_symbols")
    if cap is not None and not 0.0 < cap < 1.0:
        raise TacitError(f"cap must lie strictly between 0 and 1, got {cap!r}.")
    if n_symbols is not None and cap is not None:
        raise TacitError("n_symbols and cap name two different randomizers; give one of them.")


def _curve(
    *, local_epsilon: float, n: int, n_symbols: int | None = None, cap: float | None = None
) -> Callable[[float, float], float]:
    """The bound as a function of central epsilon and of the delta where it should be tight."""

    def at(central_epsilon: float, target_delta: float) -> float:
        # What holds for every randomizer holds for this one too.
        kinds = {(None, None), (n_symbols, cap)}
        bounds = [
            clones_delta(
                epsilons=np.array([central_epsilon], dtype=np.float64),
                local_epsilon=local_epsilon,
                n=n,
                target_delta=target_delta,
                n_symbols=symbols,
                cap=probability,
            )
            for symbols, probability in kinds
        ]
        return min(float(bound[0]) for bound in bounds)

    return at


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
    """
    check_epsilon(local_epsilon, name="local_epsilon")
    check_at_least(n, 1, name="n")
    check_kind(n_symbols, cap)
    check_shuffle_delta(delta, n=n, force=force)
    at = _curve(local_epsilon=local_epsilon, n=n, n_symbols=n_symbols, cap=cap)
    # Shuffling is post-processing, so the local epsilon always holds too.
    low, high = local_epsilon * 1e-9, float(local_epsilon)
    while high - low > 1e-9 * high:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle, delta) <= delta else (middle, high)
    theorem = NUMERICAL if n_symbols is None else RANDOMIZED_RESPONSE
    theorem = theorem if cap is None else PRIVUNIT
    return _bound(high, local_epsilon=local_epsilon, n=n, delta=delta, theorem=theorem)


def _bound(
    central_epsilon: float, *, local_epsilon: float, n: int, delta: float, theorem: str
) -> ShuffleBound:
    return ShuffleBound(
        central_epsilon=central_epsilon,
        delta=float(delta),
        local_epsilon=float(local_epsilon),
        n=int(n),
        theorem=theorem if n <= LARGEST_N else f"{theorem}, with n counted as {LARGEST_N}",
        conditions=shuffle_conditions(local_epsilon=local_epsilon, n=n),
    )


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
    return _bound(
        min(central, float(local_epsilon)),
        local_epsilon=local_epsilon,
        n=n,
        delta=delta,
        theorem=f"{CLOSED_FORM}, valid for local_epsilon <= {limit:.4g}",
    )


def calibrate_one_round(*, central_epsilon: float, n: int, delta: float) -> float:
    """The largest local epsilon whose single shuffled batch stays within `central_epsilon`."""
    # A report that is central_epsilon-LDP needs no shuffler, so this much is always allowed.
    low, high = central_epsilon, central_epsilon + math.log(n) + 1.0
    while high - low > 1e-7 * high:
        middle = 0.5 * (low + high)
        bound = _curve(local_epsilon=middle, n=n)(central_epsilon, delta)
        low, high = (middle, high) if bound <= delta else (low, middle)
    # The search above and the account below round differently: step back until they agree.
    while low > central_epsilon:
        account = shuffle_epsilon(local_epsilon=low, n=n, delta=delta, force=True)
        if account.central_epsilon <= central_epsilon:
            return low
        low = max(central_epsilon, low * (1.0 - 1e-7))
    return low
