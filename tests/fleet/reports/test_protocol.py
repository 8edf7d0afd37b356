"""The wire form: what a client sends is what the analyser averages, and nothing else is taken."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from seeded import SeededNoise
from tacit.errors import TacitError
from tacit.fleet import deployment
from tacit.fleet.learning.clients import client_direction
from tacit.fleet.learning.head import HeadModel, initial_model
from tacit.fleet.learning.rounds import client_messages, server_step
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import make_plan
from tacit.fleet.reports.mechanisms import REPORTS, report_named, report_of
from tacit.fleet.reports.protocol import RoundNotReleased

N = 24
CLASSES = ("a", "b", "c")


@lru_cache
def small_plan(mechanism: str, **changes: object) -> FleetPlan:
    return make_plan(
        classes=CLASSES,
        n_channels=1,
        length=24,
        mechanism=mechanism,
        n_clients=N,
        n_rounds=3,
        n_kernels=20,
        **changes,  # type: ignore[arg-type]
    )


def client_data(seed: int) -> tuple[NDArray[Any], list[str]]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, 1, 24)), list("abca")


def batch(plan: FleetPlan, model: HeadModel, *, n: int = N) -> tuple[list[bytes], bytes]:
    """The analyser's messages of n clients, and the share helper's sum if there is one."""
    source = SeededNoise(5)
    sent = [
        client_messages(model, *client_data(client), plan, source=source) for client in range(n)
    ]
    report = report_of(plan)
    assert {len(parts.helper) for parts in sent} == {report.helper_bytes}
    own = report.sum_helper_parts(p.helper for p in sent) if report.helper_bytes else b""
    return [parts.analyser for parts in sent], own


@pytest.fixture(params=list(REPORTS))
def plan(request: pytest.FixtureRequest) -> FleetPlan:
    return small_plan(request.param)


def test_a_round_goes_through_bytes_in_any_order(plan: FleetPlan) -> None:
    model = initial_model(plan)
    messages, own = batch(plan, model)
    assert {len(message) for message in messages} == {report_of(plan).message_bytes}
    order = np.random.default_rng(0).permutation(len(messages))
    straight = report_of(plan).collect(messages, own)
    mixed = report_of(plan).collect([messages[i] for i in order], own)
    assert straight.n == mixed.n == N
    np.testing.assert_allclose(straight.mean, mixed.mean, rtol=1e-12, atol=1e-12)
    after = server_step(model, mixed.mean, plan)
    assert after.round_number == 1
    assert np.all(np.isfinite(after.weights))
    assert np.any(after.weights != 0)


def test_the_mean_of_many_reports_nears_the_true_direction(plan: FleetPlan) -> None:
    # Unbiased: the error of a mean of n reports shrinks like sqrt(second moment / n); 6 times
    # that is passed with probability far below 1e-6.
    model = initial_model(plan)
    X, y = client_data(0)
    truth = client_direction(model, X, y, plan)
    report = report_of(plan)
    # A sum has room for as many clients as were planned, the mean of single reports for any.
    many = np.repeat(truth[None, :], 4000 if report.shows_single_reports else N, axis=0)
    source = SeededNoise(1)
    total = report.block_total(many, source=source)
    mean = report.released_mean(total, len(many), source=source)
    spread = report.noise_norm() * np.sqrt(plan.n_min / len(many))
    along = float((mean - truth) @ truth)
    assert abs(along) < 6.0 * spread / np.sqrt(plan.dimension) * 1.2
    assert np.linalg.norm(mean - truth) < 1.5 * spread


def test_too_few_reports_release_nothing(plan: FleetPlan) -> None:
    messages, own = batch(plan, initial_model(plan), n=N - 1)
    with pytest.raises(RoundNotReleased, match=f"{N - 1} valid reports and needs {N}"):
        report_of(plan).collect(messages, own)


def test_reports_outside_of_the_range_are_not_counted() -> None:
    plan = small_plan("privunit", n_min=N - 2)
    messages, _ = batch(plan, initial_model(plan))
    huge = np.full(plan.dimension, 1e6, dtype="<f4").tobytes()
    broken = np.full(plan.dimension, np.nan, dtype="<f4").tobytes()
    result = report_of(plan).collect([huge, broken, *messages[2:]])
    assert (result.n, result.refused) == (N - 2, 2)
    expected = report_of(plan).collect(messages[2:])
    np.testing.assert_array_equal(result.mean, expected.mean)
    with pytest.raises(RoundNotReleased):
        report_of(plan).collect([huge, broken, huge, *messages[3:]])


def test_sums_over_different_sets_spoil_the_round() -> None:
    """One mask too many or too few leaves uniform noise, which no honest sum looks like."""
    plan = small_plan("distributed", n_min=N - 1)
    messages, own = batch(plan, initial_model(plan))
    foreign = bytes(len(messages[0]))
    for bad in (messages[1:], [foreign, *messages[1:]], [b"x", *messages[1:]]):
        with pytest.raises(TacitError, match="not used"):
            report_of(plan).collect(bad, own)
    with pytest.raises(TacitError, match="not used"):
        report_of(plan).collect(messages, b"")


def test_a_mechanism_without_a_second_part_has_no_sum_of_them() -> None:
    with pytest.raises(TacitError, match="no second part"):
        report_of(small_plan("privunit")).sum_helper_parts([])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_crash_the_analyser(message: bytes) -> None:
    for mechanism in REPORTS:
        plan = small_plan(mechanism)
        with pytest.raises(TacitError):
            report_of(plan).collect([message])


def test_an_unknown_label_or_an_empty_client_is_refused(plan: FleetPlan) -> None:
    model = initial_model(plan)
    X, _ = client_data(0)
    with pytest.raises(TacitError, match="'z'"):
        client_messages(model, X, list("abcz"), plan)
    with pytest.raises(TacitError, match="as many labels"):
        client_messages(model, X[:0], [], plan)


def test_an_unknown_mechanism_is_refused_with_those_there_are() -> None:
    with pytest.raises(TacitError, match="'magic'; use privunit or distributed"):
        report_named("magic")


def test_a_plan_names_its_mechanism(plan: FleetPlan) -> None:
    assert isinstance(report_of(plan), REPORTS[plan.mechanism])
    assert isinstance(plan.settings, REPORTS[plan.mechanism].settings_type)
    for kind in REPORTS.values():
        if kind is not REPORTS[plan.mechanism]:
            with pytest.raises(TacitError, match=f"for the mechanism {plan.mechanism}, not"):
                kind(plan)


def test_the_analyser_admits_nodes_where_reports_have_two_parts() -> None:
    """A blind shuffler's analyser must not know who could have sent."""
    admits = {name: report_of(small_plan(name)).analyser_admits_nodes for name in REPORTS}
    assert admits == {"privunit": False, "distributed": True}


def test_a_deployment_asks_the_mechanism_and_compares_no_names() -> None:
    folder = Path(deployment.__file__).parent
    names = "|".join(REPORTS)
    compared = re.compile(rf"[!=]= *[\"']({names})[\"']|[\"']({names})[\"'] *[!=]=")
    assert not [path for path in folder.rglob("*.py") if compared.search(path.read_text())]
    assert compared.search('plan.mechanism == "distributed"')
