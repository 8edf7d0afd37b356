"""A whole run: what it learns, what it charges, what it does when clients stay away."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from seeded import SeededNoise
from tacit.data import load_dataset
from tacit.errors import BundleError, TacitError
from tacit.fleet.learning.head import class_scores, feature_map
from tacit.fleet.plan import FleetPlan, PrivUnitSettings
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.privunit import PrivUnitReport
from tacit.fleet.reports.protocol import RoundNotReleased
from tacit.fleet.simulation import simulator
from tacit.fleet.simulation.baselines import train_central, train_fedavg
from tacit.fleet.simulation.checkpoint import load_checkpoint
from tacit.fleet.simulation.fleet import Fleet, make_fleet
from tacit.guarantee import DpGuarantee
from tacit.system.progress import silent

N = 40


@lru_cache
def plan(mechanism: str = "distributed", **changes: int) -> FleetPlan:
    options: dict[str, int] = {"n_clients": N, "n_rounds": 12, "n_kernels": 30, **changes}
    return make_plan(
        classes=("1", "2"),
        n_channels=1,
        length=24,
        mechanism=mechanism,
        epsilon=20.0,
        **options,  # type: ignore[arg-type]
    )


@lru_cache
def problem() -> tuple[Fleet, NDArray[Any], NDArray[Any]]:
    data = load_dataset("ItalyPowerDemand")
    rows = feature_map(plan()).transform(np.concatenate([data.X_train, data.X_test]))
    labels = (np.concatenate([data.y_train, data.y_test]) == "2").astype(np.int64)
    train, test = slice(0, 600), slice(600, None)
    client = np.arange(600) % N
    fleet = make_fleet(rows[train], labels[train], client, n_clients=N, n_classes=2)
    return fleet, rows[test], labels[test]


def run(mechanism: str = "distributed", seed: int = 0, **options: object) -> simulator.SimulatedRun:
    changes = options.pop("plan", {})
    return simulator.simulate(
        problem()[0],
        plan(mechanism, **changes),  # type: ignore[arg-type]
        rng=np.random.default_rng(seed),
        source=SeededNoise(seed),
        **options,  # type: ignore[arg-type]
    )


def epsilon_of(run: simulator.SimulatedRun) -> float:
    assert isinstance(run.guarantee, DpGuarantee)
    return run.guarantee.epsilon


def accuracy(weights: NDArray[Any]) -> float:
    _, rows, labels = problem()
    return float(np.mean(class_scores(rows, weights).argmax(axis=1) == labels))


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_a_run_learns_within_its_budget(mechanism: str) -> None:
    result = run(mechanism)
    assert accuracy(result.model.average) > 0.8
    assert 0.9 * 20.0 < epsilon_of(result) <= 20.0
    assert [record.n_reports for record in result.history] == [N] * 12
    spent = [record.epsilon_spent for record in result.history if record.epsilon_spent]
    assert spent == sorted(spent)
    assert spent[-1] == epsilon_of(result)
    np.testing.assert_array_equal(result.client_epsilon, epsilon_of(result))


def test_only_the_noise_makes_two_runs_differ() -> None:
    first, second = (run(seed=4).model.weights for _ in range(2))
    np.testing.assert_array_equal(first, second)
    fleet = problem()[0]
    third, fourth = (
        simulator.simulate(fleet, plan(), rng=np.random.default_rng(4)).model.weights
        for _ in range(2)
    )
    assert not np.allclose(third, fourth)


def test_the_account_follows_the_reports_really_received() -> None:
    full = run()
    thin = run(plan={"n_min": 20}, dropout=0.3)
    assert all(record.n_reports < N for record in thin.history)
    assert epsilon_of(thin) <= 20.0
    assert epsilon_of(full) <= 20.0
    assert thin.history[0].n_reports >= 20


def test_rounds_with_too_few_reports_are_not_released_and_cost_nothing() -> None:
    result = run(plan={"n_min": 30}, dropout=0.25)
    released = [record for record in result.history if record.released]
    assert 0 < len(released) < 12
    assert result.model.round_number == len(released)
    with pytest.raises(RoundNotReleased, match="nothing was learned"):
        run(dropout=0.5)


def test_clients_in_turn_spend_for_their_own_rounds_only() -> None:
    result = run("privunit", plan={"clients_per_round": 20}, clients_per_round=20)
    assert result.plan.client_rounds == 6
    assert epsilon_of(result) <= 20.0


def test_local_epsilons_per_client_are_charged_among_their_equals() -> None:
    values = np.where(np.arange(N) < 10, 0.2, 0.8)
    result = run("privunit", local_epsilon=values)
    few, many = result.client_epsilon[0], result.client_epsilon[-1]
    assert few < many == epsilon_of(result)
    assert few <= 12 * 0.2 + 1e-9  # never above plain composition
    alone = PrivUnitReport(
        replace(result.plan, settings=PrivUnitSettings(local_epsilon=0.8))
    ).guarantee([30] * 12)
    assert alone is not None
    assert many == alone.epsilon
    with pytest.raises(TacitError, match="pass the total"):
        run("privunit", local_epsilon=np.where(np.arange(N) < 1, 5.0, 0.5))
    with pytest.raises(TacitError, match="privunit"):
        run("distributed", local_epsilon=values)


class _Death(Exception):
    """The machine goes away."""


def _die_after(rounds: int) -> object:
    def progress(done: int, total: int, message: str) -> None:
        if done == rounds:
            raise _Death

    return progress


def test_a_run_resumes_where_it_was_and_spends_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    with pytest.raises(_Death):
        run(checkpoint=file, progress=_die_after(5))
    assert len(load_checkpoint(file).received) == 5
    resumed = run(checkpoint=file, resume=True)
    assert resumed.model.round_number == 12
    assert len(resumed.history) == 12
    assert epsilon_of(resumed) == epsilon_of(run())


def test_a_round_that_died_between_opening_and_saving_counts_as_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.npz"
    release = simulator._release
    calls = []

    def dying(*arguments: object) -> object:
        calls.append(1)
        if len(calls) == 4:
            raise _Death
        return release(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(simulator, "_release", dying)
    with pytest.raises(_Death):
        run(checkpoint=file)
    state = load_checkpoint(file)
    assert (len(state.received), state.model.round_number) == (4, 3)
    resumed = run(checkpoint=file, resume=True)
    assert resumed.model.round_number == 11  # one round was lost, not repeated
    assert epsilon_of(resumed) == epsilon_of(run())


def test_a_checkpoint_of_another_plan_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    run(checkpoint=file)
    with pytest.raises(BundleError, match="another plan"):
        run("privunit", checkpoint=file, resume=True)
    with pytest.raises(BundleError, match="no checkpoint"):
        run(checkpoint=tmp_path / "none.npz", resume=True)


def test_a_resumed_run_keeps_the_turns_of_its_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four of forty clients per round, ten rounds, a death after each: one report per client."""
    reports = np.zeros(N, dtype=int)
    total = Fleet.total

    def counted(self: Fleet, members: NDArray[Any], *rest: Any, **options: Any) -> object:
        reports[members] += 1
        return total(self, members, *rest, **options)

    monkeypatch.setattr(Fleet, "total", counted)
    options = {"clients_per_round": 4, "plan": {"clients_per_round": 4, "n_rounds": 10}}
    for number in range(10):  # every process draws another order
        try:
            result = run(
                "privunit",
                seed=number,
                checkpoint=tmp_path / "run.npz",
                resume=number > 0,
                progress=_die_after(number + 1) if number < 9 else silent,
                **dict(options),
            )
        except _Death:
            continue
    assert result.plan.client_rounds == 1
    assert reports.tolist() == [1] * N
    assert epsilon_of(result) <= 20.0


