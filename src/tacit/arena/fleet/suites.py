"""The suites of fleets: the paper to the letter, sound runs, rivals, and all settings at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from tacit.arena.grid import Choice, grid
from tacit.arena.task import Task
from tacit.fleet.table_two import batch_size_of

FLEET_SETS = ("UCIHAR", "WISDM", "HHAR")
SPLITS = ("iid", "subject", "dirichlet")
MECHANISMS = ("distributed", "privunit")
EPSILONS = (8.0, 3.0, 1.0)
FLEET_RIVALS = ("dp-fedavg", "client-dpsgd", "flower-fixed", "flower-adaptive", "flower-local")
IMPORTED_SETS = {
    "SleepEDF": "tacit data import sleep-cassette --format sleep-edf --out DIR/SleepEDF.npz",
    "MFD": "tacit data import paderborn --format paderborn --out DIR/MFD.npz",
}  # of the paper's five, the ones that a user imports from raw archives into a folder of TACIT_DATA
PUBLISHED_SETS = ("WISDM", "UCIHAR", "HHAR", *IMPORTED_SETS)
PUBLISHED_CELLS: tuple[tuple[str, float | None], ...] = (
    ("fedavg", None), ("dptimefl", 8.0), ("dptimefl", 10.0), ("dptimefl", 100.0),
    ("cdpfl", 8.0), ("cdpfl", 10.0), ("cdpfl", 100.0),
)  # fmt: skip
PUBLISHED_FLEETS = ((100, "tuned"), (1000, "tuned"), (100, "paper"))


def fleet_published(choice: Choice, *, suite: str = "fleet-published") -> list[Task]:
    """DP-TimeFL to the letter beside FedAvg and CDP-FL, all from the same start.

    As in the paper, Sleep-EDF and MFD have 100 clients only. The paper's network comes last,
    because a round of it costs as much as a hundred of the light one.
    """
    return [
        task
        for (n_clients, preset), name, seed, (variant, epsilon) in product(
            PUBLISHED_FLEETS,
            choice.data or PUBLISHED_SETS,
            choice.seeds or range(3),
            PUBLISHED_CELLS,
        )
        if choice.epsilons is None or epsilon in choice.epsilons
        if n_clients == 100 or name not in IMPORTED_SETS
        for task in grid(
            suite,
            replace(choice, data=None, epsilons=None, seeds=None),
            data=(name,),
            methods=[("timefl-published", _published_options(variant, name, n_clients, preset))],
            epsilons=(epsilon,),
            seeds=(seed,),
        )
    ]


def _published_options(variant: str, data: str, n_clients: int, preset: str) -> dict[str, Any]:
    options: dict[str, Any] = {"variant": variant, "n_clients": n_clients, "preset": preset}
    batch_size = batch_size_of(data, n_clients=n_clients)
    return options if batch_size is None else {**options, "batch_size": batch_size}


def fleet_sound(choice: Choice) -> list[Task]:
    """Sound fleets at (8, 1e-5) on persons they know and persons they do not."""
    return [
        task
        for n_clients, seeds in ((100, range(8)), (1000, range(3)))
        for task in grid(
            "fleet-sound",
            choice,
            data=("UCIHAR",),
            methods=[
                (
                    "timefl",
                    {"mechanism": mechanism, "n_clients": n_clients, "split": split,
                     "baselines": True},
                )
                for split, mechanism in product(("subject", "iid"), ("distributed", "privunit"))
            ],
            epsilons=(8.0,),
            seeds=seeds,
        )
    ]  # fmt: skip


def fleet_breadth(choice: Choice) -> list[Task]:
    """Both mechanisms in every setting, one seed of all cells after the other."""
    methods: list[tuple[str, dict[str, Any]]] = [
        ("timefl", {"mechanism": mechanism, "n_clients": n_clients, "split": split})
        for n_clients, split, mechanism in product((100, 1000), SPLITS, MECHANISMS)
    ]
    return [
        task
        for seed in choice.seeds or range(5)
        for task in grid(
            "fleet-breadth",
            replace(choice, seeds=None),
            data=FLEET_SETS,
            methods=methods,
            epsilons=EPSILONS,
            seeds=(seed,),
        )
    ]


def fleet_rivals(choice: Choice) -> list[Task]:
    """Other ways to the same client-level guarantee, on the same features and the same deal.

    Flower's classes take every client's update as a message of its own, so they run with 100
    clients only.
    """
    methods: list[tuple[str, dict[str, Any]]] = []
    for n_clients, split in product((100, 1000), SPLITS):
        rivals = FLEET_RIVALS if n_clients == 100 else FLEET_RIVALS[:2]
        deal = {"n_clients": n_clients, "split": split}
        methods.append(("timefl", {"mechanism": "distributed", "baselines": True, **deal}))
        methods += [(rival, deal) for rival in rivals]
    return [
        task
        for seed in choice.seeds or range(5)
        for task in grid(
            "fleet-rivals",
            replace(choice, seeds=None),
            data=FLEET_SETS,
            methods=methods,
            epsilons=EPSILONS,
            seeds=(seed,),
        )
    ]
