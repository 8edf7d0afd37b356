"""The suites: which tasks make up each table and figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tacit.arena.methods import method_named
from tacit.arena.task import Task
from tacit.errors import TacitError

SOFTSHAPE_SETS = (
    "GunPoint", "Plane", "CBF", "Trace", "TwoLeadECG", "Coffee", "FaceFour", "OliveOil",
    "SyntheticControl", "Symbols", "ShapeletSim", "DiatomSizeReduction", "BeetleFly",
    "BirdChicken", "DistalPhalanxOutlineAgeGroup", "Herring", "MiddlePhalanxTW",
    "ProximalPhalanxTW", "WordSynonyms",
)  # fmt: skip
QUICK_SETS = ("GunPoint", "ItalyPowerDemand", "ArrowHead")
PAPER_BUDGETS = (0.1, 0.5, 1.0, 5.0, None)
TOTAL_BUDGETS = (1.0, 2.0, 3.0, 5.0, 8.0)
TABLE2_METHODS = (
    "softshape-published", "rocket", "arsenal", "tsf", "1-nn", "fcn", "inceptiontime",
    "minirocket", "multirocket-hydra", "quant",
)  # fmt: skip
ABLATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("full", {}),
    ("no MoE", {"use_moe": False}),
    ("hard sparsification", {"soft": False}),
    ("uniform noise", {"attention_guided": False}),
)
FEDST_SCOPES = ("federated", "global", "local", "local-search", "local-transform")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user narrows a suite down to; None means all that the suite has."""

    data: Sequence[str] | None = None
    methods: Sequence[str] | None = None
    epsilons: Sequence[float] | None = None
    seeds: Sequence[int] | None = None


def suite_tasks(suite: str, choice: Choice | None = None) -> list[Task]:
    """All tasks of a suite, narrowed by the choice, in a fixed order."""
    if suite not in SUITES:
        raise TacitError(f"there is no suite {suite!r}; use one of {', '.join(SUITES)}.")
    tasks = SUITES[suite](choice or Choice())
    if choice is not None and choice.methods is not None:
        for name in choice.methods:
            method_named(name)
        tasks = [task for task in tasks if task.method in choice.methods]
    if not tasks:
        raise TacitError(f"nothing of the suite {suite!r} is left; widen the choice.")
    return tasks


def _grid(
    suite: str,
    choice: Choice,
    *,
    data: Sequence[str],
    methods: Sequence[tuple[str, dict[str, Any]]],
    epsilons: Sequence[float | None],
    seeds: Sequence[int],
) -> list[Task]:
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


def _plain(methods: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    return [(method, {}) for method in methods]


def _table2(choice: Choice) -> list[Task]:
    return _grid(
        "softshape-table2",
        choice,
        data=SOFTSHAPE_SETS,
        methods=_plain(TABLE2_METHODS),
        epsilons=PAPER_BUDGETS,
        seeds=(0, 1, 2),
    )


def _table3(choice: Choice) -> list[Task]:
    return _grid(
        "softshape-table3",
        choice,
        data=SOFTSHAPE_SETS,
        methods=[("softshape-published", options) for _, options in ABLATIONS],
        epsilons=(0.1,),
        seeds=(0, 1, 2),
    )


def _fedst(choice: Choice) -> list[Task]:
    methods = [
        ("fedst", {"scope": scope, "quality": quality})
        for scope, quality in product(FEDST_SCOPES, ("f", "ig"))
    ]
    return _grid(
        "fedst", choice, data=SOFTSHAPE_SETS, methods=methods, epsilons=(None,), seeds=(0,)
    )


def _timefl(choice: Choice) -> list[Task]:
    methods = [
        ("timefl", {"mode": mode, "mechanism": mechanism, "n_clients": n_clients})
        for mode, mechanism in (("published", "privunit"), *_SOUND_FLEET)
        for n_clients in (100, 1000)
    ]
    return _grid(
        "timefl",
        choice,
        data=("UCIHAR", "WISDM", "HHAR"),
        methods=methods,
        epsilons=(8.0,),
        seeds=(0, 1, 2),
    )


def _frontier(choice: Choice) -> list[Task]:
    return _grid(
        "frontier",
        choice,
        data=SOFTSHAPE_SETS,
        methods=_plain(("softshape-label", "softshape-vector", "softshape-shapes", "ceiling")),
        epsilons=TOTAL_BUDGETS,
        seeds=(0, 1, 2),
    )


def _quick(choice: Choice) -> list[Task]:
    noised = _grid(
        "quick",
        choice,
        data=QUICK_SETS,
        methods=[
            *_plain(("majority", "1-nn", "minirocket", "softshape-published", "softshape-label")),
            ("timefl", {"n_clients": 30, "mechanism": "distributed"}),
        ],
        epsilons=(1.0, 5.0),
        seeds=(0,),
    )
    clean = _grid(
        "quick",
        choice,
        data=QUICK_SETS,
        methods=[
            ("fedst", {"scope": scope, "n_candidates": 60, "n_shapelets": 10})
            for scope in ("federated", "global")
        ],
        epsilons=(None,),
        seeds=(0,),
    )
    return noised + clean


_SOUND_FLEET = (("sound", "privunit"), ("sound", "distributed"))
SUITES: dict[str, Callable[[Choice], list[Task]]] = {
    "quick": _quick,
    "softshape-table2": _table2,
    "softshape-table3": _table3,
    "fedst": _fedst,
    "timefl": _timefl,
    "frontier": _frontier,
}
