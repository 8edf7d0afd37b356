"""Discrete Gaussian sums: the reported epsilon against exact enumeration, and the proof's steps."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest

from tacit.accounting import compose_discrete, compose_gaussian, summed_noise_gap
from tacit.arrays import Floats
from tacit.errors import TacitError


def gaussian_masses(sigma: float, *, shift: int, reach: int) -> Floats:
    """The discrete Gaussian around `shift` at the integers -reach..reach."""
    mass = np.exp(-0.5 * ((np.arange(-reach, reach + 1) - shift) / sigma) ** 2)
    normed: Floats = mass / mass.sum()
    return normed


def pair(sigma: float, *, shift: int) -> tuple[Floats, Floats]:
    """The noise around 0 and around `shift`; what lies beyond 14 sigma is below 1e-42."""
    reach = math.ceil(14.0 * sigma) + shift
    return tuple(gaussian_masses(sigma, shift=at, reach=reach) for at in (0, shift))  # type: ignore[return-value]


def product(masses: list[Floats]) -> Floats:
    """The joint law of independent parts, all of it."""
    return reduce(lambda joint, one: np.outer(joint, one).ravel(), masses)


def exact_delta(p: Floats, q: Floats, epsilon: float) -> float:
    """The larger of both directions' hockey-stick divergence."""
    factor = math.exp(epsilon)
    forward = np.maximum(p - factor * q, 0.0).sum()
    return float(max(forward, np.maximum(q - factor * p, 0.0).sum()))


def assert_tight(p: Floats, q: Floats, *, epsilon: float, delta: float, slack: float) -> None:
    """Never below what enumeration shows, and an epsilon smaller by `slack` would be."""
    assert exact_delta(p, q, epsilon) <= delta
    assert exact_delta(p, q, (1.0 - slack) * epsilon) > delta


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize(
    ("sigma", "shift", "slack"),
    [(1.5, 2, 0.3), (4.0, 2, 0.06), (4.0, 10, 0.06), (20.0, 40, 0.005), (100.0, 60, 0.005)],
)
def test_one_coordinate(sigma: float, shift: int, slack: float, delta: float) -> None:
    epsilon = compose_discrete([sigma], clip_units=shift / 2, dimension=1, delta=delta)
    assert_tight(*pair(sigma, shift=shift), epsilon=epsilon, delta=delta, slack=slack)
    half = compose_discrete([sigma], clip_units=shift / 4, dimension=1, delta=delta)
    assert exact_delta(*pair(sigma, shift=shift), half) > delta  # the twin: half the sensitivity


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
@pytest.mark.parametrize("shifts", [(3, 4), (5, 0), (-4, 3)])
def test_two_coordinates(shifts: tuple[int, int], delta: float) -> None:
    sigma = 9.0
    p, q = (
        product([gaussian_masses(sigma, shift=at, reach=140) for at in where])
        for where in ((0, 0), shifts)
    )
    epsilon = compose_discrete([sigma], clip_units=2.5, dimension=2, delta=delta)
    assert_tight(p, q, epsilon=epsilon, delta=delta, slack=0.02)


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
@pytest.mark.parametrize("sigmas", [(7.0, 7.0), (5.0, 8.0, 6.0)])
def test_rounds_with_different_noise(sigmas: tuple[float, ...], delta: float) -> None:
    pairs = [pair(sigma, shift=6) for sigma in sigmas]
    p, q = (product([both[side] for both in pairs]) for side in (0, 1))
    epsilon = compose_discrete(sigmas, clip_units=3, dimension=1, delta=delta)
    assert_tight(p, q, epsilon=epsilon, delta=delta, slack=0.03)
    assert (
        exact_delta(p, q, compose_discrete(sigmas[1:], clip_units=3, dimension=1, delta=delta))
        > delta
    )


