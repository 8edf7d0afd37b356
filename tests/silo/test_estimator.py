"""FedSTClassifier: aeon's checks and ours in plaintext, and one secure fit on real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contract import aeon_contract, check_tacit_classifier, toy_problem
from tacit.errors import TacitError
from tacit.guarantee import MpcGuarantee, Unprotected
from tacit.ledger import Ledger
from tacit.silo import FedSTClassifier

SMALL: dict[str, Any] = {"n_candidates": 12, "n_shapelets": 4, "n_trees": 3, "depth": 2}


@pytest.mark.seconds
@aeon_contract(FedSTClassifier(scope="global", **SMALL))
def test_aeon_contract(check: Any) -> None:
    check()


@pytest.mark.seconds
@pytest.mark.parametrize("classifier", ["forest", "logistic", "ridge"])
def test_tacit_contract(classifier: str) -> None:
    check_tacit_classifier(
        lambda: FedSTClassifier(
            scope="global", classifier=classifier, n_steps=10, random_state=0, **SMALL
        )
    )


@pytest.mark.seconds
def test_secure_fit_opens_exactly_the_declared_list() -> None:
    X, y = toy_problem()
    said: list[str] = []
    model = FedSTClassifier(
        random_state=0,
        lengths=(6, 20),
        progress=lambda done, total, message: said.append(message),
        **SMALL,
    ).fit(X, y)
    guarantee = model.guarantee_
    assert isinstance(guarantee, MpcGuarantee)
    assert guarantee.opened == ("shapelet indices -> P0", "ridge weights -> P0")
    assert (guarantee.protocol, guarantee.n_parties, guarantee.max_corrupt) == ("ABY3", 3, 1)
    assert set(model.history_["seconds"]) == {"search", "transform", "classifier"}
    assert model.history_["bytes_sent"] > 100_000
    assert len(model.shapelets_) == 4
    assert any("MB sent" in message for message in said)
    assert (model.predict(X) == y).mean() > 0.7


@pytest.mark.seconds
@pytest.mark.parametrize(
    ("scope", "opened"),
    [
        ("local-search", ("forest leaf labels (noised) -> P0",)),
        ("federated", ("shapelet indices (noised) -> P0", "forest leaf labels (noised) -> P0")),
    ],
)
def test_noised_openings_are_debited_before_the_run(
    scope: str, opened: tuple[str, ...], tmp_path: Path
) -> None:
    X, y = toy_problem()
    path = tmp_path / "ledger.db"
    model = FedSTClassifier(
        scope=scope,
        quality="ig",
        classifier="forest",
        epsilon=2.0,
        ledger=str(path),
        lengths=(6, 20),
        random_state=0,
        **SMALL,
    ).fit(X, y)
    assert model.guarantee_.also is not None
    assert model.guarantee_.also.epsilon == 2.0
    assert model.guarantee_.opened == opened
    with Ledger.open(path) as ledger:
        debits = [entry for entry in ledger.entries() if entry.kind != "genesis"]
    assert [entry.subject for entry in debits] == ["fedst"]


@pytest.mark.seconds
def test_local_uses_the_initiators_series_only() -> None:
    X, y = toy_problem()
    party = np.arange(len(y)) // 8
    local = FedSTClassifier(scope="local", random_state=0, **SMALL).fit(X, y, party=party)
    changed = X.copy()
    changed[party != 0] = np.random.default_rng(0).normal(size=changed[party != 0].shape)
    again = FedSTClassifier(scope="local", random_state=0, **SMALL).fit(changed, y, party=party)
    assert isinstance(local.guarantee_, Unprotected)
    np.testing.assert_array_equal(local.predict_proba(X), again.predict_proba(X))
    pooled = FedSTClassifier(scope="global", random_state=0, **SMALL).fit(X, y, party=party)
    assert (len(pooled.own_series_), len(local.own_series_)) == (24, 8)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_parties": 1}, "n_parties"),
        ({"scope": "everywhere"}, "scope must be one of"),
        ({"time_contract": float("inf")}, "time_contract"),
        ({"normalise": False}, "value_bound"),
        ({"epsilon": 1.0}, "no bound"),
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, Any], sentence: str) -> None:
    X, y = toy_problem()
    with pytest.raises(TacitError, match=sentence):
        FedSTClassifier(**({"scope": "global"} | SMALL | changes)).fit(X, y)


def test_bad_parties_are_refused() -> None:
    X, y = toy_problem()
    model = FedSTClassifier(scope="global", **SMALL)
    with pytest.raises(TacitError, match="from 0 to 2"):
        model.fit(X, y, party=np.full(len(y), 3))
    with pytest.raises(TacitError, match="at least one series"):
        model.fit(X, y, party=np.zeros(len(y), dtype=int))
