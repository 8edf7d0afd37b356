"""FedST's tables and verdicts follow the records: pairs, equal candidates, contracts, sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tacit.arena.results.earlier import contract_records
from tacit.arena.results.fedst import (
    equal_candidates,
    method_means,
    silo_contracts,
    silo_secure,
)
from tacit.arena.results.fedst_claims import fedst_claims
from tacit.arena.results.tables import Results
from tacit.arena.silo.names import PAPER_METHODS, method_name, secure_pairs
from tacit.arena.silo.suites import SCOPES
from tacit.arena.suites import suite_tasks

IG: dict[str, Any] = {"quality": "ig", "classifier": "forest", "engine": "twin"}
CURRENT = Path(__file__).parents[3] / "results" / "current"


def fedst(data: str, accuracy: float, *, seed: int = 0, **options: Any) -> dict[str, Any]:
    task: dict[str, Any] = {
        "suite": "fedst-secure", "method": "fedst", "data": data, "epsilon": None, "seed": seed,
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
    means, n_sets, n_seeds = method_means([*whole, *part], PAPER_METHODS)
    assert (n_sets, n_seeds) == (1, 1)
    assert means["FedST"] == 0.5
    assert method_means(part, PAPER_METHODS) == ({}, 0, 0)


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
    theirs: dict[str, Any] = {"scope": "federated", "quality": "ig", "classifier": "forest"}
    for twin, verdict in ((0.89, "reproduced by the protocol in its place"), (0.8, "refuted")):
        pair = [
            fedst("a", 0.9, engine="secure", **theirs),
            fedst("a", twin, engine="twin", **theirs),
        ]
        found = fedst_claims(write(tmp_path / verdict, "fedst-secure", [*records, *pair]))
        assert found[0][2] == f"{verdict} so far (incomplete: 1 of 10 sets)"
    assert claims["effective in accuracy"] == "not tested here"


def test_the_committed_ratio_is_on_equal_candidates() -> None:
    found = equal_candidates(Results(CURRENT))
    assert set(found) == {"basic", "+dot", "+sorting", "+F", "+dot+sorting", "+dot+F"}
    assert 40.0 < found["basic"] / found["+dot+F"] < 41.0


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