@pytest.mark.parametrize("local_sigma", [0.8, 1.0, 2.0])
@pytest.mark.parametrize("n_clients", [2, 4, 10])
def test_sums_of_clients(local_sigma: float, n_clients: int) -> None:
    one = gaussian_masses(local_sigma, shift=0, reach=math.ceil(14 * local_sigma))
    total = reduce(np.convolve, [one] * n_clients)
    shift, delta = 4, 1e-5
    p, q = np.append(total, np.zeros(shift)), np.append(np.zeros(shift), total)
    epsilon = compose_discrete(
        [local_sigma * math.sqrt(n_clients)],
        clip_units=shift / 2,
        dimension=1,
        delta=delta,
        summed_gap=summed_noise_gap(local_sigma=local_sigma, n_clients=n_clients, dimension=1),
    )
    assert exact_delta(p, q, epsilon) <= delta
    if local_sigma > 1.0:
        assert exact_delta(p, q, 0.9 * epsilon) > delta


@pytest.mark.parametrize(("lost", "sigma"), [(0.3, 1.0), (0.5, 1.5), (0.3, 3.0)])
def test_a_rounded_gaussian_is_a_discrete_one_within_its_gap(lost: float, sigma: float) -> None:
    """Proposition 7 by numerical integration of its two steps."""
    step = 1e-3
    x = np.arange(-12.0 * sigma, 12.0 * sigma, step)
    z = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1)
    density = np.exp(-0.5 * x**2 / (sigma**2 - lost))
    kernel = np.exp(-0.5 * (z[:, None] - x) ** 2 / lost)
    all_z = np.arange(z[0] - 40, z[-1] + 41)
    normaliser = sum(np.exp(-0.5 * (k - x) ** 2 / lost) for k in all_z)
    rounded = kernel @ (density / normaliser) / density.sum()
    ratio = np.log(rounded / gaussian_masses(sigma, shift=0, reach=int(z[-1])))
    gap = 5.0 * math.exp(-2.0 * math.pi**2 * lost)
    near = np.abs(ratio[np.abs(z) < 6 * sigma])  # beyond, the truncated integral is felt
    # Averaging over x leaves about the square of what one x is off by; the proof does not use it.
    assert 0.1 * gap**2 < near.max() <= gap


def test_it_is_never_above_concentrated_dp_and_well_below_it_for_large_sums() -> None:
    arguments: dict[str, Any] = {"clip_units": 500, "dimension": 2000, "delta": 1e-5}
    for sigma in (2.0, 30.0, 600.0, 6000.0):
        one = compose_discrete([sigma] * 80, **arguments)
        assert one <= compose_gaussian(noise_multiplier=sigma / 500, rounds=80, delta=1e-5) * 1.001
    assert one < 0.94 * compose_gaussian(noise_multiplier=12.0, rounds=80, delta=1e-5)
    exact = compose_gaussian(noise_multiplier=12.0, rounds=80, delta=1e-5, noise="continuous")
    assert exact <= one <= exact + 1e-5


def test_the_gap_and_more_coordinates_are_paid_for() -> None:
    arguments: dict[str, Any] = {"clip_units": 2, "delta": 1e-6}
    free = compose_discrete([9.0] * 10, dimension=1, **arguments)
    assert compose_discrete([9.0] * 10, dimension=1, summed_gap=0.01, **arguments) >= free + 0.02
    assert compose_discrete([9.0] * 10, dimension=10**6, **arguments) > free


@pytest.mark.parametrize(
    "bad",
    [
        {"sigmas": []},
        {"sigmas": [2.0, math.nan]},
        {"clip_units": 0},
        {"dimension": 0},
        {"delta": 0.0},
        {"summed_gap": -1.0},
        {"summed_gap": 1e6},
        {"neighbours": "none"},
    ],
)
def test_bad_numbers_are_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"sigmas": [9.0], "clip_units": 2, "dimension": 1, "delta": 1e-5}
    with pytest.raises(TacitError):
        compose_discrete(**(good | bad))


@pytest.mark.parametrize("sigma", [1e-9, 1e-3, 1e9, 1e200])
def test_extreme_noise_has_an_answer(sigma: float) -> None:
    epsilon = compose_discrete([sigma], clip_units=1, dimension=3, delta=1e-6)
    assert 0.0 <= epsilon < math.inf
