"""The network against its equations, each computed a second way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional as F

from tacit.errors import TacitError
from tacit.local.softshape.moe import Inception, SparseMixture, balance_loss
from tacit.local.softshape.network import SoftShapeNetwork, clip_l1, sparsify
from tacit.local.softshape.norm import unit_scale
from tacit.local.softshape.settings import SoftShapeSettings, preset_settings
from tacit.noise import SYSTEM_NOISE

FALSE_ALARM = 1e-6
SMALL = SoftShapeSettings(embed_dim=16, expert_dim=8, bottleneck_dim=4, basis_dim=12)


def network(settings: SoftShapeSettings = SMALL, *, channels: int = 2) -> SoftShapeNetwork:
    torch.manual_seed(0)
    made = SoftShapeNetwork(settings, n_channels=channels, length=60, n_outputs=3)
    made.fit_basis(torch.randn(20, channels, 60))
    return made.eval().requires_grad_(False)


def series(n: int = 5, channels: int = 2) -> torch.Tensor:
    return torch.randn(n, channels, 60, generator=torch.Generator().manual_seed(1))


def test_embedding_is_a_strided_convolution_plus_positions() -> None:
    net, x = network(), series()
    conv = F.conv1d(x, net.kernel, net.bias, stride=net.stride).transpose(1, 2)
    assert conv.shape[1] == net.n_patches == (60 - net.patch_length) // net.stride + 1
    torch.testing.assert_close(net.embed(x), conv + net.positions, atol=1e-5, rtol=1e-5)


def test_the_basis_gives_training_patches_nearly_equal_variance() -> None:
    net = network(replace(SMALL, basis_ridge=1e-6, basis_dim=4), channels=1)
    x = torch.randn(300, 1, 60).cumsum(2)
    net.fit_basis(x)
    coordinates = net.project(x).flatten(0, 1)
    second = coordinates.T @ coordinates / len(coordinates)
    torch.testing.assert_close(second, torch.eye(4), atol=1e-3, rtol=0)


def test_scores_follow_equation_3() -> None:
    net = network()
    s = net.embed(series())
    inner, outer = net.gate.inner, net.gate.outer
    by_hand = torch.sigmoid(
        torch.tanh(s @ inner.weight.T + inner.bias) @ outer.weight[0] + outer.bias
    )
    torch.testing.assert_close(net.attention(s), by_hand)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_the_noise_scale_is_equation_4_at_epsilon_over_blocks(blocks: int) -> None:
    net = network(replace(SMALL, n_blocks=blocks))
    s = net.embed(series())
    alpha = net.attention(s)
    scale = net.noise_scale(s, alpha, epsilon=0.5)
    torch.testing.assert_close(scale, (1 - alpha) * blocks / 0.5, atol=1e-5, rtol=1e-5)


def test_uniform_noise_and_clipping_change_the_scale() -> None:
    uniform = network(replace(SMALL, attention_guided=False))
    s = uniform.embed(series())
    assert torch.all(uniform.noise_scale(s, uniform.attention(s), epsilon=0.5) == 2.0)
    clipped = network(replace(SMALL, clip=3.0, attention_guided=False))
    s = clipped.embed(series())
    assert float(s.abs().sum(-1).max()) <= 3.0 + 1e-5
    assert torch.all(clipped.noise_scale(s, clipped.attention(s), epsilon=0.5) == 6.0)


def noise_p_value(factor: float) -> float:
    """p-value of the release's noise, divided by `factor` times its stated scale."""
    net = network()
    s = net.embed(series(4000))
    alpha = net.attention(s)
    scale = net.noise_scale(s, alpha, epsilon=1.0).double().unsqueeze(-1)
    noise = net.privatize(s, alpha, 1.0, SYSTEM_NOISE).double() - s.double()
    unit = (noise / (factor * scale)).detach().numpy().ravel()
    assert unit.size > 10**6
    return float(stats.kstest(unit, stats.laplace.cdf).pvalue)


@pytest.mark.seconds
def test_a_release_carries_laplace_noise_of_the_stated_scale() -> None:
    assert noise_p_value(1.0) > FALSE_ALARM


