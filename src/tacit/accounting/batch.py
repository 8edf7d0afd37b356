"""A shuffled batch: how many reports, how private each is, and which theorems hold for its kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.accounting.blanket import blanket_applies, blanket_curve
from tacit.accounting.clones import clones_delta
from tacit.arrays import Floats
from tacit.errors import TacitError, check_at_least, check_epsilon

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
BLANKET = (
    "privacy blanket of {} (Balle, Bell, Gascon, Nissim 2019, arXiv 1903.02837; "
    "docs/guarantees/blanket.md, Propositions {}), evaluated numerically"
)
BLANKET_RANDOMIZED_RESPONSE = BLANKET.format("k-ary randomized response", "B1 and B3")
BLANKET_PRIVUNIT = BLANKET.format("PrivUnitG", "B1, B4 and B5")

Cap = float | Callable[[float], float]  # of PrivUnitG, or as a function of the local epsilon
Deltas = Callable[[Floats, float], Floats]  # of epsilons and of the delta to be tight at
Bound = Callable[[float, float], float]  # the same for one epsilon


def cap_at(cap: Cap | None, local_epsilon: float) -> float | None:
    """The cap's probability for reports of this local epsilon."""
    return cap(local_epsilon) if callable(cap) else cap


def privunit_cap(local_epsilon: float) -> float:
    """The cap of the PrivUnitG of least variance, rounded up; it does not depend on the dimension.

    A cap stated too large is on the safe side (docs/guarantees/blanket.md, Proposition B4).
    """
    from tacit.mechanisms import calibrate_privunit

    if local_epsilon < 1e-3:
        return 0.5  # the calibrated threshold is never negative
    cap = calibrate_privunit(epsilon=local_epsilon, dimension=1).q
    return min(cap * (1.0 + 1e-9), 0.5)


def pointwise(deltas: Deltas) -> Bound:
    """The same bound as a function of a single epsilon."""
    return lambda epsilon, target: float(deltas(np.array([epsilon], dtype=np.float64), target)[0])


def smallest_epsilon(
    at: Bound, local_epsilon: float, high: float, *, delta: float, precision: float = 1e-9
) -> float:
    """The smallest epsilon up to `high` whose bound is at most `delta`, from above."""
    low = local_epsilon * 1e-9
    while high - low > precision * high:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if at(middle, delta) <= delta else (middle, high)
    return high


