"""FedST's tables and verdicts follow the records: pairs, equal candidates, contracts, sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.arena.grid import Choice
from tacit.arena.results.earlier import contract_records
from tacit.arena.results.fedst import (
    N_POOLED,
    Means,
    equal_candidates,
    method_means,
    silo_contracts,
    silo_features,
    silo_secure,
)
from tacit.arena.results.fedst_claims import fedst_claims
from tacit.arena.results.tables import Results
from tacit.arena.silo.names import PAPER_METHODS, method_name, secure_pairs
from tacit.arena.silo.suites import SCOPES, SECURE_SETS
from tacit.arena.suites import suite_tasks

IG: dict[str, Any] = {"quality": "ig", "classifier": "forest", "engine": "twin"}
CURRENT = Path(__file__).parents[3] / "results" / "current"


def fedst(
    data: str, accuracy: float, *, seed: int = 0, suite: str = "fedst-secure", **options: Any
) -> dict[str, Any]:
    task: dict[str, Any] = {
        "suite": suite, "method": "fedst", "data": data, "epsilon": None, "seed": seed,
        "options": options,
    }  # fmt: skip
    details = {"predictions": str(accuracy), "shapelets": "0:1:9 0:2:9"}
    record = {"task": task, "status": "done", "commit": "abc", "accuracy": accuracy}
    return {**record, "details": details}


def write(folder: Path, suite: str, records: list[dict[str, Any]]) -> Results:
    (folder / suite).mkdir(parents=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / suite / "results.jsonl").write_text(lines)
    return Results(folder)


def test_methods_have_the_names_of_the_paper() -> None:
    names = {method_name(dict(task.options)) for task in suite_tasks("fedst")}
    ours = {f"{name}, default" for name in PAPER_METHODS}
    assert names == {*PAPER_METHODS, "FedST-F", *ours}


def test_a_set_that_lacks_a_method_is_in_no_mean() -> None:
    whole = [fedst("a", 0.5 + 0.1 * i, scope=s, **IG) for i, s in enumerate(SCOPES)]
    part = [fedst("b", 0.0, scope=scope, **IG) for scope in SCOPES[:4]]
    found = method_means([*whole, *part], PAPER_METHODS)
    assert (found.n_sets, found.seeds, found.n_runs) == (1, "1", 5)
    assert found.of["FedST"] == 0.5
    assert method_means(part, PAPER_METHODS) == Means({}, 0, "0", 0)


def test_a_seed_that_lacks_a_method_is_in_no_mean() -> None:
    whole = [fedst("a", 0.5, scope=scope, **IG) for scope in SCOPES]
    part = [fedst("a", 0.9, seed=1, scope=scope, **IG) for scope in SCOPES[:4]]
    found = method_means([*whole, *part], PAPER_METHODS)
    assert (found.of["FedST"], found.seeds, found.n_runs) == (0.5, "1", 5)


def test_a_verdict_is_whole_only_with_every_run_of_every_seed(tmp_path: Path) -> None:
    """One set with three seeds does not make a comparison of three seeds."""
    every = [
        fedst(f"set {number}", 0.5 if scope == "local" else 0.9, suite="fedst", scope=scope, **IG)
        for number in range(N_POOLED)
        for scope in SCOPES
    ]
    more = [{**r, "task": {**r["task"], "seed": seed}} for r in every[:5] for seed in (1, 2)]
    claims = fedst_claims(write(tmp_path / "some", "fedst", [*every, *more]))
    for claim, verdict, figure in [row[1:4] for row in claims if "fedst --out" in row[4]]:
        assert verdict.endswith("reproduced so far (incomplete: 355 of 1035 runs)"), claim
        assert figure.endswith("on 69 of 69 possible sets, 1 to 3 seeds")
    three = [{**r, "task": {**r["task"], "seed": seed}} for r in every for seed in (0, 1, 2)]
    claims = fedst_claims(write(tmp_path / "all", "fedst", three))
    whole = [row[2] for row in claims if "fedst --out" in row[4]]
    assert whole == ["reproduced", "not reproduced"]


def test_a_secure_run_is_compared_with_the_twin_of_its_own_seed(tmp_path: Path) -> None:
    kind: dict[str, Any] = {"scope": "federated", "quality": "f", "classifier": "ridge"}
    records = [
        fedst("a", 0.9, engine="secure", **kind),
        fedst("a", 0.9, engine="twin", **kind),
        fedst("a", 0.8, engine="twin", seed=1, **kind),
        fedst("b", 0.7, engine="secure", **kind),
        fedst("b", 0.6, engine="twin", **kind),
        fedst("c", 0.7, engine="secure", **kind),
    ]
    assert len(secure_pairs(records)) == 2
    results = write(tmp_path, "fedst-secure", records)
    row = "| FedST, default | 2 | 1 | 0.1000 | 1 | 4 of 4 | a, b |"
    assert row in silo_secure(results)
    claims = {claim: verdict for _, claim, verdict, _, _ in fedst_claims(results)}
    accurate = "the basic protocol is secure and accurate"
    assert claims[accurate] == "incomplete: 0 of 10 sets with information gain"
    assert claims["effective in accuracy"] == "not tested here"


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ({"CBF": 0.02}, "reproduced by the protocol in its place"),
        ({"CBF": 0.03, "ECG200": 0.0}, "not reproduced"),  # of one set
        ({"Coffee": 1 / 28, "CBF": 0.0}, "reproduced by the protocol in its place"),
        ({"Coffee": 2 / 28, "CBF": 0.0, "ECG200": 0.0, "GunPoint": 0.0}, "not reproduced"),
        ({"Coffee": 1 / 28, "CBF": 0.01}, "not reproduced"),  # in the mean
    ],
)
def test_the_secure_path_is_judged_by_mean_and_set_and_never_refuted(
    gaps: dict[str, float], verdict: str, tmp_path: Path
) -> None:
    theirs: dict[str, Any] = {"scope": "federated", "quality": "ig", "classifier": "forest"}
    records = [
        fedst(data, 0.9 - gap * (engine == "twin"), engine=engine, **theirs)
        for data, gap in gaps.items()
        for engine in ("secure", "twin")
    ]
    claim = fedst_claims(write(tmp_path, "fedst-secure", records))[0]
    assert claim[2] == f"{verdict} so far (incomplete: {len(gaps)} of 10 sets)"


def test_the_test_parts_have_the_sizes_that_the_rule_takes() -> None:
    for record in Results(CURRENT).suite("fedst-secure"):
        right = record["accuracy"] * SECURE_SETS[record["task"]["data"]]
        assert abs(right - round(right)) < 1e-6, record["task"]["data"]


def test_the_committed_ratio_is_on_equal_candidates() -> None:
    _, found = equal_candidates(Results(CURRENT))
    assert set(found) == {"basic", "+dot", "+sorting", "+F", "+dot+sorting", "+dot+F"}
    assert 40.0 < found["basic"] / found["+dot+F"] < 41.0


def test_kinds_of_features_are_compared_on_the_same_sets(tmp_path: Path) -> None:
    scores = {"shapelets": 0.8, "all": 0.9}
    found = [
        {**fedst(task.data, scores.get(dict(task.options)["features"], 0.5), suite=task.suite,
                 **dict(task.options))}
        for task in suite_tasks("fedst-features", Choice(data=["Coffee", "Ham"], seeds=[0]))
        if (task.data, dict(task.options)["features"]) != ("Ham", "intervals")
    ]  # fmt: skip
    shown = silo_features(write(tmp_path, "fedst-features", found))
    assert "| test part, suite | shapelets, 200 kept | 0.8000 |  | 1 | 1 |" in shown
    assert "| test part, suite | all, 300 kept | 0.9000 | +0.1000 | 1 | 1 |" in shown
    committed = silo_features(Results(CURRENT))
    assert "| test part, script | all, 300 kept | 0.8296 | +0.0198 (0.0094) | 36 | 1 |" in committed


def test_a_ratio_is_of_one_commit(tmp_path: Path) -> None:
    """A later line of one variant alone makes no ratio with another commit's basic."""
    lines = [
        {"part": "ratio", "candidates": 40, "variant": variant, "commit": commit,
         "seconds_without_compiling": seconds}
        for variant, commit, seconds in (
            ("basic", "aaa", 10.0), ("+dot+F", "aaa", 1.0), ("+dot+F", "bbb", 0.1)
        )
    ]  # fmt: skip
    (tmp_path / "silo_speed.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    assert equal_candidates(Results(tmp_path)) == ("aaa", {"basic": 10.0, "+dot+F": 1.0})


def test_contracts_of_the_script_are_read_and_those_of_the_suite_win(tmp_path: Path) -> None:
    earlier = contract_records(CURRENT)
    assert len(earlier) == 4
    assert all(len(record["details"]["contracts"]) == 9 for record in earlier)
    known = {task.key for task in suite_tasks("fedst-contract")}
    assert {json.dumps(record["task"], sort_keys=True) for record in earlier} <= known
    source = (CURRENT / "silo_contract.jsonl").read_text()
    (tmp_path / "silo_contract.jsonl").write_text(source)
    again = earlier[0]
    details = {**again["details"], "contracts": again["details"]["contracts"][:1]}
    results = write(tmp_path, "fedst-contract", [{**again, "commit": "abc", "details": details}])
    table = silo_contracts(results)
    assert table.count(" of 9 |") == 3
    assert table.count("| 1 of 1 |") == 1