def test_the_check_notices_noise_three_percent_too_small() -> None:
    assert noise_p_value(1.03) < FALSE_ALARM


def test_a_release_draws_fresh_noise_for_every_coordinate() -> None:
    net = network()
    s = net.embed(series())
    alpha = net.attention(s)
    draws = [net.privatize(s, alpha, 1.0, SYSTEM_NOISE) for _ in range(8)]
    # In float32 two draws agree by luck about once in 10**6: seven times over, never.
    assert not torch.any(torch.stack([draw == draws[0] for draw in draws[1:]]).all(0))
    noise = draws[0] - s
    assert len(torch.unique(noise)) > 0.99 * s.numel()


@pytest.mark.parametrize("rho", [0.01, 0.3, 0.5, 0.75, 1.0])
def test_sparsification_follows_equations_5_to_7(rho: float) -> None:
    settings = replace(SMALL, rho=rho)
    s, alpha = torch.randn(4, 10, 16), torch.rand(4, 10)
    k = settings.n_kept(10)
    assert k == int(np.ceil(rho * 10))
    tokens, kept = sparsify(s, alpha, n_kept=k, soft=True)
    for n in range(4):
        order = np.argsort(-alpha[n].numpy())
        top, rest = sorted(order[:k]), sorted(order[k:])
        assert kept[n].tolist() == top
        torch.testing.assert_close(tokens[n, :k], alpha[n, top, None] * s[n, top])
        fused = sum((alpha[n, p] * s[n, p] for p in rest), torch.zeros(16))
        torch.testing.assert_close(tokens[n, k], fused, atol=1e-5, rtol=1e-5)


def test_the_background_is_exactly_zero_when_nothing_remains() -> None:
    tokens, _ = sparsify(torch.randn(2, 7, 16), torch.rand(2, 7), n_kept=7, soft=True)
    assert tokens.shape[1] == 8
    assert torch.all(tokens[:, -1] == 0)


def test_hard_sparsification_drops_the_rest_and_the_weights() -> None:
    s, alpha = torch.randn(2, 7, 16), torch.rand(2, 7)
    tokens, kept = sparsify(s, alpha, n_kept=3, soft=False)
    assert torch.equal(tokens[0], s[0, kept[0]])
    assert tokens.shape == (2, 3, 16)


@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_the_mixture_follows_equations_8_and_9(top_k: int) -> None:
    torch.manual_seed(0)
    mixture = SparseMixture(16, n_experts=4, top_k=top_k, hidden=8).requires_grad_(False)
    tokens = torch.randn(3, 5, 16)
    out, gates = mixture(tokens)
    assert torch.all((gates > 0).sum(-1) == top_k)
    probabilities = (tokens @ mixture.router.weight.T).softmax(-1)
    for q, got, gate in zip(tokens[0], out[0], probabilities[0], strict=True):
        total = torch.zeros(16)
        for i in gate.topk(top_k).indices.tolist():
            rows = slice(8 * i, 8 * i + 8)
            hidden = F.gelu(mixture.rise.weight[rows] @ q + mixture.rise.bias[rows])
            total += gate[i] * (hidden @ mixture.fall[rows] + mixture.fall_bias[i])
        torch.testing.assert_close(got, total, atol=1e-5, rtol=1e-4)


def test_the_balance_loss_is_zero_when_balanced_and_follows_equation_13() -> None:
    assert float(balance_loss(torch.eye(4).repeat(3, 1))) == pytest.approx(0.0, abs=1e-6)
    gates = torch.tensor([[[0.9, 0.0], [0.8, 0.0], [0.0, 0.7]]])
    importance, load = np.array([1.7, 0.7]), np.array([2.0, 1.0])
    expected = sum((v.std() / v.mean()) ** 2 for v in (importance, load))
    assert float(balance_loss(gates)) == pytest.approx(expected, rel=1e-5)


