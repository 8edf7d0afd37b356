"""The suites: which tasks make up each table and figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
HARD_SETS = SOFTSHAPE_SETS[10:]  # Table 1's group of low signal to noise; Yoga is not at hand
FEDST_SETS = (
    "SmoothSubspace", "ItalyPowerDemand", "ECG200", "SyntheticControl", "GunPoint", "ArrowHead",
    "Coffee", "DistalPhalanxOutlineCorrect", "MiddlePhalanxOutlineCorrect",
    "ProximalPhalanxOutlineCorrect", "ToeSegmentation2", "DistalPhalanxOutlineAgeGroup",
    "MiddlePhalanxOutlineAgeGroup", "ProximalPhalanxOutlineAgeGroup",
    "GunPointMaleVersusFemale", "Trace",
)  # the cheapest with at least four series of every class for each of three owners  # fmt: skip
SECURE_SETS = FEDST_SETS[:5]  # these also run on real processes
CONTRACT_SETS = ("GunPoint", "SyntheticControl")
CONTRACTS = (0.5, 1.0, 2.0, 4.0)  # seconds
FLEET_SETS = ("UCIHAR", "WISDM", "HHAR")
QUICK_SETS = ("GunPoint", "ItalyPowerDemand", "ArrowHead")
PAPER_BUDGETS = (0.1, 0.5, 1.0, 5.0, None)
TOTAL_BUDGETS = (1.0, 2.0, 3.0, 5.0, 8.0)
TABLE2_METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("softshape-published", {}),
    ("rocket", {}),
    ("arsenal", {"n_estimators": 5}),  # 10,000 kernels, as many as ROCKET; aeon's default has 25
    ("tsf", {}),
    ("1-nn", {}),
    ("fcn", {"n_updates": 400}),
    ("inceptiontime", {"n_members": 1, "n_updates": 400}),
    ("minirocket", {}),
    ("multirocket-hydra", {}),
    ("quant", {}),
)
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
    epsilons: Sequence[float | None] | None = None
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
        methods=TABLE2_METHODS,
        epsilons=PAPER_BUDGETS,
        seeds=(0, 1, 2),
    )


def _table3(choice: Choice) -> list[Task]:
    return _grid(
        "softshape-table3",
        choice,
        data=SOFTSHAPE_SETS,
        methods=[("softshape-published", options) for _, options in ABLATIONS],
        epsilons=PAPER_BUDGETS[:4],
        seeds=(0, 1, 2),
    )


def _fedst(choice: Choice) -> list[Task]:
    """Scopes and qualities by the plaintext twin; times and time contracts on real processes."""
    pairs = [*((scope, "f") for scope in FEDST_SCOPES), ("federated", "ig"), ("global", "ig")]
    twin = [
        ("fedst", {"scope": scope, "quality": quality, "engine": "twin"})
        for scope, quality in pairs
    ]
    qualities = [("fedst", {"quality": quality}) for quality in ("f", "ig")]
    contracts = [("fedst", {"quality": "f", "time_contract": seconds}) for seconds in CONTRACTS]
    asked = choice.data or FEDST_SETS
    parts = (
        (asked, twin),
        ([name for name in asked if name in SECURE_SETS], qualities),
        ([name for name in asked if name in CONTRACT_SETS], contracts),
    )
    return [
        task
        for data, methods in parts
        for task in _grid(
            "fedst",
            replace(choice, data=None),
            data=data,
            methods=methods,
            epsilons=(None,),
            seeds=(0,),
        )
    ]


def _timefl(choice: Choice) -> list[Task]:
    """The sound fleet at 8, then Table II of the paper (i.i.d. clients, nominal budgets)."""
    published = _grid(
        "timefl",
        choice,
        data=FLEET_SETS,
        methods=[("timefl", {"mode": "published", "n_clients": n}) for n in (100, 1000)],
        epsilons=(8.0, 10.0, 100.0),
        seeds=(0,),
    )
    sound = _grid(
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
    return sound + published


def _frontier(choice: Choice) -> list[Task]:
    """Methods that really guarantee the total epsilon, beside what no method can exceed.

    The releases and the input noise protect one series. The fleet protects a client with a few
    training series from everybody after the shuffler: another trust model, not to be ranked.
    """
    return _grid(
        "frontier",
        choice,
        data=SOFTSHAPE_SETS,
        methods=[
            *_plain(("softshape-label", "softshape-vector", "softshape-shapes")),
            *_plain(("ceiling", "majority")),
            ("minirocket", {"total": True}),
            ("quant", {"total": True}),
            ("timefl", {"n_clients": 16, "mechanism": "privunit"}),
        ],
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


SUITES: dict[str, Callable[[Choice], list[Task]]] = {
    "quick": _quick,
    "softshape-table2": _table2,
    "softshape-table3": _table3,
    "fedst": _fedst,
    "timefl": _timefl,
    "frontier": _frontier,
}