def test_a_resumption_with_other_local_epsilons_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    with pytest.raises(_Death):
        run("privunit", local_epsilon=[0.8] * N, checkpoint=file, progress=_die_after(11))
    for other in ([0.1] * N, [0.8] * (N - 1) + [0.7], None):
        with pytest.raises(BundleError, match="resume with the same local epsilons"):
            run("privunit", local_epsilon=other, checkpoint=file, resume=True)
    resumed = run("privunit", local_epsilon=[0.8] * N, checkpoint=file, resume=True)
    assert epsilon_of(resumed) == epsilon_of(run("privunit", local_epsilon=[0.8] * N))


def test_a_resumption_with_other_owners_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    run(checkpoint=file)
    rows, labels = (
        np.random.default_rng(0).normal(size=(600, plan().n_features)),
        np.arange(600) % 2,
    )
    other = make_fleet(rows, labels, np.roll(np.arange(600) % N, 1), n_clients=N, n_classes=2)
    with pytest.raises(BundleError, match="dealt to clients in another way"):
        simulator.simulate(
            other, plan(), rng=np.random.default_rng(0), checkpoint=file, resume=True
        )


def test_turns_that_the_plan_does_not_count_on_are_refused() -> None:
    turns = plan("privunit", clients_per_round=20)
    with pytest.raises(TacitError, match="12 rounds each and the plan counts on 6"):
        simulator.simulate(problem()[0], turns, rng=np.random.default_rng(0))
    with pytest.raises(TacitError, match="clients_per_round must lie"):
        run(clients_per_round=41)
    with pytest.raises(TacitError, match="resume needs the checkpoint"):
        run(resume=True)


def test_the_baselines_bound_the_private_run() -> None:
    fleet = problem()[0]
    best = accuracy(train_fedavg(fleet, plan()).average)
    central, guarantee = train_central(fleet, plan(), source=SeededNoise(0))
    assert best > 0.9
    assert accuracy(central.average) > 0.8
    assert guarantee.nominal_epsilon is not None
    assert guarantee.nominal_epsilon <= 20.0
    assert "float64" in guarantee.sentence


def test_an_empty_client_and_a_bad_dropout_are_refused() -> None:
    with pytest.raises(TacitError, match="holds no series"):
        make_fleet(np.ones((2, 3)), np.array([0, 1]), np.array([0, 2]), n_clients=3, n_classes=2)
    with pytest.raises(TacitError, match="dropout"):
        run(dropout=1.0)
