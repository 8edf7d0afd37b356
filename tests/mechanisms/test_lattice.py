"""Normal noise on a lattice: an exact law, exact sides, and nothing in the last bits."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.accounting import privunit_cap
from tacit.errors import TacitError
from tacit.mechanisms import calibrate_privunit, randomize_directions
from tacit.mechanisms import lattice as lattice_module
from tacit.mechanisms.lattice import (
    DIRECTION,
    STEPS,
    lattice_normal,
    lattice_on_side,
    lattice_weights,
    side_error,
)
from tacit.mechanisms.privunit import _keep_weight
from tacit.noise import SYSTEM_NOISE

pytestmark = pytest.mark.core

FALSE_ALARM = 1e-7  # per check
N = 400_000


def test_the_weights_are_a_symmetric_law_next_to_the_discrete_gaussian() -> None:
    weights = lattice_weights()
    assert sum(weights) == 2**64
    assert weights[0] == 0
    assert weights[1:] == weights[:0:-1]
    exact = Context(prec=60)
    bell = [exact.exp(Decimal(-z * z) / Decimal(2 * STEPS**2)) for z in range(4300)]
    total = bell[0] + 2 * sum(bell[1:])
    apart = sum(
        abs(Decimal(weights[4096 + z]) / 2**64 - bell[z] / total) * (2 if z else 1)
        for z in range(4096)
    )
    assert apart / 2 < Decimal(2) ** -54  # what `side_error` allows for each coordinate


def test_the_alias_table_gives_every_value_exactly_its_weight() -> None:
    coarse, fine, other = lattice_module._alias_table()
    found = [0] * 2**13
    for column in range(2**13):
        own = int(coarse[column]) * 2**32 + int(fine[column])
        found[column] += own
        found[int(other[column])] += 2**51 - own
    assert tuple(found) == lattice_weights()


def test_a_tie_of_nineteen_bits_is_decided_by_thirty_two_more() -> None:
    coarse, fine, other = lattice_module._alias_table()
    column = next(c for c in range(4000, 2**13) if 0 < coarse[c] < 2**19 and fine[c] > 0)
    word = (column << 19) + int(coarse[column])

    class Tied:
        def __init__(self, more: int) -> None:
            self.given = [np.array([word], dtype=np.uint64), np.array([more << 32], np.uint64)]

        def words(self, count: int) -> NDArray[Any]:
            return self.given.pop(0)

    limit = int(fine[column])
    assert lattice_normal((1,), source=Tied(limit - 1))[0] == column - 4096
    assert lattice_normal((1,), source=Tied(limit))[0] == other[column] - 4096


def counts_fit(drawn: NDArray[Any], *, sigma: float) -> bool:
    """Chi-square over the values within three sigma and the two tails."""
    reach = 3 * STEPS
    values = np.arange(-reach, reach + 1)
    mass = np.exp(-(values**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    tail = (1 - mass.sum()) / 2
    observed = np.bincount(np.clip(drawn, -reach - 1, reach + 1) + reach + 1)
    expected = np.concatenate([[tail], mass, [tail]]) * drawn.size
    return bool(stats.chisquare(observed, expected).pvalue > FALSE_ALARM)


@pytest.mark.seconds
def test_draws_follow_the_law_and_the_check_notices_one_percent() -> None:
    drawn = lattice_normal((8_000_000,), source=SYSTEM_NOISE).astype(np.int64)
    assert counts_fit(drawn, sigma=STEPS)
    # Shifts the statistic by about 25 of its standard deviations; half a percent by only 7.
    assert not counts_fit(drawn, sigma=1.01 * STEPS)
    assert stats.pearsonr(drawn[:-1], drawn[1:]).pvalue > FALSE_ALARM


@given(st.fractions(min_value=Fraction(1, 2**25), max_value=Fraction(1, 2)))
def test_no_frequency_passes_all_hidden_draws(frequency: Fraction) -> None:
    """The lemma behind `side_error`: elsewhere the characteristic function is below 2 e**-78."""
    if frequency < Fraction(1, 2**25):
        return
    far = [abs(frequency * 2**k - round(frequency * 2**k)) for k in (0, 6, 12, 18)]
    assert max(far) >= Fraction(1, 2**7)


def directions_to_try() -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    dense = rng.normal(size=5)
    return {
        "axis": np.array([1.0, 0.0, 0.0, 0.0, 0.0]),
        "opposite": np.array([0.0, 0.0, 0.0, 0.0, -1.0]),
        "equal": np.full(5, 5**-0.5),
        "nearly an axis": np.array([1.0, 1e-6, 0.0, 0.0, 0.0]),
        "dense": dense / np.linalg.norm(dense),
    }


@pytest.mark.parametrize("gamma", [-0.3, 0.4, 1.5])
@pytest.mark.parametrize("name", directions_to_try())
def test_every_direction_has_the_same_share_above(name: str, gamma: float) -> None:
    v = np.rint(directions_to_try()[name] * DIRECTION)
    rows = np.broadcast_to(v, (N, 5))
    drawn = lattice_normal((N, 1, 5), source=SYSTEM_NOISE)
    heights = np.full(N, gamma * STEPS * math.sqrt(v @ v + lattice_module._HIDDEN_SQUARE))
    above = np.ones(N, dtype=bool)
    fits, mirrored = lattice_module._fits(drawn, rows, heights, above, gamma, SYSTEM_NOISE)
    hits = int(np.count_nonzero(fits & ~mirrored))
    q = float(stats.norm.sf(gamma))
    assert stats.binomtest(hits, N, q).pvalue > FALSE_ALARM
    assert stats.binomtest(hits, N, q + 0.01).pvalue < FALSE_ALARM  # the twin
    if gamma > 0:  # the mirror images are as many, and never the same
        assert stats.binomtest(int(np.count_nonzero(mirrored)), N, q).pvalue > FALSE_ALARM


@pytest.mark.seconds
def test_mirror_images_do_not_change_the_law_of_what_lies_above() -> None:
    """The same rows with the trick (gamma > 0) and by plain rejection must look alike."""
    v = np.rint(np.array([0.6, -0.8]) * DIRECTION)
    above = np.ones(N, dtype=bool)
    tricked = lattice_on_side(np.broadcast_to(v, (N, 2)), above, gamma=0.5, source=SYSTEM_NOISE)
    plain = lattice_normal((4 * N, 2), source=SYSTEM_NOISE).astype(np.float64)
    hidden = lattice_normal((4 * N, 4), source=SYSTEM_NOISE) @ lattice_module._HIDDEN
    height = 0.5 * STEPS * math.sqrt(v @ v + lattice_module._HIDDEN_SQUARE)
    plain = plain[plain @ v + hidden >= height]
    for view in (v, np.array([0.8, 0.6]), np.array([1.0, 0.0])):
        assert stats.ks_2samp(tricked @ view, plain @ view).pvalue > FALSE_ALARM
    assert stats.ks_2samp(tricked @ v, 1.02 * (plain @ v)).pvalue < FALSE_ALARM  # the twin


@pytest.mark.parametrize("epsilon", [1e-3, 0.724, 4.0, 16.0, 100.0])
@pytest.mark.parametrize("dimension", [1, 2000, 10**6])
def test_the_coin_allows_for_the_error_of_the_cap(epsilon: float, dimension: int) -> None:
    params = calibrate_privunit(epsilon=epsilon, dimension=dimension)
    p = Fraction(_keep_weight(params), 2**62)
    error = Fraction(side_error(dimension))
    q = Fraction(params.q)
    ratio = p / (q - error) * (1 - q + error) / (1 - p)
    assert math.log(ratio) <= epsilon
    back = (1 - p) / (1 - q - error) * (q + error) / p
    assert back <= 1
    assert abs(float(p) - params.p) < 1e-6 * epsilon  # next to nothing is given away


def test_an_epsilon_below_the_error_of_the_cap_is_refused() -> None:
    params = calibrate_privunit(epsilon=1e-11, dimension=10**6)
    with pytest.raises(TacitError, match="too small"):
        randomize_directions(np.zeros((1, 10**6)), params, source=SYSTEM_NOISE)


@pytest.mark.parametrize("kind", ["axis", "dense", "zero"])
def test_last_bits_are_the_same_for_every_input(kind: str) -> None:
    """A Gaussian in float64 gave the radius away by coordinates next to zero; a lattice has none.

    Every release is a whole number of steps, of which one is 2**-8 sigma: nothing lies below it.
    """
    dimension = 200
    x = {"axis": np.eye(dimension)[0], "dense": np.full(dimension, dimension**-0.5)}.get(
        kind, np.zeros(dimension)
    )
    params = calibrate_privunit(epsilon=0.724, dimension=dimension)
    released = randomize_directions(
        np.broadcast_to(x, (2000, dimension)), params, source=SYSTEM_NOISE
    )
    whole = np.rint(released / params.step)
    assert np.array_equal(whole * params.step, released)
    assert np.abs(released[released != 0.0]).min() >= params.step
    odd = int(np.count_nonzero(whole % 2))
    assert stats.binomtest(odd, whole.size, 0.5).pvalue > FALSE_ALARM


@pytest.mark.parametrize("dimension", [1, 2000, 10**6])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.842, 2.0, 4.0, 8.0, 12.0])
def test_the_cap_that_is_accounted_covers_what_is_drawn(epsilon: float, dimension: int) -> None:
    """Proposition B5, with the coin that is tossed and the worst probabilities of the caps."""
    params = calibrate_privunit(epsilon=epsilon, dimension=dimension)
    with mpmath.workdps(40):
        q = mpmath.erfc(mpmath.mpf(params.gamma) / mpmath.sqrt(2)) / 2
        error = mpmath.mpf(side_error(dimension))
        least = (1 - mpmath.mpf(params.sampled_p)) / (1 - q + error)
        cap = (1 / least - 1) / mpmath.expm1(mpmath.mpf(epsilon))
        most = mpmath.mpf(params.sampled_p) / (q - error)
        assert mpmath.log(most / least) <= epsilon
        assert q / 2 < cap <= privunit_cap(epsilon)
