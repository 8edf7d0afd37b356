"""Pairs of inputs that an audit tries: extremes first, then what a search might meet."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats


def scalar_pairs() -> list[tuple[float, float]]:
    """Pairs of numbers in [0, 1], the extremes among them."""
    grid = [0.0, 0.25, 0.5, 0.75, 1.0]
    return [(a, b) for i, a in enumerate(grid) for b in grid[i + 1 :]]


def symbol_pairs(n_symbols: int) -> list[tuple[int, int]]:
    """All pairs of symbols."""
    return [(a, b) for a in range(n_symbols) for b in range(a + 1, n_symbols)]


def ball_pairs(dimension: int, *, order: float, n_random: int = 6) -> list[tuple[Floats, Floats]]:
    """Pairs in the unit ball of the L`order` norm: axes, opposite, random, and the zero vector."""
    rng = np.random.default_rng(0)
    axes = np.eye(dimension)
    directions = [axes[0], axes[-1], *rng.normal(size=(n_random, dimension))]
    units = [v / np.linalg.norm(v, ord=order) for v in directions]
    zero = np.zeros(dimension)
    return [
        *((v, -v) for v in units),
        *((v, zero) for v in units[:2]),
        *zip(units[1:], units[:-1], strict=True),
    ]
