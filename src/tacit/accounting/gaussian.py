"""Gaussian noise on a clipped sum: composition over rounds and calibration of the noise.

`noise_multiplier` is the standard deviation of the noise in the sum divided by the clip norm of
one contribution. Replacing a contribution moves the sum by up to twice the clip norm, adding or
removing one by up to once: the sensitivity follows from `neighbours`, the caller never states it.
A caller whose clients may drop out passes the noise that is surely left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from tacit.errors import TacitError, check_at_least, check_delta, check_epsilon, check_positive
from tacit.guarantee import Neighbours

Noise = Literal["discrete", "continuous"]
_SENSITIVITY = {"replace": 2.0, "add-remove": 1.0}
_OUTWARDS = 1.0 + 1e-9
_ROUNDING_GAPS = (1e-9, 1e-6, 1e-3)  # what all rounds may pay for a rounded continuous Gaussian


def compose_gaussian(
    *,
    noise_multiplier: float,
    rounds: int,
    delta: float,
    neighbours: Neighbours = "replace",
    noise: Noise = "discrete",
    sampling_rate: float = 1.0,
    summed_gap: float = 0.0,
) -> float:
    """Epsilon at `delta` of `rounds` sums with Gaussian noise.

    Guarantee: for `discrete` noise by zero-concentrated DP (Canonne, Kamath, Steinke 2020, Theorem
    14 and Corollary 13), in any dimension; for `continuous` noise the exact curve (Balle, Wang
    2018, Theorem 8), in idealised real arithmetic. `summed_gap` is `summed_noise_gap` if the noise
    is a sum of the clients' own. Poisson sampling is accounted for `continuous` noise under
    add-remove only, where dp-accounting's bound is sound.
    Composes: adaptively. Not covered: contributions longer than the clip norm.
    """
    _check(noise_multiplier, rounds, neighbours, noise, sampling_rate)
    check_delta(delta)
    gap = _check_gap(summed_gap) * rounds
    inner_delta = _delta_within(gap, delta)
    mean_shift = _SENSITIVITY[neighbours] * math.sqrt(rounds) / noise_multiplier
    if sampling_rate < 1.0:
        inner = _poisson_epsilon(noise_multiplier, sampling_rate, rounds, inner_delta)
    elif noise == "discrete":
        inner = zcdp_epsilon(rho=max(0.5 * mean_shift**2, 1e-300), delta=inner_delta)
    else:
        inner = _exact_gaussian_epsilon(mean_shift, inner_delta)
    return inner * _OUTWARDS + 2.0 * gap


def compose_discrete(
    sigmas: Sequence[float],
    *,
    clip_units: float,
    dimension: int,
    delta: float,
    neighbours: Neighbours = "replace",
    summed_gap: float = 0.0,
) -> float:
    """Epsilon at `delta` of integer sums with discrete Gaussian noise, one sum per round.

    `sigmas` holds the noise of every round's sum and `clip_units` bounds the L2 norm of one
    contribution, both in steps of the integer grid. `summed_gap` is that of all rounds together.

    Guarantee: the smaller of concentrated DP, as `compose_gaussian`, and of Proposition 7 in
    docs/reference/accounting.md: the noise is a rounded continuous Gaussian of a little less
    variance, up to a gap that is charged, and so has nearly the exact Gaussian curve.
    Composes: adaptively. Not covered: contributions longer than `clip_units`.
    """
    _check_sums(sigmas, clip_units, dimension, neighbours)
    check_delta(delta)
    _check_gap(summed_gap)
    sensitivity = _SENSITIVITY[neighbours] * clip_units

    def mean_shift(lost_variance: float) -> float:
        parts = (sensitivity / (sigma * sigma - lost_variance) for sigma in sigmas)
        return max(math.sqrt(sensitivity * math.fsum(parts)), 1e-150)

    inner = zcdp_epsilon(rho=0.5 * mean_shift(0.0) ** 2, delta=_delta_within(summed_gap, delta))
    bounds = [inner * _OUTWARDS + 2.0 * summed_gap]
    for rounding_gap in _ROUNDING_GAPS:
        # The r^2 at which 5 e^(-2 pi^2 r^2) per coordinate and round comes to `rounding_gap`.
        lost = math.log(5.0 * dimension * len(sigmas) / rounding_gap) / (2.0 * math.pi**2)
        if lost < min(sigmas) * min(sigmas):
            gap = summed_gap + rounding_gap
            inner = _exact_gaussian_epsilon(mean_shift(lost), _delta_within(gap, delta))
            bounds.append((inner + 2.0 * gap) * _OUTWARDS)
    return min(bounds)


def calibrate_gaussian(
    *,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    neighbours: Neighbours = "replace",
    noise: Noise = "discrete",
    sampling_rate: float = 1.0,
    summed_gap: float = 0.0,
) -> float:
    """The noise multiplier for which `compose_gaussian` gives at most `epsilon`, never above."""
    check_epsilon(epsilon)

    def fits(noise_multiplier: float) -> bool:
        spent = compose_gaussian(
            noise_multiplier=noise_multiplier,
            rounds=rounds,
            delta=delta,
            neighbours=neighbours,
            noise=noise,
            sampling_rate=sampling_rate,
            summed_gap=summed_gap,
        )
        return spent <= epsilon

    return _smallest(fits, tolerance=1e-3 if sampling_rate < 1.0 else 1e-7)


def _smallest(fits: Callable[[float], bool], *, tolerance: float) -> float:
    """The smallest noise that fits, from above."""
    high = 1.0
    while not fits(high):
        high *= 2.0
        if high > 1e9:
            raise TacitError(
                "no noise reaches this epsilon at this delta; allow a larger epsilon or delta."
            )
    low = high / 2.0
    while low > 1e-6 and fits(low):
        low, high = low / 2.0, low
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def zcdp_epsilon(*, rho: float, delta: float) -> float:
    """From rho-zCDP to (epsilon, delta)-DP: Canonne, Kamath, Steinke 2020, Corollary 13.

    Every Renyi order gives a valid epsilon; the search only looks for a small one.
    """
    from scipy.optimize import minimize_scalar

    check_positive(rho, name="rho")
    check_delta(delta)

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1.0 + excess
        shrink = -math.log1p(1.0 / excess)  # ln(1 - 1/order)
        return order * rho + shrink - (math.log(delta) + math.log(order)) / excess

    centre = math.log(max(math.sqrt(-math.log(delta) / rho), 1e-6))
    best = minimize_scalar(at, bounds=(centre - 6.0, centre + 6.0), method="bounded")
    return max(at(float(best.x)), 0.0)


def summed_noise_gap(*, local_sigma: float, n_clients: int, dimension: int) -> float:
    """How far a sum of clients' discrete Gaussians is from one discrete Gaussian.

    Bounds the log density ratio in both directions, over `dimension` coordinates; proved in
    docs/reference/accounting.md. `local_sigma` is that of one client on the integer grid, at least
    1/2; from 3 upwards the gap is below 1e-37 per client and coordinate.
    """
    if not 0.5 <= local_sigma < math.inf:
        raise TacitError(
            f"local_sigma must be at least 0.5 on the integer grid, got {local_sigma!r}; "
            "use a finer grid."
        )
    check_at_least(n_clients, 1, name="n_clients")
    check_at_least(dimension, 1, name="dimension")
    exponent = 2.0 * math.pi**2 * local_sigma**2
    terms = [5.0 * math.exp(-exponent * k / (k + 1.0)) for k in range(1, min(n_clients, 1000))]
    # Later terms are smaller than the last one computed.
    rest = max(n_clients - 1000, 0) * (terms[-1] if terms else 0.0)
    return dimension * (math.fsum(terms) + rest)


def _delta_within(gap: float, delta: float) -> float:
    """The delta left for laws that are within a factor e^gap of the ones accounted."""
    inner_delta = delta * math.exp(-gap) / _OUTWARDS
    if inner_delta <= 0.0:
        raise TacitError(f"a gap of {gap:g} is too large; use more noise per client.")
    return inner_delta


def _exact_gaussian_epsilon(mean_shift: float, delta: float) -> float:
    def reached(epsilon: float) -> bool:
        return _gaussian_delta(mean_shift, epsilon) * _OUTWARDS <= delta

    if reached(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not reached(high):
        low, high = high, 2.0 * high
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _gaussian_delta(mean_shift: float, epsilon: float) -> float:
    from scipy.special import log_ndtr

    upper = float(log_ndtr(-epsilon / mean_shift + mean_shift / 2.0))
    lower = float(log_ndtr(-epsilon / mean_shift - mean_shift / 2.0)) + epsilon
    # e^upper - e^lower without overflow; lower < upper, up to rounding.
    return math.exp(upper) * -math.expm1(min(lower - upper, 0.0))


def _poisson_epsilon(
    noise_multiplier: float, sampling_rate: float, rounds: int, delta: float
) -> float:
    from dp_accounting.pld import privacy_loss_distribution

    one = privacy_loss_distribution.from_gaussian_mechanism(
        noise_multiplier,
        sampling_prob=sampling_rate,
        value_discretization_interval=1e-3,
        use_connect_dots=True,
    )
    return float(one.self_compose(rounds).get_epsilon_for_delta(delta))


def _check_gap(summed_gap: float) -> float:
    if not 0.0 <= summed_gap < math.inf:
        raise TacitError(f"summed_gap must be finite and at least 0, got {summed_gap!r}.")
    return summed_gap


def _check_sums(
    sigmas: Sequence[float], clip_units: float, dimension: int, neighbours: str
) -> None:
    check_at_least(len(sigmas), 1, name="the number of rounds")
    check_at_least(dimension, 1, name="dimension")
    check_positive(clip_units, name="clip_units")
    for sigma in sigmas:
        check_positive(sigma, name="sigma")
    if neighbours not in _SENSITIVITY:
        raise TacitError(f"neighbours must be replace or add-remove, got {neighbours!r}.")


def _check(
    noise_multiplier: float, rounds: int, neighbours: str, noise: str, sampling_rate: float
) -> None:
    check_positive(noise_multiplier, name="noise_multiplier")
    check_at_least(rounds, 1, name="rounds")
    if neighbours not in _SENSITIVITY:
        raise TacitError(f"neighbours must be replace or add-remove, got {neighbours!r}.")
    if noise not in ("discrete", "continuous"):
        raise TacitError(f"noise must be discrete or continuous, got {noise!r}.")
    if not 0.0 < sampling_rate <= 1.0:
        raise TacitError(f"sampling_rate must lie in (0, 1], got {sampling_rate!r}.")
    if sampling_rate < 1.0 and (neighbours, noise) != ("add-remove", "continuous"):
        raise TacitError(
            "sampling is accounted only for continuous noise under add-remove neighbours with "
            "Poisson sampling; drop the sampling rate, which is always sound."
        )
