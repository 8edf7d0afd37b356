"""The training loop: schedules, batches, pooled noise, views, and that it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from tacit.arrays import Floats32, Integers
from tacit.local.softshape.augment import augmented_views, one_view
from tacit.local.softshape.network import SoftShapeNetwork
from tacit.local.softshape.norm import RMSNorm, _DivideByRms
from tacit.local.softshape.published import NoisePool, training_release
from tacit.local.softshape.settings import Schedule, SoftShapeSettings, preset_settings
from tacit.local.softshape.training import (
    batches,
    fit_network,
    flatten_parameters,
    rate_factor,
    train_network,
)

TINY = SoftShapeSettings(
    embed_dim=16, expert_dim=8, bottleneck_dim=8, basis_dim=16, steps=60, views=2
)


def waves(n: int = 24, length: int = 40) -> tuple[Floats32, Integers]:
    rng = np.random.default_rng(3)
    y = np.arange(n) % 2
    clock = np.linspace(0, 1, length)
    x = np.where(y[:, None] == 0, np.sin(9 * clock), np.sign(np.sin(9 * clock)) * clock)
    return (x + 0.1 * rng.normal(size=x.shape))[:, None].astype(np.float32), y.astype(np.int64)


def fit(
    settings: SoftShapeSettings, epsilon: float | None = None
) -> tuple[SoftShapeNetwork, list[float]]:
    X, y = waves()
    torch.manual_seed(0)
    network = SoftShapeNetwork(settings, n_channels=1, length=40, n_outputs=2)
    rng = np.random.default_rng(0)
    release = None if epsilon is None else training_release(network, epsilon, rng)
    return network, fit_network(network, X, y, settings=settings, rng=rng, release=release)


@pytest.mark.parametrize("schedule", ["onecycle", "cosine"])
def test_the_rate_stays_in_range_and_ends_near_zero(schedule: Schedule) -> None:
    factors = [rate_factor(step, steps=100, schedule=schedule) for step in range(100)]
    assert all(0.0 < f <= 1.0 for f in factors)
    assert max(factors) > 0.99
    assert factors[-1] < 0.01
    assert (factors[0] < 0.1) == (schedule == "onecycle")


def test_batches_pass_over_all_series_equally_often() -> None:
    settings = replace(TINY, steps=50, batch_size=8)
    rows = torch.cat(batches(20, settings=settings, rng=np.random.default_rng(0))).numpy()
    assert rows.size == 400
    assert set(np.bincount(rows)) == {20}


def test_epochs_are_whole_passes_whose_last_batch_may_be_smaller() -> None:
    settings = replace(TINY, epochs=3, batch_size=8)
    made = batches(20, settings=settings, rng=np.random.default_rng(0))
    assert [len(rows) for rows in made] == [8, 8, 4] * 3
    assert len(made) == settings.n_steps(20)
    for start in (0, 3, 6):
        assert sorted(torch.cat(made[start : start + 3]).tolist()) == list(range(20))


def test_a_batch_is_never_larger_than_the_data() -> None:
    settings = replace(TINY, steps=3, batch_size=32)
    assert [len(b) for b in batches(1, settings=settings, rng=np.random.default_rng(0))] == [
        1,
        1,
        1,
    ]


def test_pooled_noise_is_unit_laplace_and_moves() -> None:
    pool = NoisePool(np.random.default_rng(0), size=2**16)
    one, two = pool.draw((100, 500)), pool.draw((100, 500))
    assert not torch.equal(one, two)
    # A fixed seed: no false alarm from run to run.
    assert stats.kstest(one.numpy().ravel(), stats.laplace.cdf).pvalue > 1e-3
    assert stats.kstest(1.1 * one.numpy().ravel(), stats.laplace.cdf).pvalue < 1e-3
    assert pool.draw((3, 2**16)).shape == (3, 2**16)


def test_views_keep_the_original_and_differ_from_it() -> None:
    X, _ = waves()
    views = augmented_views(X, settings=TINY, rng=np.random.default_rng(0))
    assert views.shape == (3, *X.shape)
    assert views.dtype == np.float32
    assert np.array_equal(views[0], X)
    assert not np.array_equal(views[1], views[2])


def test_a_view_of_strength_zero_is_the_series() -> None:
    X, _ = waves()
    still = replace(TINY, view_shift=0.0, view_warp=0.0, view_scale=0.0, view_jitter=0.0)
    np.testing.assert_allclose(
        one_view(X, settings=still, rng=np.random.default_rng(0)), X, atol=1e-5
    )


def test_many_series_get_no_views() -> None:
    X = np.zeros((4001, 1, 4), dtype=np.float32)
    assert len(augmented_views(X, settings=TINY, rng=np.random.default_rng(0))) == 1


@pytest.mark.parametrize("epsilon", [None, 5.0])
def test_the_loss_falls(epsilon: float | None) -> None:
    _, losses = fit(TINY, epsilon)
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])


def test_gradients_reach_the_scores_through_the_noise_scale() -> None:
    torch.manual_seed(0)
    network = SoftShapeNetwork(TINY, n_channels=1, length=40, n_outputs=2)
    tokens = network.embed(torch.randn(3, 1, 40)).detach()
    release = training_release(network, 1.0, np.random.default_rng(0))
    torch.autograd.backward(release(tokens, network.attention(tokens)).square().sum())
    assert network.gate.outer.weight.grad is not None
    assert float(network.gate.outer.weight.grad.abs().sum()) > 0


@pytest.mark.parametrize("dims", [(1, 2), (-1,)])
def test_the_written_out_gradient_of_the_norm_is_right(dims: tuple[int, ...]) -> None:
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)

    def divide(values: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = _DivideByRms.apply(values, dims, 1e-3)  # type: ignore[no-untyped-call]
        return scaled

    assert torch.autograd.gradcheck(divide, (x,))


def test_the_norm_is_the_usual_one() -> None:
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(RMSNorm(4)(x), torch.nn.RMSNorm(4)(x))


def test_flat_parameters_learn_like_separate_ones() -> None:
    torch.manual_seed(0)
    together, apart = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    apart.load_state_dict(together.state_dict())
    flat = flatten_parameters(list(together.parameters()))
    optimizers = [torch.optim.Adam([flat]), torch.optim.Adam(apart.parameters())]
    x = torch.randn(5, 3)
    for _ in range(3):
        for module, optimizer in zip((together, apart), optimizers, strict=True):
            optimizer.zero_grad(set_to_none=False)
            module(x).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(together.weight, apart.weight)
    torch.testing.assert_close(together.bias, apart.bias)


def test_one_seed_gives_one_network() -> None:
    first, losses = fit(TINY, 1.0)
    second, again = fit(TINY, 1.0)
    assert losses == again
    for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b)


def test_dropout_follows_the_seed_and_leaves_the_global_generator_alone() -> None:
    settings = preset_settings(
        "paper", embed_dim=16, expert_dim=8, bottleneck_dim=8, n_experts=2, steps=5
    )
    assert settings.dropout > 0
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = _losses(settings)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(8)
    assert _losses(settings) == first
    assert _losses(replace(settings, dropout=0.0)) != first


def _losses(settings: SoftShapeSettings) -> list[float]:
    X, y = waves()
    return list(train_network(X.astype(float), y, 2, settings=settings, seed=0).losses)


def test_progress_is_reported() -> None:
    X, y = waves()
    network = SoftShapeNetwork(TINY, n_channels=1, length=40, n_outputs=2)
    seen: list[tuple[int, int]] = []
    fit_network(
        network,
        X,
        y,
        settings=TINY,
        rng=np.random.default_rng(0),
        progress=lambda done, total, message: seen.append((done, total)),
    )
    assert seen == [(50, 60)]
