"""The page's first figures: the numbers of the docs' tables, for any records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from drawn import layers, lines
from tacit.arena.results.page import MAKERS
from tacit.arena.results.records import Results
from tacit.arena.results.tables import NOISY
from tacit.arena.softshape.suites import SOFTSHAPE_SETS
from tacit.report.arena.opening import HEADING, opening_blocks
from tacit.report.charts import title_of
from tacit.report.page import Text

CURRENT = Path(__file__).parents[3] / "results" / "current"


def figures(results: Results) -> list[Any]:
    return [block for block in opening_blocks(results) if not isinstance(block, Text)]


def record(suite: str, method: str, epsilon: float | None, accuracy: float, **options: Any) -> Any:
    task: dict[str, Any] = {
        "suite": suite,
        "method": method,
        "data": "A",
        "epsilon": epsilon,
        "seed": 0,
    }
    task["options"] = options
    return {"task": task, "status": "done", "commit": "abc", "accuracy": accuracy, "details": {}}


def results_of(folder: Path, *records: Any) -> Results:
    for number, one in enumerate(records):
        place = folder / f"{one['task']['suite']}-{number}"
        place.mkdir()
        (place / "results.jsonl").write_text(json.dumps(one) + "\n")
    return Results(folder)


def test_the_sentences_say_what_the_docs_tables_say() -> None:
    results = Results(CURRENT)
    softshape, fedst, timefl = (title_of(figure) for figure in figures(results))
    claims, silo = MAKERS["claims"](results), MAKERS["silo"](results)
    (mean,) = re.findall(r"as published: accuracy (\d\.\d{3}),", softshape)
    assert f"| {mean} " in MAKERS["rivals"](results)
    sound = MAKERS["sound-labels"](results)
    bounds = re.findall(r"(\d\.\d{3}) of at most (\d\.\d{3}) at (\d+)", softshape)
    assert len(bounds) == 3
    for reached, most, epsilon in bounds:
        assert f"| label | {epsilon} | {reached} | {most} |" in sound
    alone, of, n_sets, pooled = re.findall(
        r"([+-]\S+) against one owner alone, better on (\d+) of (\d+) sets, and ([+-]\S+) ", fedst
    )[0]
    assert f"{alone} against one owner alone, {pooled} against pooling, on {n_sets} of" in claims
    assert 0 < int(of) <= int(n_sets)
    assert f"| {n_sets} of " in silo
    sets = timefl.removeprefix("DP-TimeFL, ").partition(", 100 clients")[0].split(", ")
    published = re.findall(r"at a nominal 8, delta ends \d of \d runs, at (\d\.\d{3})", timefl)
    rows = MAKERS["fleet-nominal"](results)
    of_sets = [
        float(re.findall(rf"{name} \| 100 \| tuned \| DP-TimeFL \| 8 \| (\d\.\d{{3}})", rows)[0])
        for name in sets
    ]
    assert float(published[0]) == pytest.approx(sum(of_sets) / len(sets), abs=0.0011)


def test_a_figure_of_pairs_has_a_dot_for_every_set() -> None:
    chart = figures(Results(CURRENT))[1]
    (dots,) = [rows for mark, rows in layers(chart) if mark == "point"]
    n_sets = int(re.findall(r"of (\d+) sets", title_of(chart))[0])
    names = list(dict.fromkeys(row["name"] for row in dots))
    assert [name.split(",")[0] for name in names[:2]] == ["one owner alone", "pooling"]
    assert sum(row["name"] == names[0] for row in dots) == n_sets


def test_fedst_is_compared_set_by_set(tmp_path: Path) -> None:
    scopes = ("federated", "global", "local", "local-search", "local-transform")
    parts = [
        record("fedst", "fedst", None, accuracy, scope=scope, quality="f", classifier="ridge")
        for scope, accuracy in zip(scopes, (0.7, 0.75, 0.5, 0.1, 0.1), strict=True)
    ]
    heading, chart, _ = opening_blocks(results_of(tmp_path, *parts))
    assert heading.heading == HEADING
    assert title_of(chart) == (
        "FedST: +0.200 against one owner alone, better on 1 of 1 sets, and -0.050 against "
        "pooling all series"
    )


def test_a_fleet_is_drawn_only_where_all_parts_have_a_set(tmp_path: Path) -> None:
    deal = {"n_clients": 100, "split": "iid", "mechanism": "distributed"}
    sound = [record("fleet-breadth", "timefl", e, a, **deal) for e, a in ((1.0, 0.5), (8.0, 0.8))]
    beside = record("fleet-sound", "timefl", 8.0, 0.8, **deal)
    beside["details"] = {"baselines": {"fedavg": 0.9}}
    letter = record(
        "fleet-published", "timefl-published", 8.0, 0.6,
        variant="dptimefl", preset="tuned", n_clients=100,
    )  # fmt: skip
    letter["details"] = {"rounds": 10, "ended_by": "delta"}
    (tmp_path / "all").mkdir()
    (chart,) = figures(results_of(tmp_path / "all", *sound, beside, letter))
    assert lines(chart) == {
        "distributed, its epsilon guaranteed per client": ([1.0, 8.0], [0.5, 0.8]),
        "FedAvg, no privacy": ([1.0, 8.0], [0.9, 0.9]),
    }
    assert "0.800 beside FedAvg's 0.900" in title_of(chart)
    assert "delta ends 1 of 1 runs, at 0.600" in title_of(chart)
    letter["task"]["data"] = "B"
    (tmp_path / "apart").mkdir()
    assert opening_blocks(results_of(tmp_path / "apart", *sound, beside, letter)) == []


def test_a_preset_with_fewer_sets_is_left_out(tmp_path: Path) -> None:
    records = []
    for data in SOFTSHAPE_SETS:
        for epsilon in NOISY:
            records.append(record("softshape-table2", "softshape-published", epsilon, 0.5))
            few = record("softshape-table2", "softshape-published", epsilon, 0.9, preset="paper")
            records.append(few if data == "Plane" else records[-1])
            for one in records[-2:]:
                one["task"]["data"] = data
    chart, how = opening_blocks(results_of(tmp_path, *records))[1:]
    assert list(lines(chart)) == ["DP-SoftShape, preset tuned: - of releases joined"]
    assert title_of(chart).startswith("DP-SoftShape as published: accuracy 0.500,")
    assert "preset paper (1 of 19 sets)" in how.text
