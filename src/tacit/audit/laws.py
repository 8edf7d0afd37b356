"""What a mechanism says its outputs are distributed like, exactly: loss, and cells to count.

Where a law is stated there is nothing to estimate: the privacy loss between two inputs follows from
the law to the last digit. What runs have to show is that the code draws from it, so a law also cuts
the outputs into cells of known probability and names outputs that cannot occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tacit.arrays import Floats
from tacit.audit.bounds import discrete_gaussian_epsilon
from tacit.mechanisms import PrivUnitG
from tacit.mechanisms.laplace import LAPLACE_STEPS, in_steps, scale_in_steps
from tacit.mechanisms.lattice import DIRECTION, HIDDEN_NORM, STEPS
from tacit.noise import scale_above

Input = Any
Cells = NDArray[np.intp]

_BINS = 24
_ROUNDING = 1e-12  # a computed loss is stated this much lower, so that it is a lower bound
_MOST_COORDINATES = 8  # of a vector that are looked at one by one


@dataclass(frozen=True, slots=True)
class View:
    """Outputs sorted into cells: how many fell into each, and the probability of each."""

    name: str
    counts: NDArray[np.int64]
    probabilities: Floats


@dataclass(frozen=True, slots=True)
class Event:
    """Outputs that speak most for one input: their probability under it and under the other."""

    contains: Callable[[Floats], NDArray[np.bool_]]
    tpr: float
    fpr: float


class Law(Protocol):
    """The stated distribution of a mechanism's outputs."""

    @property
    def joint(self) -> bool:
        """Whether outputs have several coordinates, of which cells show only a part."""
        ...

    @property
    def inputs(self) -> Sequence[Input]:
        """All inputs that there are, or nothing where they are not finitely many."""
        ...

    def loss(self, x: Input, y: Input, *, delta: float) -> float:
        """The epsilon at `delta` between two inputs, in both directions; never above the truth."""
        ...

    def event(self, x: Input, y: Input, *, delta: float) -> Event:
        """What tells x from y best at `delta`."""
        ...

    def impossible(self, x: Input, outputs: Floats) -> int:
        """How many of these outputs of x the law rules out."""
        ...

    def views(self, x: Input, outputs: Floats) -> list[View]:
        """Counts of outputs of x beside their probabilities."""
        ...


def rounded_down(epsilon: float) -> float:
    """A little less than a computed loss: never more than the true one."""
    return max(0.0, epsilon * (1.0 - _ROUNDING))


