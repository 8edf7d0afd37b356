"""Figures that the guides print are those of the committed records, to the last digit shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.arena.results.fedst import DEFAULTS, method_means, silo_features
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


def _default(classifier: str) -> dict[str, Any]:
    return {"part": "default", "classifier": classifier}


# Every row of silo.md's table of times, and the record it is from: file and what its line has.
SILO_RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "the default: 512 series of 100 steps, 500 candidates, 200 kept": (
        "silo_speed_ridge", {"state": "default fit"},
    ),
    "the same over 10 ms one way and 100 Mbit/s": ("silo_wan", {"one_way_ms": 10.0}),
    "the same with a forest of 40 trees": ("silo_speed", _default("forest")),
    "the same with 300 steps of logistic regression": ("silo_speed", _default("logistic")),
    "the same with information gain, search alone": ("silo_speed", {"part": "gain"}),
    "30 series of 128 steps, 120 candidates, 50 kept": (
        "silo_speed_ridge", {"state": "small federation"},
    ),
    "2048 series of 100 steps, 100 candidates": ("silo_speed_ridge", {"part": "size", "M": 2048}),
    "8192 series of 100 steps, 100 candidates": ("silo_speed_ridge", {"part": "size", "M": 8192}),
    "50,000 series of 50 steps, 20 candidates": (
        "silo_speed_ridge", {"part": "most", "M": 50_000, "candidates": 20},
    ),
    "UCIHAR, 600 windows with nine channels, 500 candidates": (
        "silo_real", {"data": "UCIHAR", "features": ["shapelets"]},
    ),
    "the same with `features=all`": (
        "silo_real", {"data": "UCIHAR", "features": ["shapelets", "intervals", "dictionary"]},
    ),
    "ElectricDevices whole, 8926 series, 100 candidates": (
        "silo_real", {"data": "ElectricDevices", "M": 8926},
    ),
}  # fmt: skip
# Numbers in silo.md's sections of times and accuracies that are settings, limits or names.
SILO_SETTINGS = {
    "65,536", "4096", "2^21", "32", "60", "71", "36", "600", "200", "500", "0", "2",
}  # fmt: skip


def silo_records(start: str) -> list[Record]:
    """The lines that the guide's row may be about, the last one last."""
    file, wanted = SILO_RUNS[start]
    flat = [{**line.get("params", {}), **line} for line in RESULTS.lines(file)]
    return [line for line in flat if wanted.items() <= line.items()]


@pytest.mark.parametrize("start", SILO_RUNS)
def test_the_times_of_the_silo_guide(start: str) -> None:
    """All cells of a row are those of one run."""
    cells = row("silo.md", start, after="## What time to expect")
    runs = [costs(record) for record in silo_records(start)]
    assert any(
        all(
            cell == "-" if value is None else shown_alike(cell, value)
            for cell, value in zip(cells, run, strict=True)
        )
        for run in runs
    ), (cells, runs)


def costs(record: Record) -> list[float | None]:
    """Seconds, processor seconds, MB, rounds and the largest process of one run."""
    sent = record.get("bytes_sent_by_party") or record["bytes_sent"]
    rounds = sum(record["rounds"].values()) if "rounds" in record else None
    spent = [record["wall_seconds"], record["cpu_seconds"], max(sent) / 1e6]
    return [*spent, rounds, record.get("largest_process_mb")]


def test_the_accuracies_of_the_silo_guide() -> None:
    """The guide shows seed 0; the results page has all seeds."""
    first = [r for r in RESULTS.suite("fedst") if r["task"]["seed"] == 0]
    found = method_means(first, DEFAULTS)
    ours = found.of[DEFAULTS[0]]
    starts = {
        "GlobalST: all series in one hand": 1, "LocalST: P0 alone": 2,
        "local search, federated transform": 3, "federated search, local transform": 4,
    }  # fmt: skip
    after = "## What accuracy to expect"
    expect(row("silo.md", "FedST", after=after), [ours])
    for start, place in starts.items():
        mean, gap = row("silo.md", start, after=after)
        assert shown_alike(mean, found.of[DEFAULTS[place]])
        assert gap == f"{ours - found.of[DEFAULTS[place]]:+.4f}"


def test_no_other_figure_of_the_silo_guide_is_typed_by_hand() -> None:
    """A number of its two sections of measurements is a setting, or comes from the records."""
    text = (ROOT / "docs" / "guide" / "silo.md").read_text(encoding="utf-8")
    parts = [text.split("## What time to expect")[1].split("\n## ")[0]]
    parts += [text.split("## What accuracy to expect")[1].split("\n## ")[0]]
    tables = [line for part in parts for line in part.splitlines() if line.startswith("| ")]
    assert len(tables) == 2 + len(SILO_RUNS) + 5  # their heads, and the rows compared above
    prose = "\n".join(line for part in parts for line in part.splitlines() if line[:1] != "|")
    prose = re.sub(r"\]\([^)]*\)|`[^`]*`|[PK]=?\d+", "", prose)
    features = silo_features(RESULTS)
    means = re.findall(r"^\| test part, script \| (?:shapelets, 200|all).*$", features, re.M)
    measured = {number for line in means for number in re.findall(r"0\.\d{4}", line)}
    runs = (
        "UCIHAR, 600 windows with nine channels, 500 candidates",
        "the same with `features=all`",
    )
    measured |= {f"{silo_records(start)[-1]['accuracy']:.3f}" for start in runs}
    typed = {n.rstrip(".,") for n in re.findall(r"\d[\d.,^]*", prose)}
    assert typed - SILO_SETTINGS <= measured
    assert measured <= typed
