"""The program of all owners in the plaintext twin: what it opens, when it stops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.errors import TacitError
from tacit.silo.fedst.parameters import public_parameters
from tacit.silo.fedst.plan_check import check_plan
from tacit.silo.fedst.program import fedst_program
from tacit.silo.fedst.settings import Settings, settings_from
from tacit.silo.plan import Plan
from tacit.silo.secure.plain_session import run_plain
from tacit.silo.secure.session import LocalInputs

SMALL = {
    "n_candidates": 12,
    "n_shapelets": 4,
    "classifier": "forest",
    "n_trees": 2,
    "depth": 2,
    "lengths": (4, 10),
}


def owners(*counts: int, length: int = 12, seed: int = 0) -> list[LocalInputs]:
    rng = np.random.default_rng(seed)
    found = []
    for count in counts:
        y = np.arange(count) % 2
        X = (
            rng.normal(size=(count, 1, length))
            + 3 * np.sin(np.arange(length) * (1 + y)[:, None])[:, None, :]
        )
        found.append(LocalInputs(X=X, y=y.astype(np.intp), private={"seed": 9}))
    return found


def plan_for(inputs: list[LocalInputs], **params: object) -> Plan:
    settings = settings_from(SMALL | params)
    return Plan(
        program="fedst",
        parties=tuple(f"P{i}" for i in range(len(inputs))),
        protocol="ABY3",
        classes=("a", "b"),
        series_length=inputs[0].X.shape[2],
        counts=tuple(len(own.X) for own in inputs),
        params=settings.to_params(),
    )


FOREST = ["shapelet indices", "forest splits", "forest splits", "forest leaf labels"]


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("params", "opened"),
    [
        ({}, FOREST),
        ({"quality": "ig"}, FOREST),
        ({"scope": "local-search"}, FOREST[1:]),
        ({"scope": "local-transform"}, FOREST[:1]),
        (
            {"classifier": "logistic", "n_steps": 2},
            ["shapelet indices", "logistic weights", "logistic weights"],
        ),
        ({"scope": "local-search", "epsilon": 1.0}, ["forest leaf labels (noised)"]),
        (
            {"quality": "ig", "epsilon": 1.0},
            ["shapelet indices (noised)", "forest leaf labels (noised)"],
        ),
    ],
)
def test_exactly_the_declared_values_are_opened_and_only_to_p0(
    params: dict[str, object], opened: list[str]
) -> None:
    inputs = owners(6, 5, 4)
    results, sessions = run_plain(fedst_program, plan_for(inputs, **params), inputs)
    for session in sessions:
        assert [(o.what, o.to) for o in session.opened] == [(what, 0) for what in opened]
    assert {"series", "start", "length"} <= set(results[0].arrays)
    assert not any(result.arrays for result in results[1:])


def test_a_contract_that_is_over_stops_after_one_batch() -> None:
    inputs = owners(6, 5, 4)
    plan = plan_for(inputs, time_contract=1e-9, batch_size=3)
    results, sessions = run_plain(fedst_program, plan, inputs)
    assert [r.info["n_examined"] for r in results] == [3, 3, 3]
    assert len(results[0].arrays["series"]) == 3  # fewer candidates than shapelets asked for
    assert sessions[1].opened[0].what == "end of the search"
    assert sessions[1].opened[0].to == -1


def test_a_long_contract_examines_everything() -> None:
    inputs = owners(6, 5, 4)
    results, _ = run_plain(fedst_program, plan_for(inputs, time_contract=600.0), inputs)
    assert results[0].info["n_examined"] == 12


def test_progress_counts_candidates_and_time() -> None:
    said: list[tuple[int, int, str]] = []
    inputs = owners(6, 5, 4)
    run_plain(
        fedst_program,
        plan_for(inputs),
        inputs,
        progress=lambda done, total, message: said.append((done, total, message)),
    )
    searching = [entry for entry in said if "candidates" in entry[2]]
    assert searching[-1][:2] == (12, 12)
    assert "s left" in searching[0][2]
    assert {"ranking", "training (forest)"} <= {message for _, _, message in said}


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"quality": "kw"}, "quality must be one of"),
        ({"scope": "all"}, "scope must be one of"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"time_contract": float("nan")}, "time_contract"),
        ({"time_contract": -1.0}, "time_contract"),
        ({"epsilon": 1.0, "classifier": "forest"}, "no bound on what one series changes"),
        ({"epsilon": 1.0, "quality": "ig"}, "no bound on what one series changes"),
        ({"epsilon": 1.0, "quality": "ig-basic", "classifier": "forest"}, "no bound"),
        (
            {"epsilon": 1.0, "quality": "ig", "classifier": "forest", "scope": "local-transform"},
            "no bound",
        ),
        ({"epsilon": 0.0, "scope": "local-search"}, "epsilon"),
        ({"depth": 11}, "depth"),
        ({"colour": "red"}, "unknown setting colour"),
    ],
)
def test_bad_settings_are_refused(params: dict[str, object], sentence: str) -> None:
    with pytest.raises(TacitError, match=sentence):
        settings_from(params)


def test_one_class_and_too_many_series_are_refused() -> None:
    with pytest.raises(TacitError, match="at least 2 classes"):
        public_parameters(Settings(), counts=(3, 3, 3), n_classes=1, series_length=10)
    with pytest.raises(TacitError, match="at most 65536"):
        public_parameters(Settings(), counts=(30000, 40000), n_classes=2, series_length=10)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"quality": "ig"}, "at most 4096 series, got 4097; choose quality 'f'"),
        ({"quality": "ig-basic"}, "at most 4096 series, got 4097; choose quality 'f'"),
        ({"classifier": "forest"}, "a forest take at most 4096 series, got 4097; choose ridge"),
    ],
)
def test_what_takes_fewer_series_says_so_before_anything_is_shared(
    params: dict[str, str], sentence: str
) -> None:
    for counts in ((97, 2000, 2000), (96, 2000, 2000)):
        plan = Plan(
            program="fedst",
            parties=("a", "b", "c"),
            protocol="ABY3",
            classes=("x", "y"),
            series_length=20,
            counts=counts,
            params=params,
        )
        if sum(counts) > 4096:
            with pytest.raises(TacitError, match=sentence):
                check_plan(plan)
        else:
            check_plan(plan)
    check_plan(
        replace(
            plan,
            counts=(97, 2000, 2000),
            params={**params, "quality": "f", "scope": "local-transform"},
        )
    )


def test_batches_share_a_tournament_as_far_as_memory_allows() -> None:
    def groups(counts: tuple[int, ...], **params: object) -> list[int]:
        found = public_parameters(
            settings_from(params), counts=counts, n_classes=2, series_length=100
        )
        flat = [i for group in found.groups for i in group]
        assert flat == list(range(len(found.batches)))
        return [len(group) for group in found.groups]

    assert groups((10, 10, 10)) == [len(groups((10, 10, 10), time_contract=9.0))]
    assert 3 <= len(groups((171, 171, 170))) <= 5
    assert max(groups((171, 171, 170), time_contract=9.0)) == 1
    assert max(groups((171, 171, 170), quality="ig")) == 1
    assert max(groups((171, 171))) == 1  # CHEETAH
    assert max(groups((100, 20000, 20000))) == 1


def test_more_series_have_fewer_bits_for_each_distance() -> None:
    few = public_parameters(Settings(), counts=(96, 2000, 2000), n_classes=2, series_length=50)
    many = public_parameters(Settings(), counts=(97, 2000, 2000), n_classes=2, series_length=50)
    assert (few.encoding.distance_bits, many.encoding.distance_bits) == (20, 18)


def test_other_channels_than_the_plans_are_refused() -> None:
    inputs = owners(6, 5, 4)
    wide = [LocalInputs(X=np.repeat(o.X, 2, axis=1), y=o.y, private=o.private) for o in inputs]
    with pytest.raises(TacitError, match=r"the plan has series of 1 channel\(s\)"):
        run_plain(fedst_program, plan_for(inputs), wide)


@pytest.mark.seconds
def test_an_owner_that_lies_about_its_series_changes_the_model() -> None:
    """No protocol can know better: what an owner shares is its data."""
    inputs = owners(6, 5, 14)
    lied = [*inputs[:2], replace(inputs[2], y=1 - inputs[2].y)]
    plan = plan_for(inputs)
    (honest, *_), _ = run_plain(fedst_program, plan, inputs)
    (spoilt, *_), _ = run_plain(fedst_program, plan, lied)
    assert any(not np.array_equal(honest.arrays[k], spoilt.arrays[k]) for k in honest.arrays)
