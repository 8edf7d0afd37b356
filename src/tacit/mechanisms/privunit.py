"""PrivUnitG: unbiased release of a vector in the unit ball, with near-optimal variance.

Asi, Feldman and Talwar, "Optimal Algorithms for Mean Estimation under Local Differential
Privacy" (ICML 2022). Calibration needs the standard library only; a device loads the parameters,
which refuse to exist if they promise more privacy than they give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError, check_at_least, check_epsilon
from tacit.noise import NoiseSource, bernoulli, gaussian, uniform

_STANDARD = NormalDist()
_LARGEST_EPSILON = 500.0  # beyond, the tail probability leaves float64
_SLACK = 2.0**-40  # calibrate this much below epsilon: covers the rounding of p, gamma and coins
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


def calibrate_privunit(*, epsilon: float, dimension: int) -> PrivUnitG:
    """The parameters of least variance for this epsilon.

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
    low, high = 0.0, 37.0
    for _ in range(200):
        middle = (low + high) / 2
        too_low = middle * (inverse_k + _upper_tail(middle)) < _STANDARD.pdf(middle)
        low, high = (middle, high) if too_low else (low, middle)
    gamma, q = low, _upper_tail(low)
    return PrivUnitG(
        epsilon=float(epsilon),
        dimension=dimension,
        p=q / (math.exp(-target) - q * math.expm1(-target)),
        gamma=gamma,
        sigma=(inverse_k + q) / _STANDARD.pdf(gamma),
    )


def second_moment(params: PrivUnitG) -> float:
    """The expected squared norm of one release: d sigma**2 + gamma sigma, for every input."""
    return params.dimension * params.sigma**2 + params.gamma * params.sigma


def randomize_directions(vectors: Floats, params: PrivUnitG, *, source: NoiseSource) -> Floats:
    """Release every row, a vector in the unit ball; each release is an unbiased estimate of it.

    A row of norm r < 1 is first rounded at random to the sphere: to its direction with
    probability (1 + r)/2, else to the opposite one (the zero vector to plus or minus the first
    axis). The sphere point then goes through PrivUnitG.

    Guarantee: each release is `params.epsilon`-LDP (pure) when its row is replaced by any other
    vector of the unit ball, zero included.
    Assumes: idealised real arithmetic; `source` is uniform, independent and secret.
    Composes: T releases about one unit cost T * epsilon.
    Not covered: the number of rows, when they are sent, and what the clipping before it discards.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or vectors.shape[1] != params.dimension:
        raise TacitError(f"vectors must have shape (n, {params.dimension}), got {vectors.shape}.")
    sphere = _to_sphere(vectors, source)
    normal = gaussian(vectors.shape, sigma=1.0, source=source)
    along = np.einsum("ij,ij->i", normal, sphere)
    wanted = _along(len(vectors), params, source)
    normal += (wanted - along)[:, None] * sphere
    normal *= params.sigma
    return normal


def _to_sphere(vectors: Floats, source: NoiseSource) -> Floats:
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


def _along(count: int, params: PrivUnitG, source: NoiseSource) -> Floats:
    """The component along the input: a normal from above `gamma` with probability p, else below.

    By inverse distribution functions of tail masses strictly above 0, so every draw is finite.
    """
    inside = bernoulli(params.p, (count,), source=source)
    place = uniform((count,), source=source)
    mass = place * np.where(inside, params.q, _upper_tail(-params.gamma))
    below = np.fromiter(map(_STANDARD.inv_cdf, mass.tolist()), dtype=np.float64, count=count)
    return np.where(inside, np.maximum(-below, params.gamma), np.minimum(below, params.gamma))


def _upper_tail(value: float) -> float:
    return 0.5 * math.erfc(value / math.sqrt(2.0))


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)
