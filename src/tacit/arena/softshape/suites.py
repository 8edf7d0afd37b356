"""The suites of the DP-SoftShape paper: its tables for both presets, and what was chosen how."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit.arena.grid import Choice, grid, plain
from tacit.arena.task import Task

SOFTSHAPE_SETS = (
    "GunPoint", "Plane", "CBF", "Trace", "TwoLeadECG", "Coffee", "FaceFour", "OliveOil",
    "SyntheticControl", "Symbols", "ShapeletSim", "DiatomSizeReduction", "BeetleFly",
    "BirdChicken", "DistalPhalanxOutlineAgeGroup", "Herring", "MiddlePhalanxTW",
    "ProximalPhalanxTW", "WordSynonyms",
)  # fmt: skip
HARD_SETS = SOFTSHAPE_SETS[10:]  # Table 1's group of low signal to noise; Yoga is not at hand
# None of them is reported: their training series decide what the paper leaves open.
CHOICE_SETS = ("SwedishLeaf", "FreezerRegularTrain", "ECG5000")
PAPER_BUDGETS = (0.1, 0.5, 1.0, 5.0, None)
PRESETS: dict[str, dict[str, Any]] = {"paper": {"preset": "paper"}, "tuned": {}}
# One of five networks, 400 of up to 1500 epochs of updates: what two cores allow.
INCEPTION: dict[str, Any] = {"n_members": 1, "n_updates": 400}
TABLE2_METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("softshape-published", options) for options in PRESETS.values()),
    ("rocket", {}),
    ("arsenal", {"n_estimators": 5}),  # 10,000 kernels, as many as ROCKET; aeon's default has 25
    ("tsf", {}),
    ("1-nn", {}),
    ("fcn", {"n_updates": 400}),
    ("inceptiontime", INCEPTION),
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
ABLATION_BUDGET = 0.1
ABLATION_SEEDS = range(6)  # more than usual: two of the variants lie close together
# What neither paper fixes for all sets: how long to train.
CHOICES: tuple[dict[str, Any], ...] = tuple({"steps": steps} for steps in (250, 500, 1000))


def table2(choice: Choice) -> list[Task]:
    """Both presets and the rivals, five budgets, three seeds."""
    return grid(
        "softshape-table2",
        choice,
        data=SOFTSHAPE_SETS,
        methods=TABLE2_METHODS,
        epsilons=PAPER_BUDGETS,
        seeds=(0, 1, 2),
    )


def table3(choice: Choice) -> list[Task]:
    """The ablations of both presets at the four budgets with three seeds."""
    return grid(
        "softshape-table3",
        choice,
        data=SOFTSHAPE_SETS,
        methods=[
            ("softshape-published", {**preset, **options})
            for preset in PRESETS.values()
            for _, options in ABLATIONS
        ],
        epsilons=PAPER_BUDGETS[:4],
        seeds=(0, 1, 2),
    )


def published(choice: Choice) -> list[Task]:
    """The tuned network at its five budgets; its ablations, with more seeds, at the smallest."""
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


def global_choices(choice: Choice) -> list[Task]:
    """How the preset `paper` was completed: on training series of sets that are not reported."""
    return grid(
        "softshape-choices",
        choice,
        data=CHOICE_SETS,
        methods=[
            ("softshape-held-out", {"preset": "paper", "n_train": 60, **changes})
            for changes in CHOICES
        ],
        epsilons=(1.0,),
        seeds=(0,),
    )


def figures(choice: Choice) -> list[Task]:
    """Figures 3 (CBF), 4 (SyntheticControl, beside InceptionTime) and 5 (Trace, class 2) at .1."""
    drawn: tuple[tuple[str, dict[str, Any]], ...] = (
        ("CBF", {}),
        ("SyntheticControl", {}),
        ("Trace", {"of_class": "2"}),
    )
    asked = choice.data
    ours = [
        (name, [("softshape-picture", {**preset, **options}) for preset in PRESETS.values()])
        for name, options in drawn
    ]
    theirs = ("SyntheticControl", [("inceptiontime-picture", INCEPTION)])
    return [
        task
        for name, methods in (*ours, theirs)
        if asked is None or name in asked
        for task in grid(
            "softshape-figures",
            replace(choice, data=None),
            data=(name,),
            methods=methods,
            epsilons=(0.1,),
            seeds=(0,),
        )
    ]
