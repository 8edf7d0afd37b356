"""DP-TimeFL's verdicts follow the records: no lead is refuted or granted beforehand."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.arena.results.tables import below_fedavg, gap_in_words
from tacit.arena.results.timefl_claims import timefl_claims


def run(variant: str, accuracy: float, **changes: Any) -> dict[str, Any]:
    task: dict[str, Any] = {
        "data": "WISDM", "seed": 0, "epsilon": None if variant == "fedavg" else 100.0,
        "options": {"variant": variant, "n_clients": 100, "preset": "tuned"}, **changes,
    }  # fmt: skip
    return {"task": task, "accuracy": accuracy, "details": {"rounds": 9, "ended_by": "delta"}}


def fleets(ours: float, fedavg: float, central: float) -> list[dict[str, Any]]:
    return [
        run(variant, accuracy, data=data, seed=seed, epsilon=epsilon)
        for data in ("WISDM", "UCIHAR", "HHAR")
        for seed in range(3)
        for variant, accuracy, budgets in (
            ("fedavg", fedavg, (None,)),
            ("dptimefl", ours, (8.0, 10.0, 100.0)),
            ("cdpfl", central, (8.0, 10.0, 100.0)),
        )
        for epsilon in budgets
    ]


def verdicts(records: list[dict[str, Any]]) -> list[str]:
    rows = timefl_claims(records, clients=100, below=0.009, above=0.072)
    return [verdict for _, claim, verdict, _, _ in rows if "tuned" in claim]


@pytest.mark.parametrize(
    ("central", "lead"),
    [(0.82, "reproduced"), (0.6, "exceeded"), (0.88, "not reached"), (0.95, "not reproduced")],
)
def test_a_lead_is_judged_by_its_size(central: float, lead: str) -> None:
    assert verdicts(fleets(0.9, 0.91, central)) == ["reproduced at 100", lead]


@pytest.mark.parametrize(
    ("fedavg", "loss"), [(0.85, "exceeded"), (0.92, "reproduced"), (0.97, "not reached")]
)
def test_a_loss_is_judged_at_100(fedavg: float, loss: str) -> None:
    assert verdicts(fleets(0.9, fedavg, 0.82))[0] == f"{loss} at 100"


def test_missing_runs_are_counted() -> None:
    some = [r for r in fleets(0.9, 0.91, 0.82) if r["task"]["data"] == "WISDM"]
    assert verdicts(some) == [
        "incomplete: 3 of 9 runs at 100",
        "incomplete: 9 of 27 pairs of runs",
    ]
    first = [r for r in fleets(0.9, 0.91, 0.82) if r["task"]["seed"] == 0]
    assert verdicts(first) == [
        "reproduced at 100 so far (incomplete: 3 of 9 runs)",
        "reproduced so far (incomplete: 9 of 27 pairs of runs)",
    ]
    at_8 = [run("fedavg", 0.9), run("dptimefl", 0.8, epsilon=8.0)]
    assert verdicts(at_8) == ["incomplete: 0 of 9 runs at 100", "not tested here"]
    rows = timefl_claims([], clients=100, below=0.009, above=0.072)
    assert [row[2] for row in rows] == ["not tested here"] * 4  # both presets have their rows


@pytest.mark.parametrize("epsilon", [8.0, 10.0, 100.0])
def test_budgets_on_different_sets_are_not_averaged(epsilon: float) -> None:
    """Without one set at one budget its mean would be over other sets than the others'."""
    every = fleets(0.9, 0.91, 0.82)
    some = [r for r in every if (r["task"]["data"], r["task"]["epsilon"]) != ("HHAR", epsilon)]
    loss, lead = verdicts(some)
    assert lead == "incomplete: 24 of 27 pairs of runs"
    assert loss == ("incomplete: 6 of 9 runs at 100" if epsilon == 100.0 else "reproduced at 100")


def test_runs_without_a_fedavg_are_kept_and_told() -> None:
    records = [run("fedavg", 0.9), run("dptimefl", 0.8), run("dptimefl", 0.7, seed=1)]
    gaps = [gap for record, gap in below_fedavg(records) if record in records[1:]]
    assert gaps == [pytest.approx(0.1), None]
    assert gap_in_words(gaps) == "+0.100 (1 of 2 runs have FedAvg)"
