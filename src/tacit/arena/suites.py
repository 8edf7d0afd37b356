"""The suites: which tasks make up each table and figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from tacit.arena.fleet.suites import (
    FLEET_SETS,
    fleet_breadth,
    fleet_published,
    fleet_rivals,
    fleet_sound,
)
from tacit.arena.grid import Choice, grid, plain
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
WIDE_FEDST_SETS = (
    *FEDST_SETS, "FreezerSmallTrain", "MiddlePhalanxTW", "DistalPhalanxTW", "ProximalPhalanxTW",
    "GunPointAgeSpan", "GunPointOldVersusYoung", "PhalangesOutlinesCorrect",
    "ChlorineConcentration", "FreezerRegularTrain", "TwoPatterns", "Herring", "Ham", "Wafer",
    "Lightning2", "Strawberry", "OSULeaf", "Earthquakes", "Computers", "Worms", "WormsTwoClass",
)  # the 36 cheapest by the rule in docs/decisions/2026-11-16-silo-accuracy.md  # fmt: skip
SECURE_SETS = FEDST_SETS[:5]  # these also run on real processes
EQUALITY_SETS = ("GunPoint", "ItalyPowerDemand", "SyntheticControl", "Coffee")
CONTRACT_SETS = ("GunPoint", "SyntheticControl")
CONTRACTS = (0.5, 1.0, 2.0, 4.0)  # seconds
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
ABLATION_BUDGET = 0.1
ABLATION_SEEDS = range(6)  # more than usual: two of the variants lie close together
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
        tasks = [task for task in tasks if set(choice.options) <= _described(task)]
    if not tasks:
        raise TacitError(
            f"no task of the suite {suite!r} is left; choose more data sets, methods, budgets or "
            "options."
        )
    return tasks


def _described(task: Task) -> set[str]:
    """The task's options as a user would type them."""
    return {f"{name}={value}" for name, value in task.options}


def _table2(choice: Choice) -> list[Task]:
    return grid(
        "softshape-table2",
        choice,
        data=SOFTSHAPE_SETS,
        methods=TABLE2_METHODS,
        epsilons=PAPER_BUDGETS,
        seeds=(0, 1, 2),
    )


def _table3(choice: Choice) -> list[Task]:
    return grid(
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
        for task in grid(
            "fedst",
            replace(choice, data=None),
            data=data,
            methods=methods,
            epsilons=(None,),
            seeds=(0,),
        )
    ]


def _softshape_published(choice: Choice) -> list[Task]:
    """The paper's method at its five budgets; its ablations, with more seeds, at the smallest."""
    suite = "softshape-published"
    full = grid(
        suite,
        choice,
        data=SOFTSHAPE_SETS,
        methods=plain(("softshape-published",)),
        epsilons=PAPER_BUDGETS,
        seeds=(0, 1, 2),
    )
    ablations = grid(
        suite,
        choice,
        data=SOFTSHAPE_SETS,
        methods=[("softshape-published", options) for _, options in ABLATIONS],
        epsilons=(ABLATION_BUDGET,),
        seeds=ABLATION_SEEDS,
    )
    return list(dict.fromkeys([*full, *ablations]))


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


def _fedst_scopes(choice: Choice) -> list[Task]:
    """FedST against its scopes on the wide choice of sets, by the plaintext twin."""
    pairs = [*((scope, "f") for scope in FEDST_SCOPES), ("federated", "ig")]
    return grid(
        "fedst-scopes",
        choice,
        data=WIDE_FEDST_SETS,
        methods=[("fedst", {"scope": s, "quality": q, "engine": "twin"}) for s, q in pairs],
        epsilons=(None,),
        seeds=(0,),
    )


def _fedst_secure(choice: Choice) -> list[Task]:
    """Every federated scope with a forest, on real processes and by the twin: equal or not?"""
    pairs = (("federated", "f"), ("local-search", "f"), ("local-transform", "f"))
    forests: list[dict[str, Any]] = [
        {"scope": scope, "quality": quality, "classifier": "forest"}
        for scope, quality in (*pairs, ("federated", "ig"))
    ]
    return grid(
        "fedst-secure",
        choice,
        data=EQUALITY_SETS,
        methods=[
            ("fedst", {**options, "engine": engine})
            for options, engine in product(forests, ("secure", "twin"))
        ],
        epsilons=(None,),
        seeds=(0,),
    )


def _timefl(choice: Choice) -> list[Task]:
    """The sound fleet at 8, then Table II of the paper (i.i.d. clients, nominal budgets)."""
    published = grid(
        "timefl",
        choice,
        data=FLEET_SETS,
        methods=[("timefl", {"mode": "published", "n_clients": n}) for n in (100, 1000)],
        epsilons=(8.0, 10.0, 100.0),
        seeds=(0,),
    )
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
    return sound + published


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
    "softshape-table2": _table2,
    "softshape-table3": _table3,
    "fedst": _fedst,
    "timefl": _timefl,
    "frontier": _frontier,
    "softshape-published": _softshape_published,
    "softshape-sound": _softshape_sound,
    "fedst-scopes": _fedst_scopes,
    "fedst-secure": _fedst_secure,
    "fleet-published": fleet_published,
    "fleet-sound": fleet_sound,
    "fleet-rivals": fleet_rivals,
    "fleet-breadth": fleet_breadth,
}
