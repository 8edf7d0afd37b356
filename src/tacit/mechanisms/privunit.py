"""PrivUnitG: unbiased release of a vector in the unit ball, with near-optimal variance.

Asi, Feldman and Talwar, "Optimal Algorithms for Mean Estimation under Local Differential
Privacy" (ICML 2022), on a lattice and by exact rejection, so that its guarantee holds for what the
code computes and not only for real numbers. Calibration needs the standard library only; a device
loads the parameters, which refuse to exist if they promise more privacy than they give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError, check_at_least, check_epsilon
from tacit.mechanisms.lattice import DIRECTION, STEPS, STRETCH, lattice_on_side, side_error
from tacit.noise import NoiseSource, bernoulli

_STANDARD = NormalDist()
_LARGEST_EPSILON = 500.0
_SLACK = 2.0**-40  # calibrate this much below epsilon: covers the rounding of p and gamma
# The cap is found by drawing until a draw lies in it; a smaller one would take too many draws. From
# epsilon = 7.5 on it is not the one of least variance any more.
_SMALLEST_CAP = 2.0**-8
_LARGEST_GAMMA = -_STANDARD.inv_cdf(_SMALLEST_CAP)
_HARDEST_CAP = 2.0**-20  # parameters with a smaller cap are refused
_LARGEST_P = 1.0 - 2.0**-50
_COIN = 2**62
_TOLERANCE = 1e-6  # a norm computed in float32 may exceed 1 by this much


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivUnitG:
    """Parameters: with probability `p` the release has <g, x> >= `gamma`; it is `sigma` * g."""

    epsilon: float
    dimension: int
    p: float
    gamma: float
    sigma: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_at_least(self.dimension, 1, name="dimension")
        if not (0.0 < self.p < 1.0 and 0.0 < self.sigma < math.inf and abs(self.gamma) < 38.0):
            raise TacitError(
                f"not PrivUnitG parameters: p = {self.p!r}, gamma = {self.gamma!r}, "
                f"sigma = {self.sigma!r}; calibrate with calibrate_privunit."
            )
        if self.q < _HARDEST_CAP:
            raise TacitError(
                f"PrivUnitG parameters with a cap of probability {self.q:.3g} cannot be sampled "
                "exactly; calibrate again with calibrate_privunit."
            )
        if not self.realised_epsilon <= self.epsilon:
            raise TacitError(
                f"PrivUnitG parameters give epsilon = {self.realised_epsilon:.6g}, above the "
                f"stated {self.epsilon:.6g}; calibrate with calibrate_privunit."
            )

    @property
    def q(self) -> float:
        """The probability that a standard normal is at least `gamma`."""
        return _upper_tail(self.gamma)

    @property
    def realised_epsilon(self) -> float:
        """The largest absolute log ratio of two output densities."""
        return abs(_logit(self.p) - math.log(self.q / _upper_tail(-self.gamma)))

    @property
    def step(self) -> float:
        """Releases are whole multiples of this, rounded to float64."""
        return self.sigma * STRETCH / STEPS

    @property
    def sampled_p(self) -> float:
        """The probability of the coin that is really tossed: p, or a hair less."""
        return _keep_weight(self) / _COIN


def calibrate_privunit(*, epsilon: float, dimension: int) -> PrivUnitG:
    """The parameters of least variance for this epsilon, of those with a cap of at least 2**-8.

    With K = e**epsilon - 1 the density is 1/(1 + K q) off the cap and e**epsilon times that on it,
    so 1/sigma = K phi(gamma) / (1 + K q). Its derivative vanishes where gamma = 1/sigma, and
    gamma (1 + K q) - K phi(gamma) grows with gamma: bisection finds the one root.
    """
    check_epsilon(epsilon)
    if epsilon > _LARGEST_EPSILON:
        raise TacitError(
            f"epsilon = {epsilon:g} is beyond the {_LARGEST_EPSILON:g} that PrivUnitG can tell "
            "from no privacy; use a smaller one."
        )
    target = epsilon * (1.0 - _SLACK)
    inverse_k = math.exp(-target) / -math.expm1(-target)
    low, high = 0.0, _LARGEST_GAMMA
    for _ in range(200):
        middle = (low + high) / 2
        too_low = middle * (inverse_k + _upper_tail(middle)) < _STANDARD.pdf(middle)
        low, high = (middle, high) if too_low else (low, middle)
    gamma, q = low, _upper_tail(low)
    p = _largest_p(target + math.log(q / _upper_tail(-gamma)))
    return PrivUnitG(
        epsilon=float(epsilon),
        dimension=dimension,
        p=p,
        gamma=gamma,
        sigma=1.0 / (_STANDARD.pdf(gamma) * (p - q) / (q * (1.0 - q))),
    )


def second_moment(params: PrivUnitG) -> float:
    """The expected squared norm of one release: d sigma**2 + gamma sigma, for every input.

    The lattice adds 2**-12 of the first term (`lattice.STRETCH`).
    """
    return params.dimension * (params.sigma * STRETCH) ** 2 + params.gamma * params.sigma


def randomize_directions(vectors: Floats, params: PrivUnitG, *, source: NoiseSource) -> Floats:
    """Release every row, a vector in the unit ball; each release is an unbiased estimate of it.

    A row of norm r < 1 is first rounded at random to the sphere: to its direction with
    probability (1 + r)/2, else to the opposite one (the zero vector to plus or minus the first
    axis). The sphere point then goes through PrivUnitG: a vector of lattice normals that lies in
    the cap around the point with probability p, drawn again until it does or does not.

    Guarantee: each release is `params.epsilon`-LDP (pure) when its row is replaced by any other
    vector of the unit ball, zero included, exactly: releases are whole multiples of one step, the
    same for every input, kept or drawn again by comparisons of whole numbers.
    Assumes: `source` is uniform, independent and secret.
    Composes: T releases about one unit cost T * epsilon.
    Not covered: the number of rows, when they are sent, how long the draws took, and what the
    clipping before it discards.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or vectors.shape[1] != params.dimension:
        raise TacitError(f"vectors must have shape (n, {params.dimension}), got {vectors.shape}.")
    directions = np.rint(rounded_to_sphere(vectors, source) * DIRECTION)
    words = (source.words(len(vectors)) >> np.uint64(2)).astype(np.int64)
    above = words < _keep_weight(params)
    released = lattice_on_side(directions, above, gamma=params.gamma, source=source)
    released *= params.step
    return released


