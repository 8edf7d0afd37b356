"""Checks of single values: what is no number gets the sentence too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from local_problems import italy
from tacit.data import load_dataset
from tacit.errors import (
    TacitError,
    check_at_least,
    check_delta,
    check_epsilon,
    check_positive,
    reason_of,
)
from tacit.fleet.experiment import FleetTask
from tacit.fleet.published.settings import PublishedConfig
from tacit.guarantee import DpGuarantee
from tacit.ledger import Ledger
from tacit.local.device import Device
from tacit.local.estimator import DPSoftShapeClassifier
from tacit.mechanisms.laplace import clip_l1

BAD = [0, -1.0, float("nan"), float("inf"), True, "3", None, [1.0]]


@pytest.mark.parametrize("value", BAD)
def test_what_is_not_positive_is_refused(value: Any) -> None:
    with pytest.raises(TacitError, match="round_seconds must be finite and above 0"):
        check_positive(value, name="round_seconds")
    with pytest.raises(TacitError, match=r"privacy budget, for example 1\.0"):
        check_epsilon(value)
    with pytest.raises(TacitError, match="delta must lie"):
        check_delta(value)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(2)])
def test_numbers_of_any_kind_pass(value: Any) -> None:
    assert check_positive(value, name="rate") == float(value)


@pytest.mark.parametrize("value", [1, 2.5, float("nan"), float("inf"), True, "3", None])
def test_a_count_is_a_whole_number(value: Any) -> None:
    with pytest.raises(TacitError, match="clients must be a whole number of at least 2"):
        check_at_least(value, 2, name="clients")
    assert check_at_least(cast(int, np.int64(2)), 2, name="clients") == 2


@pytest.mark.parametrize("refused", [
    lambda: FleetTask(n_clients=5, epsilon=8.0, clip_norm=-1.0),
    lambda: PublishedConfig(rate=-1.0),
    lambda: PublishedConfig(clip_norm=0.0),
    lambda: PublishedConfig(noise_multiplier=-1.0),
    lambda: PublishedConfig(least_gain=0.0),
    lambda: clip_l1(np.zeros((1, 1)), clip_norm=-1.0),
])  # fmt: skip
def test_only_a_budget_is_called_a_budget(refused: Callable[[], object]) -> None:
    with pytest.raises(TacitError, match="must be finite and above 0") as error:
        refused()
    assert "budget" not in str(error.value)


def _wrong_calls() -> dict[str, Callable[[], object]]:
    data = italy()
    classifier = DPSoftShapeClassifier(2.0, random_state=0).fit(data.X_train, data.y_train)
    ledger = cast(Ledger, "spend.db")
    return {
        "only releases are classified": lambda: classifier.classify(cast(Any, data.X_test)),
        "give Ledger.open": lambda: Device(classifier.model_).release(data.X_test, ledger=ledger),
        "path must be a path": lambda: classifier.export_device(cast(str, 3)),
        "a data set must be a path": lambda: load_dataset(cast(str, 3)),
        "finite epsilon above 0, got '3'": lambda: DpGuarantee(
            epsilon=cast(float, "3"), model="local", unit="series"
        ),
        r"delta in \[0, 1\), got None": lambda: DpGuarantee(
            epsilon=1.0, delta=cast(float, None), model="local", unit="series"
        ),
    }


def test_wrong_types_of_public_calls_get_a_sentence() -> None:
    for words, call in _wrong_calls().items():
        with pytest.raises(TacitError, match=words):
            call()


def test_a_reason_has_neither_number_nor_path() -> None:
    assert reason_of(FileNotFoundError(2, "No such file or directory", "x")) == (
        "No such file or directory"
    )
    assert reason_of(OSError("took too long")) == "took too long"
    assert reason_of(ValueError("bad zip")) == "bad zip"
