"""Plans that cannot be computed are refused from public numbers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tacit.errors import TacitError
from tacit.silo.fedst.plan_check import BASE_BYTES, check_params, check_plan, memory_of
from tacit.silo.party import programs
from tacit.silo.party.hello import Refusal
from tacit.silo.plan import Plan

PLAN = Plan(
    program="fedst",
    parties=("a", "b", "c"),
    protocol="ABY3",
    classes=("0", "1"),
    series_length=100,
    counts=(200, 156, 156),
    params={"n_candidates": 500, "n_shapelets": 20},
)


def test_an_ordinary_plan_passes() -> None:
    check_params(PLAN.params)
    check_plan(PLAN)
    programs.check_plan(PLAN, memory_gb=4.0)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"features": ["colours"]}, "features"),
        ({"colour": "red"}, "colour"),
        ({"n_candidates": "many"}, "n_candidates"),
        ({"n_shapelets": 0}, "n_shapelets"),
        ({"n_intervals": 5001}, "n_intervals must lie between 1 and 5000, got 5001"),
        ({"penalty": "much"}, "penalty must be finite"),
    ],
)
def test_settings_that_no_federation_can_run_are_refused(
    params: dict[str, Any], words: str
) -> None:
    with pytest.raises(TacitError, match=words):
        check_params(params)
    with pytest.raises(Refusal) as caught:
        programs.check_params("fedst", params)
    assert caught.value.public.startswith("its plan is not valid")


def test_more_series_than_the_arithmetic_holds_are_refused() -> None:
    huge = replace(PLAN, counts=(10**7, 10**7, 10**7))
    with pytest.raises(TacitError, match="30000000"):
        programs.check_plan(huge, memory_gb=1e9)


def test_more_series_than_a_logistic_regression_takes_are_refused() -> None:
    params = {**PLAN.params, "classifier": "logistic"}
    check_plan(replace(PLAN, counts=(2096, 1000, 1000), params=params))
    with pytest.raises(TacitError, match="takes at most 4096 series in all, got 4097"):
        check_plan(replace(PLAN, counts=(2097, 1000, 1000), params=params))
    alone = {**params, "scope": "local-transform"}  # at P0, in plaintext
    check_plan(replace(PLAN, counts=(2097, 1000, 1000), params=alone))


def test_a_single_class_is_refused() -> None:
    with pytest.raises(TacitError, match="2 classes"):
        check_plan(replace(PLAN, classes=("0",)))


def test_checking_a_plan_makes_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that did would miss heartbeats: 10^5 intervals took 7 seconds."""

    def refuse(**_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("tacit.silo.fedst.public_features.draw_intervals", refuse)
    params = {"features": ["intervals"], "n_intervals": 4999, "seed": 77}
    programs.check_plan(replace(PLAN, params=params), memory_gb=100.0)


def test_a_plan_too_large_for_the_memory_names_both_figures() -> None:
    needed = memory_of(PLAN) / 1e9
    assert memory_of(PLAN) > BASE_BYTES["ABY3"]
    programs.check_plan(PLAN, memory_gb=1.01 * needed)
    with pytest.raises(Refusal, match=f"needs about {needed:.2f} GB") as caught:
        programs.check_plan(PLAN, memory_gb=0.99 * needed)
    assert "0.99" not in caught.value.public  # how much a party has is its own affair


SEARCH: dict[str, Any] = {"scope": "local-transform", "classifier": "forest", "n_shapelets": 2}
TWO = {"lengths": [20, 35], "n_candidates": 32, "n_shapelets": 10}
SINGLE = {"n_candidates": 200, "lengths": [100]}
GRID = sorted({round(20 + 5 * i) for i in range(17)})
# Series in all, length, channels, settings, and megabytes of the largest process of three on one
# machine: results/current/silo_real.jsonl and silo_speed.jsonl, and runs of 2026-11-18.
MEASURED = [
    (600, 128, 9, {}, 499),
    (2048, 96, 1, {"n_candidates": 100, "n_shapelets": 50}, 442),
    (8926, 96, 1, {"n_candidates": 100, "n_shapelets": 50}, 610),
    (8192, 100, 1, {**SEARCH, "lengths": [60], "batch_size": 4}, 806),
    (50_000, 50, 1, {**TWO, "n_candidates": 20}, 773),
    (10_000, 50, 1, {**TWO, "features": ["shapelets", "intervals", "dictionary"]}, 773),
    (2000, 100, 1, {**SEARCH, "quality": "ig", "n_candidates": 32, "lengths": [100]}, 1115),
    (1000, 100, 1, {**SEARCH, "quality": "ig", "n_candidates": 64, "lengths": GRID}, 518),
    (
        4096,
        100,
        1,
        {
            **SEARCH,
            "quality": "ig-basic",
            "distance": "elementwise",
            "n_candidates": 1,
            "lengths": [60],
            "batch_size": 1,
        },
        3631,
    ),
    (300, 60, 1, {"distance": "elementwise", "n_candidates": 64, "lengths": GRID[:9]}, 456),
    (1000, 100, 1, {"classifier": "forest", "n_shapelets": 20, "n_candidates": 100}, 534),
    (2000, 100, 1, {**SINGLE, "classifier": "forest"}, 1020),
    (2000, 100, 1, SINGLE, 440),
    (2000, 100, 1, {**SINGLE, "classifier": "logistic", "n_steps": 3}, 447),
]


@pytest.mark.parametrize(("n", "length", "channels", "params", "megabytes"), MEASURED)
def test_the_estimate_is_not_below_what_was_measured_nor_far_above(
    n: int, length: int, channels: int, params: dict[str, Any], megabytes: int
) -> None:
    counts = (n - 2 * (n // 3), n // 3, n // 3)
    measured = replace(
        PLAN, counts=counts, series_length=length, n_channels=channels, params=params
    )
    assert megabytes <= memory_of(measured) / 1e6 <= 1.75 * megabytes


def test_every_large_step_counts() -> None:
    """Settings that decide alone how large a step is."""

    def needed(**params: Any) -> int:
        return memory_of(replace(PLAN, counts=(1366, 1365, 1365), params=params))

    forest = {"classifier": "forest", "n_candidates": 50, "lengths": [90]}
    assert needed(**forest, n_trees=80) > needed(**forest, n_trees=40) > needed()
    assert needed(**forest, depth=9) > needed(**forest, depth=5)
    assert needed(**forest, n_thresholds=64) > needed(**forest)
    single = {"n_candidates": 200, "lengths": [90]}
    assert needed(**single, quality="ig", batch_size=64) > needed(**single, quality="ig") > 1e9
    assert needed(quality="ig-basic", batch_size=4) > 4e9
    slow = {**single, "distance": "elementwise"}
    assert needed(**slow, batch_size=64) > needed(**slow)
    assert needed(features=["intervals"]) > needed(features=["intervals"], n_intervals=50)
    pair = replace(PLAN, parties=("a", "b"), protocol="CHEETAH", counts=(150, 150))
    assert memory_of(replace(pair, params={"n_candidates": 32})) > 1267e6


def test_memory_grows_with_series_length_channels_and_candidates() -> None:
    base = memory_of(PLAN)
    assert memory_of(replace(PLAN, counts=(400, 312, 312))) > base
    assert memory_of(replace(PLAN, series_length=200)) > base
    assert memory_of(replace(PLAN, n_channels=3)) > base
    assert memory_of(replace(PLAN, params={**PLAN.params, "n_candidates": 900})) > base


def test_the_system_says_how_much_memory_is_free() -> None:
    free = programs.available_memory_gb()
    assert free is not None
    assert 0.0 < free < 1e5
