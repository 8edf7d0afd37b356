"""The sum of many PrivUnitG releases, drawn from its law at once: for simulations of large fleets.

A release is a vector of normals, on the wanted side of the hyperplane of its direction. Its
component along the direction is a normal on one side of a threshold; the rest is a normal vector
that knows nothing of the side. So a sum of releases needs one number per client and one normal
vector per block of clients, where drawing every release needs `dimension` numbers per client and
try.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.mechanisms.lattice import STEPS, STRETCH
from tacit.mechanisms.privunit import PrivUnitG, rounded_to_sphere
from tacit.noise import NoiseSource, bernoulli, float_gaussian, uniform

_BLOCK = 32  # directions whose spread is divided out together; their products cost its square

DRAWN_ONE_BY_ONE = 2000  # reports of a simulated round; of more the sum is drawn
SIMULATED = (
    "simulated: of more than 2000 reports a round the sum was drawn at once in float64, which "
    "shows what a fleet of that size would learn; the nominal epsilon is that of its devices"
)


def summed_releases(vectors: Floats, params: PrivUnitG, *, source: NoiseSource) -> Floats:
    """What the releases of these rows, vectors in the unit ball, add up to.

    Guarantee: none. The law is that of `randomize_directions` with normals in place of the
    lattice's rounded ones, but float64 draws it, and nothing bounds how far they lie apart: a
    simulation shows what a fleet would learn, a release goes through `randomize_directions`.
    """
    if vectors.ndim != 2 or vectors.shape[1] != params.dimension:
        raise TacitError(f"vectors must have shape (n, {params.dimension}), got {vectors.shape}.")
    sphere = rounded_to_sphere(np.asarray(vectors, dtype=np.float64), source)
    total = _components(len(sphere), params, source) @ sphere
    for start in range(0, len(sphere), _BLOCK):
        total += _across(sphere[start : start + _BLOCK], source)
    released: Floats = total * (STEPS * params.step)
    return released


def _components(count: int, params: PrivUnitG, source: NoiseSource) -> Floats:
    """How far every release lies along its direction, in standard deviations."""
    from scipy.special import ndtri

    above = bernoulli(params.p, (count,), source=source)
    drawn = uniform((count,), source=source)
    upper = np.where(above, params.q * drawn, params.q + (1.0 - params.q) * drawn)
    # The lattice decides sides with a few draws that never leave: the rest of the variance.
    hidden = np.sqrt(1.0 - STRETCH**-2)
    noise = float_gaussian((count,), sigma=hidden, source=source)
    along: Floats = -ndtri(upper) / STRETCH + noise
    return along


def _across(directions: Floats, source: NoiseSource) -> Floats:
    """One normal vector for all that lies across the directions: covariance n I - U^T U.

    With U U^T = V S^2 V^T the rows of V^T U / S are orthonormal, and only along them does the
    covariance differ from n I.
    """
    count, dimension = directions.shape
    normal = float_gaussian((dimension,), sigma=1.0, source=source)
    squares, vectors = np.linalg.eigh(directions @ directions.T)
    kept = squares > 1e-9 * count
    axes = (vectors[:, kept].T @ directions) / np.sqrt(squares[kept])[:, None]
    scale = np.sqrt(np.maximum(count - squares[kept], 0.0)) - np.sqrt(count)
    across: Floats = np.sqrt(count) * normal + (scale * (axes @ normal)) @ axes
    return across
