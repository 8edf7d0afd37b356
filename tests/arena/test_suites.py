"""The suites are the grids that were recorded, and one small task of every kind runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import tacit
from left_out import skip_if_left_out
from tacit.arena.grid import Choice
from tacit.arena.record import run_task
from tacit.arena.results.earlier import earlier_records
from tacit.arena.store import read_records
from tacit.arena.suites import SUITES, suite_tasks
from tacit.arena.task import Task, task_from_dict
from tacit.errors import TacitError
from tacit.local.release import SYMBOL_KINDS

CURRENT = Path(__file__).parents[2] / "results" / "current"
SIZES = {
    "quick": 42,
    "softshape-table2": 19 * 10 * 5 * 3,
    "softshape-table3": 19 * 4 * 4 * 3,
    "fedst": 130,
    "timefl": 42,
    "frontier": 19 * 8 * 5 * 3,
    "softshape-published": 19 * (5 * 3 + 4 * 6 - 3),
    "softshape-sound": 19 * 5 * (3 + 3 + 1 + 1),
    "fedst-scopes": 36 * 6,
    "fedst-secure": 4 * 4 * 2,
    "fleet-published": 3 * 2 * 5 * 3,
    "fleet-sound": 2 * 2 * (8 + 3),
    "fleet-rivals": 3 * 3 * 3 * 2 * (6 + 3),
    "fleet-breadth": 3 * 3 * 2 * 2 * 3 * 5,
}
SCRIPTS = {
    "softshape-published": 684,
    "softshape-sound": 475,
    "fedst-scopes": 216,
    "fleet-published": 86,
    "fleet-sound": 44,
}


def test_every_suite_has_its_number_of_tasks() -> None:
    assert {name: len(set(suite_tasks(name))) for name in SUITES} == SIZES


def test_one_seed_of_every_cell_of_the_breadth_comes_before_the_next() -> None:
    tasks = suite_tasks("fleet-breadth")
    assert [task.seed for task in tasks] == sorted(task.seed for task in tasks)
    one = suite_tasks("fleet-breadth", Choice(data=["HHAR"], seeds=[3], epsilons=[1.0]))
    assert len(one) == 3 * 2 * 2
    assert {(task.data, task.seed, task.epsilon) for task in one} == {("HHAR", 3, 1.0)}


@pytest.mark.parametrize("suite", SCRIPTS)
def test_what_scripts_recorded_are_tasks_of_today(suite: str) -> None:
    """Same data sets, methods, budgets, seeds and options, so that a run can resume from it."""
    records = earlier_records(CURRENT, suite)
    assert len(records) == SCRIPTS[suite]
    tasks = {task_from_dict(record["task"]) for record in records}
    assert len(tasks) == len(records)
    assert tasks <= set(suite_tasks(suite))
    assert all(0.0 <= record["accuracy"] <= 1.0 for record in records)
    assert not any(record["commit"].endswith(("-dirty", "unknown")) for record in records)


def test_committed_records_are_tasks_of_their_suites() -> None:
    """All but the ones of options that a suite no longer has still load."""
    known = {task.key for name in SUITES for task in suite_tasks(name)}
    records = read_records(CURRENT)
    assert len(records) == 2082
    assert {task_from_dict(record["task"]).key for record in records} <= known


def test_a_suite_without_earlier_records_has_none(tmp_path: Path) -> None:
    assert earlier_records(CURRENT, "quick") == []
    assert earlier_records(tmp_path, "fleet-sound") == []


def small(suite: str, *, data: str, changes: Mapping[str, Any], **wanted: Any) -> Task:
    """The suite's first task with these options, on a small data set and with less to do."""
    task = next(
        task
        for task in suite_tasks(suite)
        if wanted.items() <= {**dict(task.options), "method": task.method}.items()
    )
    options = tuple(sorted({**dict(task.options), **changes}.items()))
    return Task(
        suite=suite, method=task.method, data=data, epsilon=task.epsilon, options=options
    )  # fmt: skip


