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
        ({"penalty": "much"}, "type"),
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


def test_a_single_class_is_refused() -> None:
    with pytest.raises(TacitError, match="2 classes"):
        check_plan(replace(PLAN, classes=("0",)))


def test_a_plan_too_large_for_the_memory_names_both_figures() -> None:
    needed = memory_of(PLAN) / 1e9
    assert memory_of(PLAN) > BASE_BYTES
    programs.check_plan(PLAN, memory_gb=1.01 * needed)
    with pytest.raises(Refusal, match=f"needs at least {needed:.2f} GB") as caught:
        programs.check_plan(PLAN, memory_gb=0.99 * needed)
    assert "0.99" not in caught.value.public  # how much a party has is its own affair


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