def _keep_weight(params: PrivUnitG) -> int:
    """p in units of 2**-62, at most what epsilon allows if the cap has not exactly probability q.

    The cap of a direction has a probability within `side_error` of q, so densities relative to the
    lattice's law lie between (1 - p) / (1 - q + error) and p / (q - error).
    """
    error = side_error(params.dimension)
    allowed = params.epsilon * (1.0 - 2.0**-46) - 2.0**-46
    allowed += math.log((params.q - error) / (1.0 - params.q + error))
    p = min(params.p, _largest_p(allowed))
    if not params.q + 16.0 * error < p:
        raise TacitError(
            f"epsilon = {params.epsilon:g} is too small for exact sampling in "
            f"{params.dimension} dimensions; use a larger one."
        )
    return math.floor(p * _COIN)


def rounded_to_sphere(vectors: Floats, source: NoiseSource) -> Floats:
    """Vectors of the unit ball rounded at random to the sphere, unbiased."""
    # Dividing by the largest entry first keeps tiny and huge rows away from under- and overflow.
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    if not np.all(np.isfinite(largest)):
        raise TacitError("vectors hold NaN or infinity; clean the data before the mechanism.")
    zero = largest[:, 0] == 0.0
    scaled = vectors / np.where(largest > 0.0, largest, 1.0)
    scaled[zero, 0] = 1.0
    inner = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    norms = inner * largest[:, 0]
    if norms.size and norms.max() > 1.0 + _TOLERANCE:
        raise TacitError(
            f"a vector has norm {norms.max():.6g}, above 1; clip to the unit ball first."
        )
    ahead = bernoulli((1.0 + np.minimum(norms, 1.0)) / 2.0, norms.shape, source=source)
    sphere: Floats = scaled * (np.where(ahead, 1.0, -1.0) / inner)[:, None]
    return sphere


def _largest_p(logit: float) -> float:
    """The largest probability whose logit does not exceed this one; never 1."""
    p = min(1.0 / (1.0 + math.exp(-logit)), _LARGEST_P)
    while _logit(p) > logit:
        p = math.nextafter(p, 0.0)
    return p


def _upper_tail(value: float) -> float:
    return 0.5 * math.erfc(value / math.sqrt(2.0))


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)
