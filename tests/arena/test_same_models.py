"""Command and arena train the same published model for the same seed, from the same settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.arena.published_fleet import run_published_fleet
from tacit.arena.softshape.published import run_published as run_softshape
from tacit.arena.task import Task
from tacit.data import Dataset
from tacit.fleet.experiment import FleetTask, run_task
from tacit.fleet.published import training
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.local.softshape import published
from tacit.local.softshape.settings import PRESETS


def small(name: str, *, n_train: int) -> Dataset:
    rng = np.random.default_rng(0)
    y = np.tile(["b", "a"], n_train // 2 + 10)
    X = rng.normal(size=(len(y), 1, 40)) + (y == "b")[:, None, None]
    return Dataset(
        name=name, X_train=X[:n_train], y_train=y[:n_train], X_test=X[n_train:], y_test=y[n_train:],
        classes=("a", "b"),
    )  # fmt: skip


@pytest.mark.seconds
@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_an_estimator_trains_the_arena_s_network(
    monkeypatch: pytest.MonkeyPatch, preset: Any
) -> None:
    monkeypatch.setitem(PRESETS["paper"], "epochs", 2)
    monkeypatch.setitem(PRESETS["tuned"], "steps", 3)
    data, states = small("any", n_train=20), []
    train = published.train_published

    def spy(*args: Any, **options: Any) -> Any:
        trained = train(*args, **options)
        states.append(trained.state_arrays())
        return trained

    monkeypatch.setattr(published, "train_published", spy)
    task = Task(
        suite="softshape-table2", method="softshape-published", data="any", epsilon=0.5, seed=7,
        options=(("preset", preset),),
    )  # fmt: skip
    run_softshape(task, data)
    for seed in (7, 8):
        classifier = DPSoftShapeClassifier(0.5, "published", preset=preset, random_state=seed)
        classifier.fit(data.X_train, data.y_train)
    arena, same, other = states
    assert all(np.array_equal(arena[key], same[key]) for key in arena)
    assert any(not np.array_equal(arena[key], other[key]) for key in arena)


class Seen(Exception):
    """What a run would have been told."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `run_published` was called with, instead of its run."""
    calls: list[dict[str, Any]] = []

    def spy(fleet: Any, config: Any, **options: Any) -> None:
        kept = {key: options.get(key) for key in ("n_classes", "seed")}
        calls.append({"fleet": fleet, "config": config, **kept})
        raise Seen

    monkeypatch.setattr(training, "run_published", spy)
    return calls


@pytest.mark.parametrize(("name", "batch_size"), [("WISDM", 30), ("UCIHAR", 28), ("HHAR", 30)])
def test_a_fleet_is_told_what_the_arena_tells_it(
    told: list[dict[str, Any]], name: str, batch_size: int
) -> None:
    data = small(name, n_train=300)
    (options,) = [
        task.options
        for task in fleet_tasks(name)
        if dict(task.options) | {"variant": "dptimefl", "preset": "tuned"} == dict(task.options)
    ]
    task = Task(
        suite="fleet-published", method="timefl-published", data=name, epsilon=8.0, seed=5,
        options=options,
    )  # fmt: skip
    with pytest.raises(Seen):
        run_published_fleet(task, data)
    for asked_for in (None, 9):
        with pytest.raises(Seen):
            run_task(
                data, FleetTask(mode="published", preset="tuned", seed=5, batch_size=asked_for)
            )
    arena, command, asked = told
    assert command["config"] == arena["config"]
    assert (command["config"].batch_size, asked["config"].batch_size) == (batch_size, 9)
    assert (command["seed"], command["n_classes"]) == (arena["seed"], arena["n_classes"]) == (5, 2)
    for mine, theirs in zip(command["fleet"].rows, arena["fleet"].rows, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def fleet_tasks(name: str) -> list[Task]:
    from tacit.arena.grid import Choice
    from tacit.arena.suites import suite_tasks

    choice = Choice(data=[name], epsilons=[8.0], seeds=[5], options=["n_clients=100"])
    return suite_tasks("fleet-published", choice)
