"""DPTimeFLClassifier keeps aeon's contract and ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract import aeon_contract, check_tacit_classifier, toy_problem
from tacit.errors import TacitError
from tacit.fleet import DPTimeFLClassifier
from tacit.guarantee import DpGuarantee, Unprotected

SMALL: dict[str, Any] = {"n_clients": 4, "n_rounds": 3, "n_kernels": 20, "random_state": 0}


@aeon_contract(DPTimeFLClassifier(**SMALL))
def test_aeon_contract(check: Any) -> None:
    check()


def test_tacit_contract() -> None:
    check_tacit_classifier(lambda: DPTimeFLClassifier(**SMALL))


def test_tacit_contract_in_published_mode() -> None:
    published = {**SMALL, "mode": "published", "preset": "tuned"}
    check_tacit_classifier(lambda: DPTimeFLClassifier(**published))


@pytest.mark.parametrize("mechanism", ["privunit", "distributed"])
def test_a_client_per_series_can_be_given(mechanism: str) -> None:
    X, y = toy_problem(n_series=60)
    client = np.array([f"device {i % 20}" for i in range(60)])
    classifier = DPTimeFLClassifier(mechanism=mechanism, n_rounds=2, n_kernels=20)  # type: ignore[arg-type]
    classifier.fit(X, y, client=client)
    guarantee = classifier.guarantee_
    assert isinstance(guarantee, DpGuarantee)
    assert guarantee.epsilon <= 8.0
    assert (guarantee.unit, guarantee.neighbours) == ("client", "replace")
    assert classifier.client_epsilon_.shape == (20,)
    with pytest.raises(TacitError, match="each of the 60 series"):
        classifier.fit(X, y, client=client[:-1])


def test_a_resumption_without_a_seed_needs_the_owners(tmp_path: Path) -> None:
    X, y = toy_problem(n_series=40)
    options: dict[str, Any] = {"n_rounds": 2, "n_kernels": 20, "n_clients": 20}
    file = tmp_path / "run.npz"
    DPTimeFLClassifier(**options, checkpoint=file).fit(X, y, client=np.arange(40) % 20)
    resumed = DPTimeFLClassifier(**options, checkpoint=file, resume=True)
    resumed.fit(X, y, client=np.arange(40) % 20)
    assert len(resumed.history_) == 2
    with pytest.raises(TacitError, match="dealt to clients in another way"):
        DPTimeFLClassifier(**options, checkpoint=file, resume=True).fit(X, y)


def test_published_mode_never_carries_an_epsilon() -> None:
    X, y = toy_problem()
    published = {**SMALL, "mode": "published", "n_rounds": 1, "local_epochs": 1}
    classifier = DPTimeFLClassifier(**published).fit(X, y)
    assert isinstance(classifier.guarantee_, Unprotected)
    assert classifier.guarantee_.nominal_epsilon == 8.0
    paper = sum(value.numel() for value in classifier.run_.weights.values())
    classifier = DPTimeFLClassifier(**published, network="light").fit(X, y)
    light = sum(value.numel() for value in classifier.run_.weights.values())
    assert light < 20_000 < 190_000 < paper


def test_published_mode_is_ended_by_its_delta() -> None:
    """By hand for rate 1/2, epsilon 8 and n rounds: delta = exp(n - 8) where order 1 is least."""
    X, y = toy_problem()
    published = {**SMALL, "mode": "published", "preset": "tuned", "n_rounds": 30}
    for delta, rounds in ((0.1, 5), (0.4, 7)):
        run = DPTimeFLClassifier(**published, delta=delta, proposals=[1.0, 2.0, 3.0, 9.0]).fit(X, y)
        assert (run.run_.ended_by, len(run.history_)) == ("delta", rounds)
        assert run.history_[-1].delta == pytest.approx(np.exp(rounds - 8.0))


def test_the_history_holds_no_accuracy() -> None:
    X, y = toy_problem()
    classifier = DPTimeFLClassifier(**SMALL).fit(X, y)
    assert not any("accuracy" in name for name in classifier.history_[0].__slots__)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": float("nan")}, "delta"),
        ({"mode": "x"}, "mode"),
        ({"mechanism": "x"}, "mechanism"),
        ({"n_clients": 1}, "n_clients"),
        ({"n_clients": 1000}, "1000 clients"),
        ({"n_rounds": 0}, "n_rounds"),
        ({"mechanism": "distributed", "local_epsilon": [1.0] * 4}, "privunit"),
    ],
)
def test_bad_parameters_are_named(changes: dict[str, Any], word: str) -> None:
    X, y = toy_problem()
    with pytest.raises(TacitError, match=word):
        DPTimeFLClassifier(**{**SMALL, **changes}).fit(X, y)
