"""Tasks as products of data sets, methods, budgets and seeds: what suites are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tacit.arena.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to keep of a suite; None keeps everything."""

    data: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    epsilons: Sequence[float | None] | None = None
    seeds: Sequence[int] | None = None
    options: Sequence[str] | None = None  # "mechanism=privunit": of the methods that have them


def grid(
    suite: str,
    choice: Choice,
    *,
    data: Sequence[str],
    methods: Sequence[tuple[str, dict[str, Any]]],
    epsilons: Sequence[float | None],
    seeds: Sequence[int],
) -> list[Task]:
    """Every combination that the choice leaves, data sets first, seeds last."""
    return [
        Task(
            suite=suite,
            method=method,
            data=name,
            epsilon=epsilon,
            seed=seed,
            options=tuple(sorted(options.items())),
        )
        for name, (method, options), epsilon, seed in product(
            choice.data or data, methods, choice.epsilons or epsilons, choice.seeds or seeds
        )
    ]


def plain(methods: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Methods without options."""
    return [(method, {}) for method in methods]
