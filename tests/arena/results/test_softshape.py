"""The tables and verdicts on DP-SoftShape follow the records of each preset, by their rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.arena.results.softshape import ablations, diatom, published, softshape
from tacit.arena.results.softshape_claims import softshape_claims
from tacit.arena.results.tables import NOISY, Results
from tacit.arena.results.verdicts import in_short
from tacit.arena.softshape.suites import SOFTSHAPE_SETS

PAPER = {"preset": "paper"}


def line(suite: str, method: str, accuracy: float, **changes: Any) -> dict[str, Any]:
    task: dict[str, Any] = {
        "suite": suite, "method": method, "data": "DiatomSizeReduction", "epsilon": 0.1, "seed": 0,
        "options": {}, **changes,
    }  # fmt: skip
    return {"task": task, "status": "done", "commit": "abc", "accuracy": accuracy, "leakage": None}


def grid(suite: str, accuracy: float, method: str = "softshape-published", **options: Any) -> Any:
    return [
        line(suite, method, accuracy, data=data, epsilon=epsilon, options=options)
        for data in SOFTSHAPE_SETS
        for epsilon in NOISY
    ]


def results(folder: Path, lines: list[dict[str, Any]]) -> Results:
    for suite in {found["task"]["suite"] for found in lines}:
        (folder / suite).mkdir()
        mine = [json.dumps(found) for found in lines if found["task"]["suite"] == suite]
        (folder / suite / "results.jsonl").write_text("\n".join(mine) + "\n")
    return Results(folder)


def verdicts(found: Results) -> dict[str, tuple[str, str]]:
    return {row[1]: (row[2], row[3]) for row in softshape_claims(found)}


@pytest.mark.parametrize(("uniform", "verdict"), [(0.62, "reproduced"), (0.68, "refuted")])
def test_a_uniform_version_must_lose_more_than_half_of_the_lead(
    tmp_path: Path, uniform: float, verdict: str
) -> None:
    found = results(
        tmp_path,
        [
            *grid("softshape-table2", 0.72, **PAPER),
            *grid("softshape-table2", 0.56, "rocket"),
            *grid("softshape-table3", uniform, **PAPER, attention_guided=False),
        ],
    )
    said = verdicts(found)
    assert said["mean accuracy .722 over four budgets (preset paper)"] == (
        "reproduced so far (incomplete: 76 of 228 runs)",
        "0.720 on 19 sets, 1 seed, at no guarantee",
    )
    claim = "a uniform-budget version loses most of this gain (preset paper)"
    assert said[claim][0] == f"{verdict} so far (incomplete: 76 of 228 runs)"
    assert f"{uniform - 0.56:+.3f} of +0.160" in said[claim][1]
    assert said[claim.replace("paper", "tuned")][0] == "not tested here"


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [(0.19, "reproduced"), (0.05, "only its sign, at .1"), (-0.01, "not reproduced")],
)
def test_the_experts_are_judged_by_their_gain_at_the_smallest_budget(
    tmp_path: Path, gain: float, verdict: str
) -> None:
    lines = []
    for seed, shift in ((0, 0.0), (1, 0.01)):
        for record in grid("softshape-table3", 0.7, **PAPER):
            record["task"]["seed"] = seed
            lines.append(record)
        for record in grid("softshape-table3", 0.7 - gain - shift, **PAPER, use_moe=False):
            record["task"]["seed"] = seed
            lines.append(record)
    claim = "the Mixture-of-Experts layer recovers features (preset paper)"
    said = verdicts(results(tmp_path, lines))[claim]
    assert said[0].startswith(verdict)
    assert "2 seeds" in said[1]
    assert "over 4 budgets" in said[1]


def test_a_mean_over_some_sets_is_not_compared_with_the_papers(tmp_path: Path) -> None:
    lines = [r for r in grid("softshape-table2", 0.8, **PAPER) if r["task"]["data"] < "D"]
    said = verdicts(results(tmp_path, lines))["mean accuracy .722 over four budgets (preset paper)"]
    assert said == (
        "incomplete: 4 of 19 sets",
        "0.800 on 4 sets, 1 seed, at no guarantee",
    )


def test_a_cell_that_two_suites_ran_counts_once_and_presets_stay_apart(tmp_path: Path) -> None:
    found = results(
        tmp_path,
        [
            line("softshape-table2", "softshape-published", 0.3, epsilon=0.5, options=PAPER),
            line("softshape-table3", "softshape-published", 0.4, epsilon=0.5, options=PAPER),
            line("softshape-published", "softshape-published", 0.9, epsilon=0.5),
        ],
    )
    assert [r["accuracy"] for r in published(found, "paper", epsilons=(0.5,))] == [0.4]
    assert "| nominal 0.5 | 0.337 | paper | 0.400 (1 seed) |" in diatom(found)
    assert "| nominal 0.5 | 0.337 | tuned | 0.900 (1 seed) |" in diatom(found)


def test_a_seed_that_is_not_finished_is_told_and_has_no_spread(tmp_path: Path) -> None:
    half = [
        line("softshape-table2", "softshape-published", 0.0, data="CBF", seed=1, options=PAPER),
        line("softshape-table3", "softshape-published", 0.0, data="CBF", seed=1,
             options={**PAPER, "soft": False}),
    ]  # fmt: skip
    found = results(
        tmp_path,
        [
            *grid("softshape-table2", 0.6, **PAPER),
            *grid("softshape-table3", 0.5, **PAPER, soft=False),
            *half,
        ],
    )
    assert "| paper | nominal 0.1 | 0.584 (1 to 2 seeds) | 19 of 19 | - |" in softshape(found)
    wanted = "| paper | hard sparsification | 0.1 | +0.19 | +0.097 | 19 of 19 | 1 to 2 |"
    assert wanted in ablations(found)


def test_means_over_different_sets_do_not_stand_under_each_other(tmp_path: Path) -> None:
    def whole(record: dict[str, Any]) -> bool:
        return bool(record["task"]["epsilon"] == 0.1 or record["task"]["data"] < "D")

    full = [r for r in grid("softshape-table2", 0.7, **PAPER) if whole(r)]
    without = [r for r in grid("softshape-table3", 0.6, **PAPER, soft=False) if whole(r)]
    found = results(tmp_path, [*full, *without])
    assert "| paper | nominal 0.1 | 0.700 (1 seed) | 19 of 19 | - |" in softshape(found)
    assert "| paper | nominal 0.5 | - | 4 of 19 | - |" in softshape(found)
    assert "| paper | hard sparsification | 0.1 | +0.19 | +0.100 | 19 of 19 | 1 |" in ablations(found)
    assert "| paper | hard sparsification | 0.5 | +0.04 | - | 4 of 19 | 1 |" in ablations(found)


@pytest.mark.parametrize(("joined", "verdict"), [(0.97, "refuted"), (0.04, "not refuted by")])
def test_privacy_is_refuted_by_more_joined_releases_than_epsilon_allows(
    tmp_path: Path, joined: float, verdict: str
) -> None:
    lines = grid("softshape-table2", 0.7, **PAPER)
    found = results(tmp_path, [{**r, "leakage": {"reidentification": joined}} for r in lines])
    said = verdicts(found)["releases under local differential privacy, epsilon spent unevenly by "
                           "attention"]  # fmt: skip
    assert said[0].startswith(verdict)
    assert "at most 5% would be possible" in said[1]


def test_a_preset_without_any_whole_set_is_incomplete(tmp_path: Path) -> None:
    lines = [r for r in grid("softshape-table2", 0.7, **PAPER) if r["task"]["epsilon"] == 1.0]
    said = verdicts(results(tmp_path, lines))["mean accuracy .722 over four budgets (preset paper)"]
    assert said[0] == "incomplete: 0 of 19 sets"
    assert "0.700 on 19 sets at 1" in said[1]


def test_presets_share_a_line_of_the_short_table() -> None:
    rows = [("P", f"a claim (preset {preset})", verdict, "", "")
            for preset, verdict in (("paper", "refuted"), ("tuned", "exceeded"))]  # fmt: skip
    rows.append(("P", "7% at 100 clients (tuned preset)", "not reached", "", ""))
    assert in_short(rows) == [
        ("P", "a claim", "refuted (paper); exceeded (tuned)"),
        ("P", "7% at 100 clients", "not reached (tuned)"),
    ]