@pytest.fixture(scope="module")
def persons(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Series of six persons, three of them in the test part."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "persons.npz"
    y = np.tile(["a", "b"], 60)
    X = rng.normal(size=(120, 1, 32)) + 2.0 * (y == "b")[:, None, None] * np.sin(np.arange(32))
    subject = np.repeat(np.arange(6), 20)
    np.savez(
        path, X_train=X[:60], y_train=y[:60], subject_train=subject[:60],
        X_test=X[60:], y_test=y[60:], subject_test=subject[60:],
    )  # fmt: skip
    return str(path)


def done(task: Task) -> dict[str, Any]:
    record = run_task(task)
    skip_if_left_out(record.get("reason", ""))
    assert record["status"] == "done", record.get("reason")
    return record


@pytest.mark.seconds
@pytest.mark.parametrize("release", ["label", "place", "vector", "shapes"])
def test_a_sound_release_is_averaged_over_draws(release: str) -> None:
    task = small("softshape-sound", data="ItalyPowerDemand", method=f"softshape-{release}",
                 changes={"draws": 2})  # fmt: skip
    record = done(task)
    details = record["details"]
    assert record["guarantee"]["epsilon"] == task.epsilon
    assert details["floor"] <= details["ceiling"]
    assert details["draws"] == (50_000 // 1029 if release in SYMBOL_KINDS else 2)
    if release in SYMBOL_KINDS:
        assert abs(record["accuracy"] - details["expected_accuracy"]) < 0.02
        assert details["clean_accuracy"] > 0.9
    if release == "place":
        assert 0.25 < details["table_right"] < details["place_right"] < 1.0
    if release == "label":
        assert details["expected_accuracy"] <= details["hindsight"] <= details["ceiling"] + 1e-9
        assert details["clean_accuracy"] > 0.9


def test_a_published_network_is_run_beside_its_bounds() -> None:
    record = done(small("softshape-published", data="ItalyPowerDemand", changes={"steps": 5}))
    assert record["guarantee"]["kind"] == "unprotected"
    assert record["leakage"]["reidentification"] > 0.0
    assert 0.4 < record["details"]["floor"] <= record["details"]["ceiling"]


@pytest.mark.parametrize("variant", ["fedavg", "dptimefl", "cdpfl"])
def test_a_published_fleet_is_run_beside_its_baselines(variant: str, persons: str) -> None:
    changes = {"n_clients": 10, "n_rounds": 1, "local_epochs": 1, "clients_per_round": 5}
    record = done(small("fleet-published", data=persons, variant=variant, changes=changes))
    assert record["guarantee"]["kind"] == "unprotected"
    assert len(record["details"]["accuracy_per_round"]) == record["details"]["rounds"] == 1
    assert (record["leakage"] is not None) == (variant == "dptimefl")
    assert record["details"]["chance"] == 1.0 / 5


def test_a_sound_fleet_is_run_beside_fedavg_on_persons_it_does_not_know(persons: str) -> None:
    changes = {"n_clients": 20, "n_rounds": 2}
    task = small("fleet-sound", data=persons, split="subject", changes=changes)
    record = done(task)
    assert record["guarantee"]["epsilon"] <= 8.0
    assert set(record["details"]["baselines"]) == {"fedavg", "central_dp"}
    assert record["details"]["evaluated_on"] == "the published held-out persons"


@pytest.mark.seconds
@pytest.mark.silo
@pytest.mark.parametrize("suite", ["fedst-scopes", "fedst-secure"])
def test_the_twin_runs_the_scopes(suite: str) -> None:
    changes = {"n_candidates": 12, "n_shapelets": 4}
    record = done(small(suite, data="ItalyPowerDemand", engine="twin", changes=changes))
    assert record["details"]["engine"] == "plaintext twin"
    assert record["accuracy"] > 0.7


@pytest.mark.seconds
@pytest.mark.silo
def test_the_secure_scopes_run_on_real_processes() -> None:
    changes = {"n_candidates": 12, "n_shapelets": 4, "n_trees": 2, "depth": 2}
    record = done(small("fedst-secure", data="ItalyPowerDemand", engine="secure", changes=changes))
    assert record["guarantee"]["kind"] == "mpc"
    assert record["details"]["bytes_sent"] > 0


@pytest.mark.seconds
def test_a_new_suite_starts_by_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = tacit(
        capsys, "arena", "run", "softshape-sound", "--data", "ItalyPowerDemand", "--method",
        "softshape-label", "--epsilon", "3", "--runs", "1", "--out", tmp_path / "r", "--json",
    )  # fmt: skip
    assert outcome.json["done"] == 1, outcome.err


def test_choices_narrow_the_cells_of_a_published_fleet() -> None:
    chosen = suite_tasks("fleet-published", Choice(data=["WISDM"], epsilons=[8.0], seeds=[4]))
    found = {(dict(t.options)["variant"], dict(t.options)["n_clients"]) for t in chosen}
    assert found == {(v, n) for v in ("dptimefl", "cdpfl") for n in (100, 1000)}
    assert {(t.data, t.epsilon, t.seed) for t in chosen} == {("WISDM", 8.0, 4)}


def test_a_suite_is_narrowed_by_the_options_of_its_methods() -> None:
    wanted = Choice(options=("mechanism=privunit", "n_clients=100"))
    chosen = suite_tasks("fleet-sound", wanted)
    assert len(chosen) == 16
    assert {dict(task.options)["mechanism"] for task in chosen} == {"privunit"}
    assert {dict(task.options)["split"] for task in chosen} == {"iid", "subject"}
    with pytest.raises(TacitError, match="no task of the suite 'fleet-sound' is left"):
        suite_tasks("fleet-sound", Choice(options=("mechanism=gaussian",)))
