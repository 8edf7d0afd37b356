"""From a fleet's head to a device's model: the same labels, an exact channel, a stated rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from contract import toy_problem
from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.learning.head import class_scores, feature_map
from tacit.fleet.plan import FleetPlan
from tacit.fleet.reports.calibration import make_plan
from tacit.guarantee import DpGuarantee, Unprotected
from tacit.hybrid.bridge import release_model, stated_confusion
from tacit.local.model import LocalModel
from tacit.local.releases.label import LabelHead
from tacit.mechanisms import channel_epsilon

TRAINING = DpGuarantee(epsilon=8.0, delta=1e-5, model="shuffle", unit="client")
CLASSES = np.array(["a", "b", "c"])


def plan() -> FleetPlan:
    return make_plan(
        classes=tuple(CLASSES),
        n_channels=1,
        length=40,
        mechanism="privunit",
        n_clients=10,
        epsilon=8.0,
        delta=1e-5,
        n_rounds=2,
        n_kernels=30,
    )


def weights(seed: int = 3) -> Floats:
    return np.random.default_rng(seed).standard_normal((2, plan().n_features))


def model(*, release_epsilon: float = 2.0, recognition: float = 0.9) -> LocalModel:
    return release_model(
        plan(),
        weights(),
        training=TRAINING,
        classes=CLASSES,
        release_epsilon=release_epsilon,
        recognition=recognition,
    )


def head_of(made: LocalModel) -> LabelHead:
    assert isinstance(made.head, LabelHead)
    return made.head


def test_devices_say_what_the_fleets_model_says() -> None:
    X, _ = toy_problem(n_series=60, n_classes=3)
    scores = class_scores(feature_map(plan()).transform(X), weights())
    assert len(set(scores.argmax(axis=1))) > 1
    np.testing.assert_array_equal(head_of(model()).summarise(X), scores.argmax(axis=1))


@pytest.mark.parametrize("epsilon", [0.1, 2.0, 8.0])
def test_the_channel_is_k_ary_randomized_response_and_keeps_its_epsilon(epsilon: float) -> None:
    channel = head_of(model(release_epsilon=epsilon)).channel
    assert channel_epsilon(channel) <= epsilon
    kept = math.exp(epsilon) / (math.exp(epsilon) + 2.0)
    np.testing.assert_allclose(np.diag(channel), kept, rtol=1e-9)


def test_the_posterior_follows_from_the_stated_rate_alone() -> None:
    """By Bayes' rule on paper: right with r, released as it is with q, all errors alike."""
    head = head_of(model(release_epsilon=2.0, recognition=0.9))
    q = math.exp(2.0) / (math.exp(2.0) + 2.0)
    right = 0.9 * q + 0.1 * (1.0 - q) / 2.0
    posterior = head.posterior(np.array([0, 1, 2]))
    np.testing.assert_allclose(np.diag(posterior), right, rtol=1e-9)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    np.testing.assert_allclose(posterior[0, 1], (1.0 - right) / 2.0, rtol=1e-9)


@pytest.mark.parametrize("recognition", [1.0, 1.0 / 3.0, 0.0, -1.0, math.nan])
def test_a_rate_that_is_none_is_refused(recognition: float) -> None:
    with pytest.raises(TacitError, match="recognition must lie above"):
        stated_confusion(3, recognition=recognition)


def test_both_guarantees_are_in_the_model() -> None:
    made = model()
    assert made.training == TRAINING
    assert (made.guarantee.epsilon, made.guarantee.delta) == (2.0, 0.0)
    assert any("training's own guarantee" in what for what in made.guarantee.not_covered)


def test_a_fleet_without_privacy_makes_no_hybrid() -> None:
    with pytest.raises(TacitError, match="carries no differential privacy"):
        release_model(
            plan(),
            weights(),
            training=Unprotected(reason="as published"),
            classes=CLASSES,
            release_epsilon=2.0,
        )