def counted(name: str, cells: Cells, probabilities: Floats) -> View:
    """A view from the cell of every output."""
    counts = np.bincount(cells, minlength=probabilities.size).astype(np.int64)
    return View(name, counts, probabilities)


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """A grid point plus integer noise on each coordinate, independent and symmetric.

    `centre` gives the grid point of an input, `step` the grid; `scales` are the Laplace scales in
    steps, one per coordinate, or `sigma` that of one discrete Gaussian.
    """

    centre: Callable[[Input], NDArray[np.int64]]
    step: float
    scales: tuple[Fraction, ...] = ()
    sigma: float | None = None
    inputs: Sequence[Input] = ()

    @property
    def joint(self) -> bool:
        """Whether there are several coordinates."""
        return len(self.scales) > 1

    def loss(self, x: Input, y: Input, *, delta: float) -> float:
        """As in `Law`."""
        apart = np.abs(self.centre(x) - self.centre(y))
        if self.sigma is not None:
            shift = int(apart[0])
            return rounded_down(discrete_gaussian_epsilon(self.sigma, delta, shift=shift))
        exact = sum(Fraction(int(a)) / t for a, t in zip(apart, self.scales, strict=True))
        return rounded_down(float(exact))

    def event(self, x: Input, y: Input, *, delta: float) -> Event:
        """All coordinates on the side of x: beyond it in the direction away from y."""
        here, there = self.centre(x), self.centre(y)
        away = np.sign(here - there)
        used = away != 0
        tpr = fpr = 1.0
        for i in np.flatnonzero(used):
            tpr *= self._beyond(i, 0)
            fpr *= self._beyond(i, abs(int(here[i] - there[i])))

        def contains(outputs: Floats) -> NDArray[np.bool_]:
            beyond = (np.rint(outputs / self.step) - here) * away >= 0
            return np.asarray(np.all(beyond[:, used], axis=1))

        return Event(contains, tpr, fpr)

    def impossible(self, x: Input, outputs: Floats) -> int:
        """As in `Law`."""
        whole = np.rint(outputs / self.step)
        return int(np.count_nonzero(np.any(whole * self.step != outputs, axis=1)))

    def views(self, x: Input, outputs: Floats) -> list[View]:
        """As in `Law`."""
        noise = np.rint(outputs / self.step).astype(np.int64) - self.centre(x)
        shown = noise[:, :_MOST_COORDINATES]
        views, halves = [], []
        for i, column in enumerate(shown.T):
            edges, mass = self._cells(i)
            views.append(counted(f"coordinate {i}", np.searchsorted(edges, column), mass))
            even = self._even(i)
            views.append(counted(f"parity {i}", column & 1, np.array([even, 1.0 - even])))
            halves.append(((column > 0).astype(np.intp), 1.0 - self._beyond(i, 1)))
        for i, (first, second) in enumerate(pairwise(halves)):
            mass = np.outer([first[1], 1 - first[1]], [second[1], 1 - second[1]]).ravel()
            views.append(counted(f"coordinates {i} and {i + 1}", 2 * first[0] + second[0], mass))
        return views

    def _tail(self, i: int, least: NDArray[Any]) -> Floats:
        """P[noise >= least], elementwise."""
        if self.sigma is not None:
            return _gaussian_tail(self.sigma, np.asarray(least, dtype=np.int64))
        return _laplace_tail(float(self.scales[i]), np.asarray(least, dtype=np.float64))

    def _beyond(self, i: int, least: int) -> float:
        return float(self._tail(i, np.array([least]))[0])

    def _cells(self, i: int) -> tuple[Floats, Floats]:
        """Upper ends of about equally likely cells of the noise, and their probabilities."""
        spread = self.sigma if self.sigma is not None else float(self.scales[i])
        quantiles = stats.laplace.ppf(np.arange(1, _BINS) / _BINS) * spread
        edges = np.unique(np.floor(quantiles))
        edges = np.concatenate([edges, np.full(_BINS - 1 - edges.size, edges[-1])])
        above = self._tail(i, edges + 1)
        return edges, -np.diff(np.concatenate([[1.0], above, [0.0]]))

    def _even(self, i: int) -> float:
        if self.sigma is not None:
            reach = np.arange(
                -math.ceil(40 * self.sigma) * 2, math.ceil(40 * self.sigma) * 2 + 2, 2
            )
            bell = np.exp(-(reach**2) / (2.0 * self.sigma**2))
            odd = np.exp(-((reach + 1.0) ** 2) / (2.0 * self.sigma**2))
            return float(bell.sum() / (bell.sum() + odd.sum()))
        r = math.exp(-1.0 / float(self.scales[i]))
        return (1.0 + r * r) / (1.0 + r) ** 2


def vector_law(epsilons: list[float], *, parts: int = 1) -> NoiseLaw:
    """Of `laplace_vectors` with clip norm 1: one epsilon per coordinate.

    An input is one vector, or `parts` vectors that are clipped each on its own.
    """

    def centre(x: Input) -> NDArray[np.int64]:
        rows = np.asarray(x, dtype=np.float64).reshape(parts, -1)
        return np.asarray(in_steps(rows, clip_norm=1.0).ravel())

    scales = tuple(scale_above(scale_in_steps(epsilon)) for epsilon in epsilons)
    return NoiseLaw(centre, 1.0 / LAPLACE_STEPS, scales=scales)


def _laplace_tail(scale: float, least: Floats) -> Floats:
    """P[Z >= k] of the discrete Laplace law: r**k / (1 + r) for k >= 0, r = e**(-1/scale)."""
    r = math.exp(-1.0 / scale)
    upper = np.exp(-np.maximum(least, 0.0) / scale) / (1.0 + r)
    lower = 1.0 - np.exp(-np.maximum(1.0 - least, 0.0) / scale) / (1.0 + r)
    return np.where(least > 0, upper, lower)


@lru_cache(maxsize=16)
def _gaussian_tails(sigma: float) -> tuple[int, Floats]:
    reach = math.ceil(40.0 * sigma) + 2
    support = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-(support**2) / (2.0 * sigma**2))
    return reach, np.append(np.cumsum((mass / mass.sum())[::-1])[::-1], 0.0)


def _gaussian_tail(sigma: float, least: NDArray[np.int64]) -> Floats:
    reach, tail = _gaussian_tails(sigma)
    return np.asarray(tail[np.clip(least + reach, 0, tail.size - 1)])


