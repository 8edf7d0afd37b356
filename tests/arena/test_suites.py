"""The suites are the grids that were recorded, and one small task of every kind runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import assert_refused, tacit
from left_out import skip_if_left_out
from tacit.arena.grid import Choice
from tacit.arena.record import run_task
from tacit.arena.results.earlier import earlier_records
from tacit.arena.silo import methods as silo_methods
from tacit.arena.silo.suites import FEDST_SETS, SCOPES
from tacit.arena.softshape.published import training_part
from tacit.arena.softshape.suites import CHOICE_SETS, SOFTSHAPE_SETS
from tacit.arena.store import read_records
from tacit.arena.suites import SUITES, suite_tasks, without_missing
from tacit.arena.task import Task, task_from_dict
from tacit.data import load_dataset
from tacit.data.load import EMBEDDED
from tacit.errors import TacitError
from tacit.local.release import SYMBOL_KINDS

CURRENT = Path(__file__).parents[2] / "results" / "current"
SIZES = {
    "quick": 42,
    "softshape-table2": 19 * 11 * 5 * 3,
    "softshape-table3": 19 * 2 * 4 * 4 * 3,
    "fedst": 71 * 11 * 3,
    "timefl": 24 + 273,
    "frontier": 19 * 8 * 5 * 3,
    "softshape-published": 19 * (5 * 3 + 4 * 6 - 3),
    "softshape-choices": 3 * 3,
    "softshape-figures": 3 * 2 + 1,
    "softshape-sound": 19 * 5 * (3 + 3 + 1 + 1),
    "fedst-scopes": 36 * 6,
    "fedst-secure": 10 * 5 * 2,
    "fedst-contract": 6,
    "fedst-features": 36 * 5 * 3,
    "fleet-published": 3 * 7 * (5 + 3 + 5),
    "fleet-sound": 2 * 2 * (8 + 3),
    "hybrid": 2 * 3,
    "fleet-rivals": 3 * 3 * 5 * 3 * (6 + 3),
    "fleet-breadth": 3 * 3 * 2 * 2 * 3 * 5,
}
SCRIPTS = {
    "softshape-published": 684,
    "softshape-sound": 475,
    "fedst-scopes": 216,
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
    assert len(records) >= 2600  # and more with every run
    assert {task_from_dict(record["task"]).key for record in records} <= known


def test_fedst_runs_small_sets_first_and_one_seed_after_the_other() -> None:
    tasks = suite_tasks("fedst")
    assert [task.seed for task in tasks] == sorted(task.seed for task in tasks)
    assert list(dict.fromkeys(task.data for task in tasks)) == list(FEDST_SETS)
    methods = {tuple(dict(t.options)[k] for k in ("quality", "classifier", "scope")) for t in tasks}
    assert {m[2] for m in methods if m[:2] == ("ig", "forest")} == set(SCOPES)
    assert {m[2] for m in methods if m[:2] == ("f", "ridge")} == set(SCOPES)


def test_every_embedded_set_of_fedst_meets_the_rule_of_the_paper() -> None:
    """Each class has a series for each of three owners, so at least three in the training part."""
    checked = [load_dataset(name) for name in FEDST_SETS if name in EMBEDDED]
    assert len(checked) == 5
    for data in checked:
        assert np.unique(data.y_train, return_counts=True)[1].min() >= 3


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


@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_a_published_network_is_run_beside_its_bounds(preset: str) -> None:
    changes = {"steps": 5, "preset": preset}
    record = done(small("softshape-published", data="ItalyPowerDemand", changes=changes))
    assert record["guarantee"]["kind"] == "unprotected"
    assert record["leakage"]["claimed_total"] > record["task"]["epsilon"]
    assert 0.4 < record["details"]["floor"] <= record["details"]["ceiling"]


@pytest.mark.seconds
def test_what_the_figures_draw_is_recorded() -> None:
    ours = done(
        small("softshape-figures", data="ItalyPowerDemand", changes={"steps": 5, "of_class": "2"})
    )["details"]
    assert len(ours["alpha"]) == len(ours["noise_scale"]) == len(ours["patch_starts"])
    assert len(ours["routing"]) == 8
    assert ours["label"] == "2"
    changes = {"n_members": 1, "n_updates": 3}
    theirs = done(
        small("softshape-figures", data="ItalyPowerDemand", method="inceptiontime-picture",
              changes=changes)
    )["details"]  # fmt: skip
    for found in (ours, theirs):
        assert len(found["plane"]) == len(found["labels"]) == 300
        assert -1.0 <= found["silhouette"] <= 1.0


def test_what_the_paper_leaves_open_is_chosen_on_training_series_alone() -> None:
    data = load_dataset("ItalyPowerDemand")
    part = training_part(data, n_train=20, seed=0)
    assert (len(part.X_train), len(part.X_test)) == (20, len(data.X_train) - 20)
    assert {x.tobytes() for x in part.X_test} <= {x.tobytes() for x in data.X_train}
    assert not {x.tobytes() for x in part.X_test} & {x.tobytes() for x in part.X_train}
    changes = {"steps": 5, "n_train": 20}
    record = done(small("softshape-choices", data="ItalyPowerDemand", changes=changes))
    assert record["details"]["n_steps"] == 5
    assert not set(CHOICE_SETS) & set(SOFTSHAPE_SETS)


@pytest.mark.parametrize("variant", ["fedavg", "dptimefl", "cdpfl"])
def test_a_published_fleet_is_run_beside_its_baselines(variant: str, persons: str) -> None:
    changes = {"n_clients": 8, "n_rounds": 1, "local_epochs": 1, "clients_per_round": 5}
    record = done(small("fleet-published", data=persons, variant=variant, changes=changes))
    assert record["guarantee"]["kind"] == "unprotected"
    assert len(record["details"]["accuracy_per_round"]) == record["details"]["rounds"] == 1
    assert (record["leakage"] is not None) == (variant == "dptimefl")
    assert record["details"]["chance"] == 1.0 / 5


def test_a_hybrid_states_what_it_promises_to_whom(persons: str) -> None:
    changes = {"n_clients": 20}
    record = done(small("hybrid", data=persons, split="subject", changes=changes))
    promised = record["details"]["training_guarantee"]
    assert (record["guarantee"]["epsilon"], record["guarantee"]["unit"]) == (5.0, "series")
    assert promised["epsilon"] <= 8.0
    assert promised["unit"] == "client"
    assert record["accuracy"] <= record["details"]["ceiling"] + 0.2
    assert record["details"]["evaluated_on"] == "the published held-out persons"


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
@pytest.mark.parametrize("classifier", ["ridge", "forest"])
def test_secure_and_twin_share_seeds_and_classify_alike(classifier: str) -> None:
    changes = {"n_candidates": 12, "n_shapelets": 4, "n_trees": 2, "depth": 2}
    found = {
        engine: done(
            small("fedst-secure", data="ItalyPowerDemand", engine=engine, quality="f",
                  classifier=classifier, scope="federated", changes=changes)
        )
        for engine in ("secure", "twin")
    }  # fmt: skip
    secure, twin = (found[engine]["details"] for engine in ("secure", "twin"))
    assert found["secure"]["guarantee"]["kind"] == "mpc"
    assert found["twin"]["guarantee"]["kind"] == "unprotected"
    assert secure["bytes_sent"] > 0
    assert secure["shapelets"] == twin["shapelets"]
    assert secure["predictions"] == twin["predictions"]
    assert found["secure"]["accuracy"] == found["twin"]["accuracy"] > 0.6


@pytest.mark.seconds
@pytest.mark.silo
def test_contracts_are_measured_as_shares_of_the_full_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silo_methods, "SHARES", (0.5,))
    changes = {"n_candidates": 40, "n_shapelets": 4}
    details = done(small("fedst-contract", data="ItalyPowerDemand", changes=changes))["details"]
    assert details["full"]["n_examined"] == details["again"]["n_examined"] == 40
    [half] = details["contracts"]
    assert half["contract"] == pytest.approx(0.5 * details["full"]["real_seconds"], abs=1e-3)
    assert 0 < half["n_examined"] <= 40
    late = abs(half["real_seconds"] - half["contract"])
    assert half["kept"] == (late <= max(0.1 * half["contract"], half["longest_batch"]))


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
    assert len(chosen) == 6
    assert {(t.data, t.epsilon, t.seed) for t in chosen} == {("WISDM", 8.0, 4)}


def test_raw_archives_that_are_not_at_hand_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_DATA", "")
    tasks, told = without_missing(suite_tasks("fleet-published"))
    assert {task.data for task in tasks} == {"WISDM", "UCIHAR", "HHAR"}
    assert {name: how.split()[2] for name, how in told["missing"].items()} == {
        "SleepEDF": "import", "MFD": "import",
    }  # fmt: skip
    words = ("arena", "run", "fleet-published", "--data", "MFD", "--out", tmp_path / "r")
    assert_refused(tacit(capsys, *words), "--format paderborn")
    (tmp_path / "MFD.npz").touch()
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    tasks, told = without_missing(suite_tasks("fleet-published"))
    assert "MFD" in {task.data for task in tasks}
    assert set(told["missing"]) == {"SleepEDF"}


def test_a_suite_is_narrowed_by_the_options_of_its_methods() -> None:
    wanted = Choice(options=("mechanism=privunit", "n_clients=100"))
    chosen = suite_tasks("fleet-sound", wanted)
    assert len(chosen) == 16
    assert {dict(task.options)["mechanism"] for task in chosen} == {"privunit"}
    assert {dict(task.options)["split"] for task in chosen} == {"iid", "subject"}
    with pytest.raises(TacitError, match="no task of the suite 'fleet-sound' is left"):
        suite_tasks("fleet-sound", Choice(options=("mechanism=gaussian",)))


def test_tasks_without_an_option_can_be_chosen() -> None:
    tuned = suite_tasks("softshape-table3", Choice(options=("preset=",)))
    assert len(tuned) == SIZES["softshape-table3"] // 2
    assert not any("preset" in dict(task.options) for task in tuned)
    one = suite_tasks("softshape-table3", Choice(options=("preset=", "use_moe=False")))
    assert {task.options for task in one} == {(("use_moe", False),)}
    with pytest.raises(TacitError, match="no task of the suite"):
        suite_tasks("fleet-published", Choice(options=("preset=",)))
