"""The suites: which tasks make up each table and figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from tacit.arena.fleet.suites import (
    FLEET_SETS,
    IMPORTED_SETS,
    fleet_breadth,
    fleet_published,
    fleet_rivals,
    fleet_sound,
)
from tacit.arena.grid import Choice, grid, plain
from tacit.arena.methods import method_named
from tacit.arena.silo.suites import (
    fedst,
    fedst_contract,
    fedst_features,
    fedst_scopes,
    fedst_secure,
)
from tacit.arena.softshape.suites import (
    SOFTSHAPE_SETS,
    figures,
    global_choices,
    published,
    table2,
    table3,
)
from tacit.arena.task import Task
from tacit.data.load import known_names
from tacit.errors import TacitError

QUICK_SETS = ("GunPoint", "ItalyPowerDemand", "ArrowHead")
TOTAL_BUDGETS = (1.0, 2.0, 3.0, 5.0, 8.0)
RELEASE_DRAWS = 20


def suite_tasks(suite: str, choice: Choice | None = None) -> list[Task]:
    """All tasks of a suite, narrowed by the choice, in a fixed order."""
    if suite not in SUITES:
        raise TacitError(f"there is no suite {suite!r}; use one of {', '.join(SUITES)}.")
    tasks = SUITES[suite](choice or Choice())
    if choice is not None and choice.methods is not None:
        for name in choice.methods:
            method_named(name)
        tasks = [task for task in tasks if task.method in choice.methods]
    if choice is not None and choice.options is not None:
        tasks = [task for task in tasks if all(_has(task, asked) for asked in choice.options)]
    if not tasks:
        raise TacitError(
            f"no task of the suite {suite!r} is left; choose more data sets, methods, budgets or "
            "options."
        )
    return tasks


def without_missing(
    tasks: Sequence[Task], *, asked: Sequence[str] = ()
) -> tuple[list[Task], dict[str, dict[str, str]]]:
    """The tasks whose data can be had, and how to get the raw archives that the others need.

    A data set that was asked for by name is refused instead of left out.
    """
    at_hand = known_names()
    absent = {task.data: IMPORTED_SETS[task.data] for task in tasks
              if task.data in IMPORTED_SETS and task.data not in at_hand}  # fmt: skip
    for name in asked:
        if name in absent:
            raise TacitError(f"{name} is not at hand; import its raw archive: {absent[name]}")
    kept = [task for task in tasks if task.data not in absent]
    return kept, {"missing": absent} if absent else {}


def _has(task: Task, asked: str) -> bool:
    """Whether the task has this option, as a user types it; `preset=`: whether it has no preset."""
    if asked.endswith("="):
        return asked[:-1] not in dict(task.options)
    return asked in {f"{name}={value}" for name, value in task.options}


def _softshape_sound(choice: Choice) -> list[Task]:
    """The releases, each accuracy a mean over many draws; three seeds where a draw is cheap."""

    def part(releases: Sequence[str], seeds: Sequence[int]) -> list[Task]:
        return grid(
            "softshape-sound",
            choice,
            data=SOFTSHAPE_SETS,
            methods=[(f"softshape-{release}", {"draws": RELEASE_DRAWS}) for release in releases],
            epsilons=TOTAL_BUDGETS,
            seeds=seeds,
        )

    return [*part(("label", "place"), (0, 1, 2)), *part(("vector", "shapes"), (0,))]


def _timefl(choice: Choice) -> list[Task]:
    """The sound fleet at 8, then all cells of `fleet-published`."""
    sound = grid(
        "timefl",
        choice,
        data=FLEET_SETS,
        methods=[
            ("timefl", {"mechanism": mechanism, "n_clients": n, "split": split, "baselines": True})
            for mechanism, n, split in product(
                ("privunit", "distributed"), (100, 1000), ("iid", "subject")
            )
        ],
        epsilons=(8.0,),
        seeds=(0,),
    )
    return sound + fleet_published(choice, suite="timefl")


def _hybrid(choice: Choice) -> list[Task]:
    """Trained by a fleet at (8, 1e-5), released at 5: for persons without a client, or anybody."""
    return grid(
        "hybrid",
        choice,
        data=("UCIHAR",),
        methods=[
            ("hybrid", {"n_clients": 1000, "split": split, "release_epsilon": 5.0})
            for split in ("subject", "iid")
        ],
        epsilons=(8.0,),
        seeds=(0, 1, 2),
    )


def _frontier(choice: Choice) -> list[Task]:
    """Methods that really guarantee the total epsilon, beside what no method can exceed.

    The releases and the input noise protect one series. The fleet protects a client with a few
    training series from everybody after the shuffler: another trust model, not to be ranked.
    """
    return grid(
        "frontier",
        choice,
        data=SOFTSHAPE_SETS,
        methods=[
            *plain(("softshape-label", "softshape-vector", "softshape-shapes")),
            *plain(("ceiling", "majority")),
            ("minirocket", {"total": True}),
            ("quant", {"total": True}),
            ("timefl", {"n_clients": 16, "mechanism": "privunit"}),
        ],
        epsilons=TOTAL_BUDGETS,
        seeds=(0, 1, 2),
    )


def _quick(choice: Choice) -> list[Task]:
    noised = grid(
        "quick",
        choice,
        data=QUICK_SETS,
        methods=[
            *plain(("majority", "1-nn", "minirocket", "softshape-published", "softshape-label")),
            ("timefl", {"n_clients": 30, "mechanism": "distributed"}),
        ],
        epsilons=(1.0, 5.0),
        seeds=(0,),
    )
    clean = grid(
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


SUITES: dict[str, Callable[[Choice], list[Task]]] = {
    "quick": _quick,
    "softshape-table2": table2,
    "softshape-table3": table3,
    "fedst": fedst,
    "timefl": _timefl,
    "frontier": _frontier,
    "softshape-published": published,
    "softshape-choices": global_choices,
    "softshape-figures": figures,
    "softshape-sound": _softshape_sound,
    "fedst-scopes": fedst_scopes,
    "fedst-secure": fedst_secure,
    "fedst-contract": fedst_contract,
    "fedst-features": fedst_features,
    "hybrid": _hybrid,
    "fleet-published": fleet_published,
    "fleet-sound": fleet_sound,
    "fleet-rivals": fleet_rivals,
    "fleet-breadth": fleet_breadth,
}