@dataclass(frozen=True, slots=True)
class PrivUnitLaw:
    """PrivUnitG on its lattice: a normal vector that lies in the cap of its input with p.

    `single`: outputs were rounded to float32 on their way. Cells take the lattice for the real
    line, after spreading every step evenly: wrong by a millionth, which no number of runs shows.
    """

    params: PrivUnitG
    single: bool = False
    joint: bool = True
    inputs: Sequence[Input] = ()

    def loss(self, x: Input, y: Input, *, delta: float) -> float:
        """The log ratio of the two densities: reached where one cap is and the other is not."""
        if np.allclose(_unit(x), _unit(y)):
            return 0.0
        return rounded_down(
            float(special.logit(self.params.sampled_p) - special.logit(self.params.q))
        )

    def event(self, x: Input, y: Input, *, delta: float) -> Event:
        """The cap of x; its probability under y is that under the vector opposite to x."""
        here, (grid, below) = _unit(x), _along(self.params)
        height = self.params.gamma

        def contains(outputs: Floats) -> NDArray[np.bool_]:
            return np.asarray(self._normals(outputs) @ here >= height)

        at = np.interp([height, -height], grid, below)
        return Event(contains, 1.0 - float(at[0]), float(at[1]))

    def impossible(self, x: Input, outputs: Floats) -> int:
        """As in `Law`."""
        whole = np.rint(outputs / self.params.step) * self.params.step
        if self.single:
            whole = whole.astype(np.float32).astype(np.float64)
        return int(np.count_nonzero(np.any(whole != outputs, axis=1)))

    def views(self, x: Input, outputs: Floats) -> list[View]:
        """As in `Law`."""
        here, stay = _unit(x), (1.0 + min(1.0, float(np.linalg.norm(x)))) / 2.0
        normals = self._normals(outputs)
        grid, below = _along(self.params)
        # A vector of norm r < 1 is turned round with probability (1 - r) / 2.
        below = stay * below + (1.0 - stay) * (1.0 - below[::-1])
        cuts = np.interp(np.arange(1, _BINS) / _BINS, below, grid)
        cuts = np.sort(np.append(cuts, self.params.gamma))
        mass = np.diff(np.concatenate([[0.0], np.interp(cuts, grid, below), [1.0]]))
        along = normals @ here
        views = [counted("along the input", np.searchsorted(cuts, along), mass)]
        steps = np.rint(outputs[:, :_MOST_COORDINATES] / self.params.step).astype(np.int64)
        fair = np.array([0.5, 0.5])
        views += [counted(f"parity {i}", column & 1, fair) for i, column in enumerate(steps.T)]
        if here.size > 1:
            views += self._across(normals, along, here)
        return views

    def _across(self, normals: Floats, along: Floats, here: Floats) -> list[View]:
        even = np.full(_BINS, 1.0 / _BINS)
        inner = np.arange(1, _BINS) / _BINS
        across = _orthogonal(here)
        length = np.einsum("ij,ij->i", normals, normals) - along**2
        # The even spread adds a twelfth of a squared step to every coordinate.
        shape = (here.size - 1) / 2.0
        cuts = 2.0 * special.gammaincinv(shape, inner) * (1.0 + 1.0 / (12.0 * STEPS**2))
        return [
            counted("across", np.searchsorted(special.ndtri(inner), normals @ across), even),
            counted("length across", np.searchsorted(cuts, length), even),
        ]

    def _normals(self, outputs: Floats) -> Floats:
        spread = np.random.default_rng(0).uniform(-0.5, 0.5, outputs.shape)
        return np.asarray((outputs / self.params.step + spread) / STEPS)


@lru_cache(maxsize=16)
def _along(params: PrivUnitG) -> tuple[Floats, Floats]:
    """The distribution function of the component along a unit input, on a fine grid.

    The hidden draws blur the edge of the cap: its density is that of a normal times a weight that
    passes from the one level to the other within a sixty-fourth around gamma.
    """
    grid = np.linspace(-12.0, 12.0, 480_001)
    p, q = params.sampled_p, params.q
    blur = HIDDEN_NORM / DIRECTION
    inside = special.ndtr((grid - params.gamma * math.sqrt(1.0 + blur**2)) / blur)
    low, high = (1.0 - p) / (1.0 - q), p / q
    density = np.exp(-(grid**2) / 2.0) * (low + (high - low) * inside)
    below = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return grid, np.asarray(below / below[-1])


def _unit(x: Input) -> Floats:
    vector = np.asarray(x, dtype=np.float64).ravel()
    norm = float(np.linalg.norm(vector))
    return np.asarray(vector / norm) if norm > 0.0 else np.eye(vector.size)[0]


def _orthogonal(here: Floats) -> Floats:
    other = np.eye(here.size)[int(np.argmin(np.abs(here)))]
    other = other - (other @ here) * here
    return np.asarray(other / np.linalg.norm(other))
