"""The secure noise source and the samplers that every mechanism draws from.

Noise, masks and permutations come from the operating system's generator and cannot be seeded: a
`NoiseSource` yields secret, independent, uniform 64-bit words, and the samplers turn words into
noise. The discrete samplers are exact: their distribution is the stated one to the last bit,
whatever the platform, and releases use no others. `float_laplace` and `float_gaussian` are what
published mechanisms and baselines add: their last bits give the value away, whatever its epsilon.

NumPy and the standard library only, because devices carry this module.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.errors import TacitError

Shape = tuple[int, ...]

_INT64_LIMIT = 2**62
_WORD = 2**63


class NoiseSource(Protocol):
    """Where secret randomness comes from; tests may pass a seeded one, nothing else may."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` independent uniform 64-bit words."""
        ...


class SystemNoise:
    """Words from the operating system's cryptographic generator."""

    _CHUNK = 2**22  # words at a time: bounds the memory of one call to the system

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` independent uniform 64-bit words."""
        if count <= self._CHUNK:
            return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        parts = [min(self._CHUNK, count - start) for start in range(0, count, self._CHUNK)]
        return np.concatenate([self.words(part) for part in parts])


SYSTEM_NOISE = SystemNoise()


def uniform(shape: Shape, *, source: NoiseSource) -> Floats:
    """Float64 uniforms strictly inside (0, 1)."""
    words = source.words(math.prod(shape))
    # 52 bits, not 53: adding 0.5 is then exact, so 0.0 and 1.0 cannot occur.
    return (((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52).reshape(shape)


def uniform_below(bound: int, shape: Shape, *, source: NoiseSource) -> Integers:
    """Exactly uniform integers in 0..bound-1, by rejection."""
    if not 1 <= bound <= _INT64_LIMIT:
        raise TacitError(f"uniform_below needs 1 <= bound <= 2**62, got {bound}.")
    count = math.prod(shape)
    if bound == 1:
        return np.zeros(shape, dtype=np.int64)
    # Words below the largest multiple of the bound are accepted: one in two at the very worst.
    largest = _WORD // bound * bound - 1
    drawn = _positive_words(count, source)
    while (bad := np.flatnonzero(drawn > largest)).size:
        drawn[bad] = _positive_words(bad.size, source)
    # Division by one number is several times faster than the remainder.
    values: Integers = drawn - drawn // bound * bound
    return values.reshape(shape)


def float_laplace(shape: Shape, *, scale: float | Floats, source: NoiseSource) -> Floats:
    """Float64 Laplace noise of the given scale, one independent draw per position.

    Not for releases: of the float64 sums that one value can produce, nine in ten cannot come from
    another (Mironov, CCS 2012). For published mechanisms and baselines; releases draw
    `discrete_laplace`.
    """
    scales = _positive(scale, "scale")
    centred = uniform(shape, source=source) - 0.5
    # log1p keeps the tail exact near 0; |centred| < 0.5 strictly, so the log is finite.
    noise: Floats = -scales * np.sign(centred) * np.log1p(-2.0 * np.abs(centred))
    return noise


def float_gaussian(shape: Shape, *, sigma: float | Floats, source: NoiseSource) -> Floats:
    """Float64 normal noise by Box-Muller, one independent draw per position.

    Not for releases, for the same reason as `float_laplace`; releases draw `discrete_gaussian`.
    """
    scales = _positive(sigma, "sigma")
    count = math.prod(shape)
    half = (count + 1) // 2
    radius = np.sqrt(-2.0 * np.log(uniform((half,), source=source)))
    # Cosine and sine of an angle from the tangent of its half: one function instead of two slower.
    tangent = np.tan(np.pi * uniform((half,), source=source))
    above = 2.0 / (1.0 + tangent * tangent)  # 1 + cosine
    pairs = np.concatenate([radius * (above - 1.0), radius * (above * tangent)])
    noise: Floats = scales * pairs[:count].reshape(shape)
    return noise


def bernoulli(
    probability: float | Floats, shape: Shape, *, source: NoiseSource
) -> NDArray[np.bool_]:
    """True with the given probability, to a resolution of 2**-52, one draw per position."""
    return uniform(shape, source=source) < probability


def rounded_at_random(values: Floats, *, source: NoiseSource) -> Floats:
    """Each value rounded to one of its two neighbouring whole numbers, unbiased to 2**-17.

    Sixteen bits decide: what they round away is small beside any noise, and no guarantee rests on
    how a value is rounded.
    """
    words = source.words(-(-values.size // 4)).view(np.uint16)[: values.size]
    whole: Floats = np.floor(values)
    rest = (values - whole) * 2.0**16
    whole += (words.reshape(values.shape) + 0.5) < rest
    return whole


def permutation(count: int, *, source: NoiseSource) -> NDArray[np.int64]:
    """A uniformly random order of 0..count-1: the shuffler's only randomness."""
    order = np.arange(count, dtype=np.int64)
    swaps = _exact_uniform(np.arange(count, 0, -1, dtype=np.int64), source)
    for position, offset in enumerate(swaps.tolist()):  # Fisher-Yates, exact
        other = position + offset
        order[position], order[other] = order[other], order[position]
    return order


def discrete_laplace(
    shape: Shape, *, scale: Fraction | int | float, source: NoiseSource
) -> Integers:
    """Exact integer noise with P(x) proportional to exp(-|x| / scale).

    Guarantee: added to an integer query of L1 sensitivity `scale * epsilon`, epsilon-DP, with no
    assumption about arithmetic. The sampler is that of Canonne, Kamath and Steinke (2020,
    Algorithm 2). A scale that is no small fraction is rounded up to the next 1/2**20: never
    less noise than asked for.
    """
    ratio = scale_above(scale)
    return _in_rounds(shape, lambda count: _laplace_tries(count, ratio, source))


def scale_above(scale: Fraction | int | float) -> Fraction:
    """The scale that `discrete_laplace` really uses: this one, or the next 1/2**20 above."""
    return _fraction_above(scale, name="scale", denominator=2**20)


def discrete_gaussian(
    shape: Shape, *, sigma: Fraction | int | float, source: NoiseSource
) -> Integers:
    """Exact integer noise with P(x) proportional to exp(-x**2 / (2 sigma**2)).

    Guarantee: added to an integer query of L2 sensitivity s, it gives s**2 / (2 sigma**2)
    concentrated DP, with no assumption about arithmetic. The sampler is that of Canonne, Kamath
    and Steinke (2020, Algorithm 3). A sigma that is no small fraction is rounded up to the next
    1/64, a large one to the next whole number: never less noise than asked for.
    """
    ratio = _fraction_above(sigma, name="sigma", denominator=64 if sigma < 64 else 1)
    p, q = (ratio * ratio).numerator, (ratio * ratio).denominator
    t = math.floor(ratio) + 1
    if 2 * p * q * t * t > _INT64_LIMIT // 2**10:
        raise TacitError(
            f"sigma = {float(sigma):g} is too large for exact sampling in 64 bits; "
            "quantise with a coarser step so that sigma stays below about 4000."
        )

    def tries(count: int) -> Integers:
        y = discrete_laplace((count,), scale=t, source=source)
        # (|y| - sigma^2/t)^2 / (2 sigma^2) = (|y| q t - p)^2 / (2 p q t^2), all integers.
        gap = np.abs(np.abs(y) * (q * t) - p)
        near = gap < math.isqrt(_INT64_LIMIT)  # beyond, the square overflows and exp(-x) < 2**-500
        exponent = np.where(near, gap, 0) ** 2
        keep = near & _bernoulli_exp(exponent, 2 * p * q * t * t, source)
        accepted: Integers = y[keep]
        return accepted

    return _in_rounds(shape, tries)


def _laplace_tries(count: int, scale: Fraction, source: NoiseSource) -> Integers:
    t, s = scale.numerator, scale.denominator
    u = uniform_below(t, (count,), source=source)
    u = u[_bernoulli_exp(u, t, source)]
    v = _geometric_e(u.size, source)
    magnitude = (u + t * v) // s
    negative = (source.words(u.size) & np.uint64(1)).astype(bool)
    keep = ~(negative & (magnitude == 0))  # zero must not count twice
    signed: Integers = np.where(negative, -magnitude, magnitude)[keep]
    return signed


def _in_rounds(shape: Shape, tries: Callable[[int], Integers]) -> Integers:
    """Collect accepted draws of a rejection sampler until every position has its own."""
    need = math.prod(shape)
    kept: list[Integers] = [np.empty(0, dtype=np.int64)]
    have = 0
    while have < need:
        part = tries(max(16, int(1.5 * (need - have))))
        kept.append(part)
        have += part.size
    return np.concatenate(kept)[:need].reshape(shape)


def _positive_words(count: int, source: NoiseSource) -> Integers:
    """63 uniform bits each."""
    return (source.words(count) >> np.uint64(1)).view(np.int64)


def _exact_uniform(bounds: Integers, source: NoiseSource) -> Integers:
    """Exactly uniform below each bound (at most 2**62), by rejection on 63-bit words."""
    out = np.empty(bounds.shape, dtype=np.int64)
    flat_out, flat_bounds = out.reshape(-1), bounds.reshape(-1)
    todo = np.arange(flat_bounds.size)
    while todo.size:
        words = _positive_words(todo.size, source)
        bound = flat_bounds[todo]
        value = words % bound
        # Accept only words below the largest multiple of the bound; written without overflow.
        good = words - value <= (_WORD - 1) - (bound - 1)
        flat_out[todo[good]] = value[good]
        todo = todo[~good]
    return out


def _bernoulli_exp(numerator: Integers, denominator: int, source: NoiseSource) -> NDArray[np.bool_]:
    """Exactly true with probability exp(-numerator / denominator), elementwise."""
    if numerator.size == 0 or numerator.max() <= denominator:
        return _bernoulli_exp_below_one(numerator, denominator, source)
    alive = np.arange(numerator.size)
    whole, rest = np.divmod(numerator, denominator)
    result = np.ones(numerator.size, dtype=bool)
    left = whole.copy()
    alive = alive[left > 0]
    while alive.size:  # exp(-whole) as that many independent exp(-1)
        survived = _bernoulli_exp_below_one(np.ones(alive.size, dtype=np.int64), 1, source)
        result[alive[~survived]] = False
        left[alive] -= 1
        alive = alive[survived & (left[alive] > 0)]
    todo = np.flatnonzero(result)
    result[todo] = _bernoulli_exp_below_one(rest[todo], denominator, source)
    return result


def _bernoulli_exp_below_one(
    numerator: Integers, denominator: int, source: NoiseSource
) -> NDArray[np.bool_]:
    """Von Neumann's alternating series: exp(-g) for g = numerator / denominator <= 1, exactly."""
    k = np.zeros(numerator.size, dtype=np.int64)
    running = np.arange(numerator.size)
    step = 1
    while running.size:
        k[running] = step
        if denominator * step > _INT64_LIMIT:
            raise TacitError("the exact sampler left 64 bits; use a coarser scale.")
        drawn = uniform_below(denominator * step, (running.size,), source=source)
        running = running[drawn < numerator[running]]
        step += 1
    odd: NDArray[np.bool_] = k % 2 == 1
    return odd


def _geometric_e(count: int, source: NoiseSource) -> Integers:
    """Number of successes of exp(-1) coins before the first failure."""
    successes = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        won = _bernoulli_exp_below_one(np.ones(running.size, dtype=np.int64), 1, source)
        running = running[won]
        successes[running] += 1
    return successes


def _fraction_above(value: Fraction | int | float, *, name: str, denominator: int) -> Fraction:
    if isinstance(value, bool) or not 0 < value < math.inf:
        raise TacitError(f"{name} must be finite and above 0, got {value!r}.")
    exact = Fraction(value)
    if exact.denominator <= denominator:
        return exact
    return Fraction(math.ceil(exact * denominator), denominator)


def _positive(scale: float | Floats, name: str) -> Floats:
    scales = np.asarray(scale, dtype=np.float64)
    if not (np.all(scales > 0.0) and np.all(np.isfinite(scales))):
        raise TacitError(f"{name} must be finite and above 0 at every position, got {scale!r}.")
    return scales