def test_inception_is_three_convolutions_and_the_mean() -> None:
    torch.manual_seed(0)
    module = Inception(16, kernels=(7, 5, 3), bottleneck=4).requires_grad_(False)
    tokens = torch.randn(2, 9, 16)
    narrow = module.bottleneck(tokens).transpose(1, 2)
    parts = []
    for branch, size in enumerate((7, 5, 3)):
        rows, cut = slice(4 * branch, 4 * branch + 4), (7 - size) // 2
        weight = module.weight[rows, :, cut : 7 - cut]
        parts.append(F.conv1d(narrow, weight, module.bias[rows], padding=size // 2))
    pooled = module.pooled(tokens.mean(1, keepdim=True)).expand(-1, 9, -1)
    by_hand = torch.cat([torch.cat(parts, 1).transpose(1, 2), pooled], -1)
    torch.testing.assert_close(module(tokens), by_hand, atol=1e-5, rtol=1e-4)


def test_the_paths_see_unit_size_and_the_scores_keep_their_weight() -> None:
    tokens = torch.randn(3, 5, 16)
    scaled = unit_scale(1000.0 * tokens)
    torch.testing.assert_close(scaled.square().mean((1, 2)), torch.ones(3), atol=1e-4, rtol=0)
    ratio = (scaled[:, 0].norm(dim=-1) / scaled[:, 1].norm(dim=-1)).tolist()
    assert ratio == pytest.approx((tokens[:, 0].norm(dim=-1) / tokens[:, 1].norm(dim=-1)).tolist())


@pytest.mark.parametrize("soft", [True, False])
def test_the_maximum_is_over_shapes_and_the_mean_over_all_tokens(soft: bool) -> None:
    net = network(replace(SMALL, soft=soft)).requires_grad_(False)
    pooled, traces = net.run(series())
    tokens = net.body(traces[0].released, traces[0].alpha)
    shapes = tokens[:, : traces[0].kept.shape[1]]
    assert shapes.shape[1] == tokens.shape[1] - soft
    torch.testing.assert_close(pooled, torch.cat([tokens.mean(1), shapes.amax(1)], dim=-1))


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize("switch", [{}, {"use_moe": False}, {"soft": False}, {"rho": 1.0}])
def test_every_variant_runs_and_reports_its_blocks(blocks: int, switch: dict[str, Any]) -> None:
    settings = replace(SMALL, n_blocks=blocks, **switch)
    net = network(settings)
    pooled, traces = net.run(series(), net.secure_release(1.0, SYSTEM_NOISE))
    assert pooled.shape == (5, 32)
    assert len(traces) == blocks
    assert (traces[0].gates is None) == (not settings.use_moe)
    assert net(series()).shape == (5, 3)
    assert torch.isfinite(net(series(), 0.1, source=SYSTEM_NOISE)).all()


PAPER = preset_settings("paper", embed_dim=16, expert_dim=8, bottleneck_dim=4)


def test_the_paper_s_network_is_its_equations_and_nothing_else() -> None:
    """From the series to the representation, written out a second time (Eq. 2-11)."""
    net, x = network(PAPER, channels=1), series(channels=1)
    pooled, traces = net.run(x)
    conv = F.conv1d(x, net.kernel, net.bias, stride=4).transpose(1, 2)
    s = conv + net.positions
    s = s / s.abs().sum(-1, keepdim=True).clamp_min(1.0)  # Section 3.1.3: sensitivity 1
    assert float(s.abs().sum(-1).max()) <= 1.0 + 1e-6
    alpha = torch.sigmoid(net.gate.outer(torch.tanh(net.gate.inner(s)))).squeeze(-1)
    torch.testing.assert_close(traces[0].alpha, alpha)
    tokens, _ = sparsify(s, alpha, n_kept=int(np.ceil(0.5 * s.shape[1])), soft=True)
    block: Any = net.blocks[0]
    total = tokens + block.mixture(tokens)[0] + block.inception(tokens)
    rms = total / total.square().mean(-1, keepdim=True).sqrt()
    torch.testing.assert_close(pooled, (rms * block.norm_out.weight).mean(1), atol=1e-4, rtol=1e-3)
    assert net.largest_scale(0.5) == 2.0


def test_a_free_kernel_is_not_fitted_to_the_series() -> None:
    torch.manual_seed(0)
    net = SoftShapeNetwork(PAPER, n_channels=1, length=60, n_outputs=3)
    before = net.kernel.clone()
    net.fit_basis(series(channels=1))
    assert torch.equal(before, net.kernel)
    assert net.kernel.shape == (16, 1, net.patch_length)


def test_the_presets_differ_by_named_settings_alone() -> None:
    paper, tuned = preset_settings("paper"), preset_settings("tuned")
    assert tuned == SoftShapeSettings()
    assert (paper.clip, paper.learning_rate, paper.batch_size) == (1.0, 1e-3, 32)
    assert (paper.schedule, paper.views, paper.unit_tokens) == ("cosine", 0, False)
    assert (paper.kernel_basis, paper.pooling, paper.n_blocks) == ("free", "mean", 1)
    assert (paper.n_steps(16), paper.n_steps(400)) == (500, 6500)
    assert preset_settings("paper", steps=7).n_steps(400) == 7
    with pytest.raises(TacitError, match="preset must be paper or tuned, got 'best'"):
        preset_settings("best")
    with pytest.raises(TacitError, match="unknown settings \\['colour'\\]"):
        preset_settings("paper", colour=1)


def test_large_experts_see_their_own_tokens_only_and_give_the_same() -> None:
    torch.manual_seed(0)
    mixture = SparseMixture(16, n_experts=5, top_k=2, hidden=8).requires_grad_(False)
    tokens = torch.randn(3, 6, 16)
    dense, gates = mixture(tokens)
    sparse = mixture._dispatched(tokens, gates)
    torch.testing.assert_close(sparse, dense, atol=1e-5, rtol=1e-4)


def test_clipping_never_enlarges() -> None:
    s = torch.tensor([[[0.1, -0.2]], [[3.0, -4.0]]])
    clipped = clip_l1(s, 1.0)
    assert torch.equal(clipped[0], s[0])
    assert float(clipped[1].abs().sum()) == pytest.approx(1.0)
    assert clip_l1(s, None) is s


def test_bad_shapes_budgets_and_missing_sources_are_refused() -> None:
    net = network()
    with pytest.raises(TacitError, match="60 steps"):
        net(torch.zeros(2, 2, 59))
    with pytest.raises(TacitError, match="channels"):
        net(torch.zeros(2, 1, 60))
    with pytest.raises(TacitError, match="noise source"):
        net(series(), 1.0)
    for epsilon in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(TacitError, match="epsilon"):
            net(series(), epsilon, source=SYSTEM_NOISE)


@pytest.mark.parametrize(
    "bad",
    [
        {"embed_dim": 0},
        {"embed_dim": 18},
        {"top_k": 9},
        {"rho": 0.0},
        {"rho": 1.1},
        {"rho": float("nan")},
        {"clip": 0.0},
        {"clip": float("nan")},
        {"kernels": (4, 3, 2)},
        {"schedule": "linear"},
        {"steps": 0},
        {"learning_rate": float("nan")},
        {"weight_decay": -1.0},
        {"patch_fraction": 0.0},
        {"epochs": 0},
        {"patch_stride": 0},
        {"dropout": 1.0},
        {"pooling": "max"},
        {"kernel_basis": "none"},
    ],
)
def test_bad_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(TacitError):
        SoftShapeSettings(**bad)  # type: ignore[arg-type]


def test_settings_survive_their_json_form() -> None:
    settings = replace(SMALL, clip=2.0, soft=False)
    assert SoftShapeSettings.from_dict(settings.to_dict()) == settings
    with pytest.raises(TacitError, match="unknown"):
        SoftShapeSettings.from_dict({**settings.to_dict(), "colour": 1})


@pytest.mark.parametrize("length", [1, 2, 5, 8, 24, 150, 1000])
def test_every_length_has_patches_that_fit(length: int) -> None:
    settings = SoftShapeSettings()
    m, s, p = settings.patch_length(length), settings.stride(length), settings.n_patches(length)
    assert 1 <= m <= length
    assert p >= 1
    assert (p - 1) * s + m <= length
