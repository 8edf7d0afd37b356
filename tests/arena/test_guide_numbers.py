"""Accuracies that the guides print are those of the committed records, to the last digit shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tacit.arena.results.records import Record, Results
from tacit.arena.results.softshape import published
from tacit.arena.results.tables import accuracies, below_own_fedavg, over_sets

ROOT = Path(__file__).parents[2]
RESULTS = Results(ROOT / "results" / "current")
TOTALS = (1.0, 2.0, 3.0, 5.0, 8.0)


def row(page: str, start: str, *, after: str = "") -> list[str]:
    """The cells of the table row that begins so, without marks of emphasis."""
    text = (ROOT / "docs" / "guide" / page).read_text(encoding="utf-8").replace("**", "")
    text = text[text.index(after) :]
    (line,) = re.findall(rf"^\| {re.escape(start)} \|(.*)\|$", text, re.M)[:1]
    return [cell.strip() for cell in line.split("|")]


def shown_alike(printed: str, value: float) -> bool:
    """Whether the number is what is printed, rounded to as many digits."""
    digits = len(printed.partition(".")[2])
    return bool(abs(float(printed) - value) <= 0.5 * 10.0**-digits + 1e-9)


def numbers(cells: Sequence[str]) -> list[str]:
    return re.findall(r"\d*\.\d+", " ".join(cells))


def expect(cells: Sequence[str], values: Sequence[float]) -> None:
    printed = numbers(cells)
    assert len(printed) == len(values)
    wrong = [pair for pair in zip(printed, values, strict=True) if not shown_alike(*pair)]
    assert not wrong


def releases(name: str, epsilon: float) -> list[Record]:
    wanted = (f"softshape-{name}", epsilon)
    records = RESULTS.suite("softshape-sound")
    return [r for r in records if (r["task"]["method"], r["task"]["epsilon"]) == wanted]


@pytest.mark.parametrize("name", ["label", "place", "vector", "shapes"])
def test_the_releases_of_the_local_guide(name: str) -> None:
    values = [over_sets(accuracies(releases(name, epsilon))) for epsilon in TOTALS]
    expect(row("local.md", name, after="| total epsilon | 1 |"), values)


@pytest.mark.parametrize("name", ["ceiling", "floor"])
def test_the_bounds_of_the_local_guide(name: str) -> None:
    values = [
        over_sets((r["task"]["data"], r["details"][name]) for r in releases("label", epsilon))
        for epsilon in TOTALS
    ]
    expect(row("local.md", name, after="| total epsilon | 1 |"), values)


def test_the_published_network_of_the_local_guide() -> None:
    """Its table has seeds 0 to 2 of the preset tuned."""
    after = "| nominal epsilon | .1 |"
    means, each = [], []
    for epsilon in (0.1, 0.5, 1.0, 5.0, None):
        records = published(RESULTS, "tuned", epsilons=(epsilon,))
        seeds = [
            np.mean([r["accuracy"] for r in records if r["task"]["seed"] == seed])
            for seed in range(3)
        ]
        means.append(float(np.mean(seeds)))
        each += [float(mean) for mean in seeds]
    expect(row("local.md", "accuracy", after=after), means)
    expect(row("local.md", "per seed", after=after), each)


@pytest.mark.parametrize("clients", [100, 1000])
@pytest.mark.parametrize("split", ["iid", "subject"])
def test_the_fleets_of_the_fleet_guide(split: str, clients: int) -> None:
    seeds = "0-7" if clients == 100 else "0-2"
    values: list[float] = []
    fedavg: list[float] = []
    for mechanism in ("privunit", "distributed"):
        wanted = {"split": split, "n_clients": clients, "mechanism": mechanism}
        mine = [
            r
            for r in RESULTS.suite("fleet-sound")
            if wanted.items() <= r["task"]["options"].items()
        ]
        found = [r["accuracy"] for r in mine]
        gap = float(np.mean([below_own_fedavg(r) for r in mine]))
        values += [float(np.mean(found)), float(np.std(found, ddof=1)), gap]
        fedavg += [r["details"]["baselines"]["fedavg"] for r in mine]
    cells = row("fleet.md", f"{split}, {clients} clients, seeds {seeds}")
    expect(cells, [*values, float(np.mean(fedavg))])


@pytest.mark.parametrize("split", ["iid", "subject", "dirichlet"])
@pytest.mark.parametrize("data", ["UCIHAR", "WISDM", "HHAR"])
def test_the_breadth_of_the_fleet_guide(data: str, split: str) -> None:
    values = []
    for clients in (100, 1000):
        for mechanism in ("distributed", "privunit"):
            wanted = {"split": split, "n_clients": clients, "mechanism": mechanism}
            mine = [
                r
                for r in RESULTS.suite("fleet-breadth")
                if r["task"]["data"] == data and wanted.items() <= r["task"]["options"].items()
            ]
            values += [
                float(np.mean([r["accuracy"] for r in mine if r["task"]["epsilon"] == epsilon]))
                for epsilon in (8.0, 3.0, 1.0)
            ]
    expect(row("fleet.md", f"{data}, {split}"), values)
