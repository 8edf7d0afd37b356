"""The privacy blanket: its worst pair, its evaluation by several routes, and known values."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from shuffle_enumeration import divergence, histogram, krr_rows
from tacit.accounting import (
    calibrate_shuffle,
    compose_pure,
    compose_shuffled,
    mixed_epsilons,
    privunit_cap,
    shuffle_delta,
    shuffle_epsilon,
)
from tacit.accounting.batch import Batch, pointwise, smallest_epsilon
from tacit.accounting.blanket import blanket_curve, long_walks, short_walks
from tacit.accounting.compose import loss_distribution
from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.mechanisms import calibrate_privunit

EPSILONS = (0.02, 0.3, 0.6, 0.95)  # shares of the local epsilon


def blanket_pair(
    local_epsilon: float, cap: float, n: int, *, overlap: float = 0.0
) -> tuple[Floats, Floats]:
    """Proposition B1's two laws, term by term: the batch as counts of symbols.

    A report lies in the first cap only, in the second only, in both, in neither, or it is known
    (not drawn from the blanket); the first client's report is never known.
    """
    low = 1.0 / (1.0 + math.expm1(local_epsilon) * cap)
    high = low * math.exp(local_epsilon)
    areas = np.array([cap - overlap, cap - overlap, overlap, 1.0 - 2.0 * cap + overlap])
    first = np.append(areas * [high, low, high, low], 0.0)
    second = np.append(areas * [low, high, high, low], 0.0)
    other = np.append(areas * low, 1.0 - low)
    return histogram([first] + [other] * (n - 1)), histogram([second] + [other] * (n - 1))


def curve(local_epsilon: float, cap: float, n: int, epsilon: float, target: float = 1e-6) -> float:
    one = blanket_curve(local_epsilon=local_epsilon, n=n, cap=cap, target_delta=target)
    return float(one.delta(np.array([epsilon]))[0])


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize("local_epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("cap", [0.03, 0.25, 0.5])
def test_the_evaluation_is_the_theorem_in_both_directions(
    n: int, local_epsilon: float, cap: float
) -> None:
    p, q = blanket_pair(local_epsilon, cap, n)
    for share in EPSILONS:
        epsilon = share * local_epsilon
        exact = divergence(p, q, epsilon)
        assert divergence(q, p, epsilon) == pytest.approx(exact, rel=1e-9, abs=1e-15)
        found = curve(local_epsilon, cap, n, epsilon)
        assert exact * (1.0 - 1e-12) - 1e-15 <= found
        assert found == pytest.approx(exact, rel=2e-3, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("cap", [0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("local_epsilon", [0.3, 2.0])
def test_caps_that_meet_are_never_worse(n: int, cap: float, local_epsilon: float) -> None:
    """Proposition B2, on a grid of overlaps from the least to equal caps."""
    overlaps = np.linspace(max(0.0, 2.0 * cap - 1.0), cap, 6)
    pairs = [blanket_pair(local_epsilon, cap, n, overlap=float(value)) for value in overlaps]
    for share in (0.0, *EPSILONS):
        deltas = [divergence(p, q, share * local_epsilon) for p, q in pairs]
        assert all(wider <= nearer + 1e-14 for nearer, wider in pairwise(deltas))
        assert deltas[-1] == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("n", [1, 3, 8])
def test_a_larger_cap_or_local_epsilon_is_never_better(n: int) -> None:
    """Proposition B4, exactly on a grid; caps stated too large are on the safe side."""
    caps, locals_ = (0.01, 0.1, 0.3, 0.5), (0.2, 0.7, 1.5, 3.0)
    for epsilon in (0.0, 0.1, 0.5, 1.2):
        table = np.array(
            [
                [divergence(*blanket_pair(local, cap, n), epsilon) for cap in caps]
                for local in locals_
            ]
        )
        assert (np.diff(table, axis=0) >= -1e-14).all()
        assert (np.diff(table, axis=1) >= -1e-14).all()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("n", [2, 6])
def test_randomized_response_is_the_pair_of_caps_of_one_symbol_each(k: int, n: int) -> None:
    """Proposition B3: the blanket of k-RR, with all k symbols kept apart."""
    rows = krr_rows(k, 1.3)
    blanket = rows.min(axis=0)
    other = np.append(blanket, 1.0 - blanket.sum())
    p, q = (histogram([np.append(rows[x], 0.0)] + [other] * (n - 1)) for x in (0, 1))
    for epsilon in (0.05, 0.4, 1.0):
        merged = divergence(*blanket_pair(1.3, 1.0 / k, n), epsilon)
        assert divergence(p, q, epsilon) == pytest.approx(merged, rel=1e-9, abs=1e-15)


def direct_delta(local_epsilon: float, cap: float, n: int, epsilon: float) -> float:
    """The double sum over T and c with nothing grouped; probabilities below 1e-100 apart."""
    lifted = math.expm1(local_epsilon)
    low = 1.0 / (1.0 + lifted * cap)
    in_caps, t = 2.0 * cap * low, math.tanh(epsilon / 2.0)
    steps = np.arange(n + 1)
    weights = binom.pmf(steps, n, in_caps)
    total = 0.0
    for T in np.flatnonzero(weights > 1e-100).tolist():
        chance = binom.pmf(np.arange(n - T + 1), n - T, (1.0 - 2.0 * cap) * low / (1.0 - in_caps))
        c = np.flatnonzero(chance > 1e-100)
        theta = t * (T / math.tanh(local_epsilon / 2.0) + 2.0 * c / lifted)
        # f_T at all whole numbers by sums from the far end, and linear in between.
        ends = np.arange(T + 2)
        reached = binom.pmf((T + ends) / 2.0, T, 0.5)  # 0 where T + d is odd
        beyond = np.append(np.cumsum(reached[::-1])[::-1][1:], 0.0)
        excess = np.append(np.cumsum(beyond[::-1])[::-1], 0.0)[: ends.size]
        total += float(weights[T]) * float(chance[c] @ np.interp(theta, ends, excess, right=0.0))
    return float(total * (math.exp(epsilon) + 1.0) * lifted / (2.0 * n))


@pytest.mark.parametrize(
    ("local_epsilon", "cap", "n", "epsilon"),
    [
        (2.0, 1 / 8, 100, 0.86),
        (0.8, 0.37, 100, 0.3),
        (4.0, 0.02, 1000, 0.98),
        (1.0, 0.2, 2000, 0.08),
        (8.0, 0.01, 2000, 4.0),
        (8.0, 0.01, 2000, 6.0),
        (2.0, 1 / 8, 300, 1.5),
    ],
)
def test_the_curve_is_the_direct_double_sum(
    local_epsilon: float, cap: float, n: int, epsilon: float
) -> None:
    """Never below it, and not above what it is at an epsilon smaller by 0.1 %."""
    exact = direct_delta(local_epsilon, cap, n, epsilon)
    found = curve(local_epsilon, cap, n, epsilon, target=exact)
    assert exact * (1.0 - 1e-9) <= found
    assert found <= direct_delta(local_epsilon, cap, n, 0.999 * epsilon)


def fourier_delta(local_epsilon: float, cap: float, n: int, epsilon: float) -> float:
    """1/n E[(Y_1 + ... + Y_n)+] by the n-th power of a Fourier transform; errs by 1e-3 or so."""
    ratio, factor = math.exp(local_epsilon), math.exp(epsilon)
    low = 1.0 / (1.0 + (ratio - 1.0) * cap)
    values = np.array([ratio - factor, 1.0 - factor * ratio, 1.0 - factor, 0.0])
    chances = np.array([cap * low, cap * low, (1.0 - 2.0 * cap) * low, 1.0 - low])
    size = 2**20
    variance = float(chances @ values**2)
    span = 2.0 * (12.0 * math.sqrt(n * variance) + 12.0 * np.abs(values).max())
    spacing = float(span) / size
    law = np.zeros(size)
    left = np.floor(values / spacing).astype(int)
    share = values / spacing - left
    np.add.at(law, left % size, chances * (1.0 - share))
    np.add.at(law, (left + 1) % size, chances * share)
    mean = n * float(chances @ values)
    whole = np.fft.irfft(np.fft.rfft(law) ** n, size)
    places = np.arange(size)
    middle = mean / spacing
    places = places + size * np.round((middle - places) / size)
    return float((whole * np.maximum(places, 0.0)).sum()) * spacing / n


@pytest.mark.parametrize(
    ("local_epsilon", "cap", "n", "epsilon"),
    [(2.0, 1 / 8, 100, 0.7), (2.0, 1 / 6, 10**4, 0.08), (1.0, 0.3, 10**6, 0.004)],
)
def test_the_curve_is_what_fourier_transforms_give(
    local_epsilon: float, cap: float, n: int, epsilon: float
) -> None:
    exact = fourier_delta(local_epsilon, cap, n, epsilon)
    assert 1e-8 < exact < 1e-3
    assert curve(local_epsilon, cap, n, epsilon, target=exact) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("target_delta", [0.5, 1e-4, 1e-30])
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.9])
def test_the_bound_holds_wherever_its_window_lies(target_delta: float, epsilon: float) -> None:
    exact = direct_delta(1.0, 0.3, 1000, epsilon)
    assert curve(1.0, 0.3, 1000, epsilon, target=target_delta) >= exact * (1.0 - 1e-9)


def test_walks_by_recursion_and_by_closed_form_agree() -> None:
    steps, nodes = np.array([1, 2, 7, 100, 511, 512]), np.arange(0, 513, 3)
    table, closed = short_walks()[steps][:, nodes], long_walks(steps, nodes)
    assert (closed >= table * (1.0 - 1e-13)).all()
    # The closed form is a difference: its slack of 1e-10 is of the terms, not of what is left.
    terms = steps[:, None] * binom.pmf((steps[:, None] + nodes + 1) // 2, steps[:, None], 0.5)
    assert (closed - table <= 1e-9 * terms + 1e-300).all()


@pytest.mark.seconds
@pytest.mark.parametrize("n", [1000, 10**6, 10**9])
@pytest.mark.parametrize("p", [1e-6, 0.02, 0.4, 0.97])
@pytest.mark.parametrize("deviations", [6.0, 15.0])
def test_scipy_stays_within_the_error_that_the_bound_allows(
    n: int, p: float, deviations: float
) -> None:
    """Upper tails, and lower ones of other rates than in test_shuffle.py, against 50 digits."""
    spread, allowed = deviations * math.sqrt(n * p * (1.0 - p)), 1e-10 + 1e-16 * n
    with mpmath.workdps(50):
        odds = mpmath.mpf(p) / (1 - mpmath.mpf(p))

        def mass(u: int) -> mpmath.mpf:
            log_choose = (
                mpmath.loggamma(n + 1) - mpmath.loggamma(u + 1) - mpmath.loggamma(n - u + 1)
            )
            return mpmath.exp(log_choose + u * mpmath.log(odds) + n * mpmath.log1p(-mpmath.mpf(p)))

        def tail(u: int, step: int) -> mpmath.mpf:
            term, total = mass(u), mpmath.mpf(0)
            while 0 <= u <= n and term > total * mpmath.mpf(10) ** -16:
                total += term
                ratio = mpmath.mpf(n - u) / (u + 1) * odds
                term *= ratio if step > 0 else mpmath.mpf(u) / (n - u + 1) / odds
                u += step
            return total

        upper = min(math.ceil(n * p + spread), n)
        assert abs(mpmath.mpf(float(binom.sf(upper - 1, n, p))) / tail(upper, 1) - 1) < allowed
        assert abs(mpmath.mpf(float(binom.pmf(upper, n, p))) / mass(upper) - 1) < allowed
        lower = math.floor(n * p - spread)
        if lower >= 0:
            assert abs(mpmath.mpf(float(binom.cdf(lower, n, p))) / tail(lower, -1) - 1) < allowed


def test_the_promised_values_of_one_round() -> None:
    response = shuffle_epsilon(local_epsilon=2.0, n=100, delta=1e-5, n_symbols=8)
    assert 0.8551 <= response.central_epsilon <= 0.87
    assert "privacy blanket" in response.theorem
    assert any("8 symbols" in condition for condition in response.conditions)
    unit = shuffle_epsilon(local_epsilon=4.0, n=1000, delta=1e-6, cap=0.02)
    assert unit.central_epsilon <= 1.0
    assert any("PrivUnitG" in condition for condition in unit.conditions)


@pytest.mark.seconds
def test_a_real_neighbourhood_of_eight_symbols_nearly_attains_the_bound() -> None:
    """All others hold a third symbol: the bound is above the exact value, by less than 1 %."""
    keep, miss = math.exp(2.0), 1.0
    # Symbols x, x', the third one, and the other five as one: their names carry nothing.
    weights = np.array([miss, miss, miss, 5.0 * miss])
    rows = [(weights + (keep - miss) * np.eye(4)[i]) / (keep + 7.0) for i in range(3)]
    p, q = (histogram([rows[x]] + [rows[2]] * 99) for x in (0, 1))
    bound = shuffle_epsilon(local_epsilon=2.0, n=100, delta=1e-5, n_symbols=8).central_epsilon
    assert divergence(p, q, bound) <= 1e-5 < divergence(p, q, 0.8551)


@pytest.mark.parametrize(("local_epsilon", "n", "delta"), [(1.0, 100, 1e-5), (2.0, 1000, 1e-6)])
def test_two_symbols_are_what_clones_give(local_epsilon: float, n: int, delta: float) -> None:
    batch = Batch(local_epsilon=local_epsilon, n=n, n_symbols=2)
    found = shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=delta, n_symbols=2)
    at = np.array([found.central_epsilon])
    blanket, clones = batch.blanket_deltas(at, delta), batch.clones_deltas(at, delta)
    assert blanket[0] == pytest.approx(clones[0], rel=1e-3)


@pytest.mark.seconds
@pytest.mark.parametrize("n", [10, 1000, 10**5, 10**9])
@pytest.mark.parametrize("local_epsilon", [0.2, 2.0, 6.0])
def test_the_blanket_is_not_above_clones(n: int, local_epsilon: float) -> None:
    """Proposition B6; where they meet, up to what the evaluation rounds."""
    kinds: list[dict[str, Any]] = [
        {"n_symbols": 2},
        {"n_symbols": 9},
        {"cap": privunit_cap(local_epsilon)},
    ]
    for kind in kinds:
        batch = Batch(local_epsilon=local_epsilon, n=n, **kind)
        at = pointwise(batch.blanket_deltas)
        epsilon = smallest_epsilon(at, local_epsilon, local_epsilon, delta=1e-8 / n)
        for share in (0.3, 0.6, 0.9):
            one = np.array([share * epsilon])
            target = float(batch.deltas(one, 1e-8 / n)[0])
            assert batch.deltas(one, target) <= batch.clones_deltas(one, target) * 1.04


@pytest.mark.seconds
def test_all_of_the_range_takes_under_two_seconds_each() -> None:
    for n in (2, 10**3, 10**4, 10**5, 10**6, 10**9):
        for local_epsilon in (0.1, 2.0, 8.0):
            start = time.process_time()
            shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=1e-10, n_symbols=8)
            shuffle_epsilon(local_epsilon=local_epsilon, n=n, delta=1e-10, cap=0.02)
            assert time.process_time() - start < 2.0


@pytest.mark.parametrize("kind", [{"n_symbols": 5}, {"cap": 0.1}])
def test_more_reports_and_a_larger_delta_never_hurt(kind: dict[str, Any]) -> None:
    by_n = [
        shuffle_epsilon(local_epsilon=2.0, n=n, delta=1e-13, **kind).central_epsilon
        for n in (1, 2, 10, 10**2, 10**3, 10**5, 10**7, 10**9, 10**12)
    ]
    by_delta = [
        shuffle_epsilon(local_epsilon=2.0, n=1000, delta=delta, **kind).central_epsilon
        for delta in (1e-150, 1e-20, 1e-12, 1e-6, 9e-4)
    ]
    assert by_n == sorted(by_n, reverse=True)
    assert by_delta == sorted(by_delta, reverse=True)


@pytest.mark.parametrize("local_epsilon", [1e-12, 1e-8, 50.0, 99.0, 101.0, 1e4])
@pytest.mark.parametrize("cap", [1e-12, 0.02, 0.5, 0.500001, 0.9])
def test_extreme_parameters_have_an_answer(local_epsilon: float, cap: float) -> None:
    bound = shuffle_epsilon(local_epsilon=local_epsilon, n=1000, delta=1e-6, cap=cap)
    assert 0.0 < bound.central_epsilon <= local_epsilon
    beyond = cap > 0.5 or not 1e-9 <= local_epsilon <= 100.0
    assert not (beyond and "blanket" in bound.theorem)
    total = compose_shuffled([(local_epsilon, 1000)] * 3, delta=1e-6, cap=cap)
    assert 0.0 < total <= 3.0 * local_epsilon * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("kind", "local_epsilon", "n"),
    [({"cap": 0.35}, 0.8, 100), ({"n_symbols": 6}, 2.0, 1000), ({"cap": 0.06}, 4.0, 10**6)],
)
def test_the_loss_distribution_dominates_the_curve_that_it_stands_for(
    kind: dict[str, Any], local_epsilon: float, n: int
) -> None:
    batch = Batch(local_epsilon=local_epsilon, n=n, **kind)
    reach, _ = batch.best(delta=1e-12)
    pld = loss_distribution(batch, reach=reach, step=reach / 300, tail=1e-12)
    epsilons = np.linspace(0.0, reach, 57)
    tight = np.array([float(batch.deltas(np.array([at]), 1e-9)[0]) for at in epsilons])
    theirs = np.array([pld.get_delta_for_epsilon(epsilon) for epsilon in epsilons])
    assert (theirs >= tight * (1.0 - 0.02) - 1e-14).all()  # windows differ, and with them rounding
    assert theirs[20] == pytest.approx(tight[20], rel=0.05)


def composed_delta(p: Floats, q: Floats, rounds: int, epsilon: float) -> float:
    many_p, many_q = p, q
    for _ in range(rounds - 1):
        many_p, many_q = np.outer(many_p, p).ravel(), np.outer(many_q, q).ravel()
    return max(divergence(many_p, many_q, epsilon), divergence(many_q, many_p, epsilon))


@pytest.mark.parametrize("cap", [0.1, 1 / 3])
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_composed_rounds_are_never_below_the_exact_composition(cap: float, delta: float) -> None:
    n, local_epsilon = 6, 1.0
    epsilon = compose_shuffled([(local_epsilon, n)] * 2, delta=delta, cap=cap)
    p, q = blanket_pair(local_epsilon, cap, n)
    keep = p + q > 1e-13
    p, q = p[keep], q[keep]
    assert composed_delta(p, q, 2, epsilon) <= delta
    # Not far above it either.
    assert composed_delta(p, q, 2, 0.95 * epsilon) > delta
    assert epsilon <= compose_shuffled([(local_epsilon, n)] * 2, delta=delta)


def test_rounds_of_shuffled_randomized_response_are_covered() -> None:
    n, rounds, local_epsilon = 5, 2, 1.5
    rows = krr_rows(3, local_epsilon)
    for delta in (1e-2, 1e-4):
        epsilon = compose_shuffled([(local_epsilon, n)] * rounds, delta=delta, n_symbols=3)
        for others in ([0, 1, 2, 2], [2] * 4, [0] * 4):
            rest = [rows[symbol] for symbol in others]
            p, q = (histogram([rows[x], *rest]) for x in (0, 1))
            assert composed_delta(p, q, rounds, epsilon) <= delta


def test_a_fleet_may_use_more_local_epsilon() -> None:
    """100 clients, 320 rounds, (8, 1e-5): 0.724 by clones."""
    local = calibrate_shuffle(central_epsilon=8.0, n=100, delta=1e-5, rounds=320, cap=privunit_cap)
    assert 0.83 <= local <= 0.85
    total = compose_shuffled([(local, 100)] * 320, delta=1e-5, cap=privunit_cap)
    assert 7.99 < total <= 8.0


@pytest.mark.parametrize("kind", [{"n_symbols": 4}, {"cap": privunit_cap}, {"cap": 1e-9}])
def test_one_calibrated_round_recovers_the_target_from_below(kind: dict[str, Any]) -> None:
    local = calibrate_shuffle(central_epsilon=0.5, n=400, delta=1e-6, **kind)
    again = compose_shuffled([(local, 400)], delta=1e-6, **kind)
    more = compose_shuffled([(local * 1.0001, 400)], delta=1e-6, **kind)
    assert again <= 0.5 < more
    assert local > calibrate_shuffle(central_epsilon=0.5, n=400, delta=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0])
def test_the_stated_cap_is_that_of_the_mechanism(epsilon: float) -> None:
    for dimension in (1, 2, 500):
        true = calibrate_privunit(epsilon=epsilon, dimension=dimension).q
        assert true <= privunit_cap(epsilon) <= true * (1.0 + 1e-8)


def test_reports_of_different_epsilons_hide_each_other_as_stated() -> None:
    """Proposition B7 against enumeration: 3 + 3 + 2 clients of three symbols."""
    counts = {0.5: 3, 1.0: 3, 2.5: 2}
    holders = [epsilon for epsilon, count in counts.items() for _ in range(count)]
    for delta in (0.1, 1e-2, 1e-4):
        found = mixed_epsilons(counts, delta=delta, n_symbols=3, force=True)
        for own in counts:
            others = holders.copy()
            others.remove(own)
            for symbols in ([2] * 7, [0, 1, 2, 2, 1, 0, 2], [0] * 7):
                rest = [krr_rows(3, e)[s] for e, s in zip(others, symbols, strict=True)]
                p, q = (histogram([krr_rows(3, own)[x], *rest]) for x in (0, 1))
                epsilon = found[own].central_epsilon
                assert max(divergence(p, q, epsilon), divergence(q, p, epsilon)) <= delta
            assert found[own].central_epsilon <= own


def test_in_a_mixed_batch_weaker_reports_help_and_stronger_ones_do_not_hurt() -> None:
    alone = shuffle_epsilon(local_epsilon=1.0, n=500, delta=1e-6, n_symbols=4).central_epsilon
    among = mixed_epsilons({0.9: 500, 1.0: 500, 9.0: 10}, delta=1e-6, n_symbols=4)
    assert among[1.0].central_epsilon < 0.8 * alone
    assert among[0.9].central_epsilon <= among[1.0].central_epsilon
    unit = mixed_epsilons({1.0: 500, 2.0: 500}, delta=1e-6, cap=privunit_cap)
    own = shuffle_epsilon(local_epsilon=2.0, n=500, delta=1e-6, cap=privunit_cap(2.0))
    assert unit[2.0].central_epsilon <= own.central_epsilon
    with pytest.raises(TacitError, match="at least one report"):
        mixed_epsilons({}, delta=1e-6)


def test_the_oracle_refutes_a_cap_stated_too_small() -> None:
    """The comparison with enumeration is about something: half the cap would be refuted."""
    p, q = blanket_pair(1.0, 0.3, 8)
    wish = shuffle_delta(local_epsilon=1.0, n=8, central_epsilon=0.4, cap=0.15)
    assert divergence(p, q, 0.4) > wish


@pytest.mark.parametrize("local_epsilon", [48.5, 55.0, 61.5, 85.5, 97.0])
def test_a_last_knot_that_rounds_below_the_local_epsilon_still_composes(
    local_epsilon: float,
) -> None:
    """At these values 300 steps are less than the epsilon that was cut into 300 steps."""
    rounds = [(local_epsilon, 3)] * 2
    found = compose_shuffled(rounds, delta=1e-5, cap=privunit_cap, force=True)
    assert 0.99 * 2 * local_epsilon < found <= compose_pure([local_epsilon] * 2)