def check_kind(n_symbols: int | None, cap: Cap | None) -> None:
    """Refuse what is neither k-ary randomized response nor PrivUnitG."""
    if n_symbols is not None:
        check_at_least(n_symbols, 2, name="n_symbols")
    if cap is not None and not callable(cap) and not 0.0 < cap < 1.0:
        raise TacitError(f"cap must lie strictly between 0 and 1, got {cap!r}.")
    if n_symbols is not None and cap is not None:
        raise TacitError("n_symbols and cap name two different randomizers; give one of them.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """n shuffled reports of one local epsilon.

    From an arbitrary randomizer, or with `n_symbols` from k-ary randomized response over that many
    symbols, or with `cap` from PrivUnitG whose cap has at most this probability.
    """

    local_epsilon: float
    n: int
    n_symbols: int | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.local_epsilon, name="local_epsilon")
        check_at_least(self.n, 1, name="n")
        check_kind(self.n_symbols, self.cap)

    @property
    def blanket_cap(self) -> float | None:
        """The probability of the caps in the blanket's worst pair, if its theorem holds here."""
        cap = 1.0 / self.n_symbols if self.n_symbols is not None else self.cap
        if cap is None or not blanket_applies(local_epsilon=self.local_epsilon, cap=cap):
            return None
        return cap

    def theorems(self) -> list[tuple[str, Deltas]]:
        """All that hold for this kind of report, the best first, with upper bounds of delta."""
        found: list[tuple[str, Deltas]] = []
        response = self.n_symbols is not None
        if self.blanket_cap is not None:
            name = BLANKET_RANDOMIZED_RESPONSE if response else BLANKET_PRIVUNIT
            found.append((name, self.blanket_deltas))
        if response or self.cap is not None:
            found.append((RANDOMIZED_RESPONSE if response else PRIVUNIT, self.clones_deltas))
        # What holds for every randomizer holds for this one too.
        any_kind = Batch(local_epsilon=self.local_epsilon, n=self.n)
        return [*found, (NUMERICAL, any_kind.clones_deltas)]

    def best(self, *, delta: float) -> tuple[float, str]:
        """The smallest epsilon at `delta` that a theorem proves, and which one."""
        # Shuffling is post-processing, so the local epsilon always holds too.
        best, theorem = float(self.local_epsilon), ""
        for name, deltas in self.theorems():
            at = pointwise(deltas)
            if not theorem or at(best * (1.0 - 1e-9), delta) <= delta:
                theorem = name
                best = smallest_epsilon(at, self.local_epsilon, best, delta=delta)
        return best, theorem

    def deltas(self, epsilons: Floats, target_delta: float, *, groups: int = 4000) -> Floats:
        """Upper bounds of delta, in both orders of the pair, by the best theorem for this kind.

        The blanket never exceeds clones of the same reports (docs/guarantees/blanket.md,
        Proposition B6), so there is no need to compute both.
        """
        if self.blanket_cap is not None:
            return self.blanket_deltas(epsilons, target_delta)
        return self.clones_deltas(epsilons, target_delta, groups=groups)

    def blanket_deltas(self, epsilons: Floats, target_delta: float) -> Floats:
        """By the privacy blanket; only if `blanket_cap` is not None."""
        cap = self.blanket_cap
        if cap is None:
            raise TacitError("the privacy blanket is not proven for these reports; use clones.")
        curve = blanket_curve(
            local_epsilon=self.local_epsilon, n=self.n, cap=cap, target_delta=target_delta
        )
        return curve.delta(epsilons)

    def clones_deltas(self, epsilons: Floats, target_delta: float, *, groups: int = 4000) -> Floats:
        """By clones of this kind of report."""
        return clones_delta(
            epsilons=epsilons,
            local_epsilon=self.local_epsilon,
            n=self.n,
            target_delta=target_delta,
            n_symbols=self.n_symbols,
            cap=self.cap,
            groups=groups,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedBatch:
    """What hides a client of this local epsilon in a batch that mixes several.

    By docs/guarantees/blanket.md, Proposition B7, it is protected as in each of `among`: the
    reports up to a threshold, as if all had that local epsilon, and for PrivUnitG those exactly
    like its own.
    """

    local_epsilon: float
    among: tuple[Batch, ...]

    @classmethod
    def of(
        cls,
        counts: Mapping[float, int],
        *,
        local_epsilon: float,
        n_symbols: int | None = None,
        cap: Cap | None = None,
    ) -> MixedBatch:
        """From the number of reports of each local epsilon, the client's own among them."""
        if local_epsilon not in counts:
            raise TacitError(
                f"a client of local epsilon {local_epsilon:g} has no report in a batch of "
                f"{', '.join(f'{one:g}' for one in sorted(counts)) or 'none'}; count its own too, "
                "or leave out batches that it took no part in."
            )
        among = [
            Batch(
                local_epsilon=top,
                n=sum(n for lower, n in counts.items() if lower <= top),
                n_symbols=n_symbols,
            )
            for top in sorted(counts)
            if top >= local_epsilon
        ]
        if cap is not None:
            own = cap_at(cap, local_epsilon)
            among.append(Batch(local_epsilon=local_epsilon, n=counts[local_epsilon], cap=own))
        return cls(local_epsilon=float(local_epsilon), among=tuple(among))

    def best(self, *, delta: float) -> tuple[float, str]:
        """The smallest epsilon at `delta` that a theorem proves, and which one."""
        epsilon, theorem = min(one.best(delta=delta) for one in self.among)
        return min(epsilon, self.local_epsilon), theorem

    def deltas(self, epsilons: Floats, target_delta: float, *, groups: int = 4000) -> Floats:
        """Upper bounds of delta, in both orders of the pair: at each epsilon the smallest.

        All of them bound the divergence of one and the same pair, so their minimum does.
        """
        bounds = [one.deltas(epsilons, target_delta, groups=groups) for one in self.among]
        return np.where(epsilons >= self.local_epsilon, 0.0, np.min(bounds, axis=0))
