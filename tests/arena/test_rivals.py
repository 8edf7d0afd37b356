from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from contract import toy_problem
from tacit.arena.deep_rivals import DeepRival
from tacit.arena.methods import method_named, method_names
from tacit.arena.rivals import RIVALS, noised, z_score
from tacit.arena.task import Task
from tacit.data import Dataset
from tacit.errors import TacitError

FALSE_ALARM = 1e-6


def toy_data() -> Dataset:
    X, y = toy_problem(n_series=60)
    return Dataset(
        name="toy",
        X_train=X[:30],
        y_train=y[:30],
        X_test=X[30:],
        y_test=y[30:],
        classes=("a", "b"),
    )


SMALL = {
    "arsenal": {"n_estimators": 2, "n_kernels": 50},
    "fcn": {"n_epochs": 30},
    "inceptiontime": {"n_epochs": 20, "n_members": 1},
    "multirocket-hydra": {},
    "rocket": {"n_kernels": 100},
    "tsf": {"n_estimators": 20},
}


@pytest.mark.parametrize("name", sorted(RIVALS))
def test_every_rival_learns_the_toy_problem(name: str) -> None:
    options = tuple(sorted(SMALL.get(name, {}).items()))
    outcome = method_named(name)(
        Task(suite="t", method=name, data="toy", options=options), toy_data()
    )
    assert outcome.accuracy > 0.6
    assert outcome.guarantee.kind == "unprotected"


def test_input_noise_has_the_papers_scale_at_every_step() -> None:
    data = toy_data()
    noisy = noised(data, epsilon=0.5, views=400)
    noise = noisy.X_train - np.tile(z_score(data.X_train), (400, 1, 1))
    assert stats.kstest(noise.ravel(), stats.laplace(scale=2.0).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(noise.ravel(), stats.laplace(scale=1.9).cdf).pvalue < FALSE_ALARM
    assert noisy.y_train.tolist() == data.y_train.tolist() * 400
    np.testing.assert_array_equal(noised(data, epsilon=None).X_test, z_score(data.X_test))


def test_a_constant_series_becomes_zero() -> None:
    assert not np.any(z_score(np.full((1, 1, 9), 3.0)))


def test_a_deep_rival_repeats_with_its_seed() -> None:
    data = toy_data()
    made = [DeepRival("fcn", seed=3, n_epochs=3).fit(data.X_train, data.y_train) for _ in range(2)]
    first, second = (m.members_[0].state_dict() for m in made)
    assert all(np.array_equal(first[key], second[key]) for key in first)
    with pytest.raises(TacitError, match="unknown network"):
        DeepRival("transformer", seed=0)


def test_a_mistyped_method_gets_a_suggestion() -> None:
    assert "rocket" in method_names()
    with pytest.raises(TacitError, match="did you mean 'rocket'"):
        method_named("rockett")
