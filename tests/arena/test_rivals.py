from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from contract import toy_problem
from tacit.arena.deep_rivals import DeepRival
from tacit.arena.methods import method_named, method_names
from tacit.arena.rivals import CLIP, RIVALS, noised, z_score
from tacit.arena.task import Task
from tacit.data import Dataset, load_dataset
from tacit.errors import TacitError
from tacit.guarantee import DpGuarantee
from tacit.report.arena.tables import budget_name, short_guarantee

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
    "fcn": {"n_updates": 20},
    "inceptiontime": {"n_updates": 20, "n_members": 1},
    "multirocket-hydra": {},
    "rocket": {"n_kernels": 100},
    "tsf": {"n_estimators": 20},
}


@pytest.mark.seconds
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


@pytest.mark.seconds
def test_a_total_epsilon_covers_the_replacement_of_a_whole_series() -> None:
    """Noise of scale 2 CLIP T / epsilon, told from one that is 5 % too small."""
    data = toy_data()
    epsilon, steps = 2.0, data.X_train.shape[2]
    clipped = np.clip(z_score(data.X_train), -CLIP, CLIP)
    noise = np.concatenate(
        [(noised(data, epsilon=epsilon, total=True).X_train - clipped).ravel() for _ in range(400)]
    )
    scale = 2 * CLIP * steps / epsilon
    assert stats.kstest(noise, stats.laplace(scale=scale).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(noise, stats.laplace(scale=0.95 * scale).cdf).pvalue < FALSE_ALARM
    task = Task(suite="t", method="1-nn", data="toy", epsilon=epsilon, options=(("total", True),))
    guarantee = method_named("1-nn")(task, data).guarantee
    assert isinstance(guarantee, DpGuarantee)
    assert (guarantee.epsilon, guarantee.model, guarantee.unit) == (epsilon, "local", "series")
    on_grid = noised(data, epsilon=epsilon, total=True).X_train * 1024
    assert np.array_equal(on_grid, np.rint(on_grid))  # no last bits that tell values apart
    twice = Task(
        suite="t",
        method="1-nn",
        data="toy",
        epsilon=epsilon,
        options=(("total", True), ("views", 2)),
    )
    with pytest.raises(TacitError, match="views = 1"):
        method_named("1-nn")(twice, data)


@pytest.mark.seconds
@pytest.mark.silo
def test_the_twin_gives_the_scopes_in_seconds() -> None:
    data = load_dataset("ItalyPowerDemand")
    found = {}
    for scope in ("federated", "local"):
        options = {"engine": "twin", "scope": scope, "n_candidates": 20, "n_shapelets": 5}
        task = Task(suite="t", method="fedst", data="x", options=tuple(sorted(options.items())))
        found[scope] = method_named("fedst")(task, data)
    # Five shapelets of so few candidates vary: .749 to .939 over seeds 0 to 7; chance is .5.
    assert all(outcome.accuracy > 0.7 for outcome in found.values())
    assert all(outcome.guarantee.kind == "unprotected" for outcome in found.values())


def test_a_constant_series_becomes_zero() -> None:
    assert not np.any(z_score(np.full((1, 1, 9), 3.0)))


def test_a_deep_rival_repeats_with_its_seed() -> None:
    data = toy_data()
    made = [DeepRival("fcn", seed=3, n_updates=5).fit(data.X_train, data.y_train) for _ in range(2)]
    first, second = (m.members_[0].state_dict() for m in made)
    assert all(np.array_equal(first[key], second[key]) for key in first)
    with pytest.raises(TacitError, match="unknown network"):
        DeepRival("transformer", seed=0)


def test_a_mistyped_method_gets_a_suggestion() -> None:
    assert "rocket" in method_names()
    with pytest.raises(TacitError, match="did you mean 'rocket'"):
        method_named("rockett")


def test_a_record_of_float64_noise_is_shown_without_a_guarantee() -> None:
    """Records of earlier versions keep what they stated; tables call it nominal."""
    stated = DpGuarantee(epsilon=1.0, model="local", unit="series")
    older = replace(stated, assumptions=("idealised real arithmetic: noise is drawn in float64",))
    mine, theirs = ({"guarantee": found.to_dict()} for found in (stated, older))
    assert short_guarantee(mine).startswith("epsilon 1:")
    assert short_guarantee(theirs) == "none (nominal epsilon 1, float64 noise)"
    assert budget_name(1.0, [mine]) == "epsilon = 1"
    assert budget_name(1.0, [theirs]) == "nominal epsilon = 1"
