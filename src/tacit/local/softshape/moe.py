"""The sparse mixture of experts and the Inception module of DP-SoftShape (Eq. 8-10, 13)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SparseMixture(nn.Module):
    """Every token goes to its `top_k` experts, weighted by the router (Eq. 8-9).

    All experts are evaluated as two matrix products and masked by the gates: on one core that is
    several times faster than gathering each expert's tokens, and the result is the same.
    """

    def __init__(self, dim: int, *, n_experts: int, top_k: int, hidden: int) -> None:
        super().__init__()
        self.n_experts, self.top_k, self.hidden = n_experts, top_k, hidden
        self.router = nn.Linear(dim, n_experts, bias=False)
        self.rise = nn.Linear(dim, n_experts * hidden)
        self.fall = nn.Parameter(torch.empty(n_experts * hidden, dim))
        self.fall_bias = nn.Parameter(torch.zeros(n_experts, dim))
        # Each expert is its own MLP: its fan-in is `hidden`, not all experts together.
        nn.init.uniform_(self.fall, -1.0 / math.sqrt(hidden), 1.0 / math.sqrt(hidden))

    def gates(self, tokens: Tensor) -> Tensor:
        """G(q) of Eq. 8: the softmax, kept at the top_k experts and zero elsewhere."""
        probabilities = self.router(tokens).softmax(-1)
        top, chosen = probabilities.topk(self.top_k, dim=-1)
        return torch.zeros_like(probabilities).scatter(-1, chosen, top)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """h_intra (Eq. 9) and the gates, which the balance loss and the pictures need."""
        gates = self.gates(tokens)
        hidden = F.gelu(self.rise(tokens)).view(*gates.shape, self.hidden)
        mixed = (hidden * gates.unsqueeze(-1)).flatten(-2)
        return mixed @ self.fall + gates @ self.fall_bias, gates


def balance_loss(gates: Tensor) -> Tensor:
    """CV(Importance)^2 + CV(Load)^2 over experts (Eq. 13); Load counts, so it has no gradient."""
    flat = gates.flatten(0, -2)
    return _squared_variation(flat.sum(0)) + _squared_variation((flat > 0).to(flat).sum(0))


def _squared_variation(values: Tensor) -> Tensor:
    return values.var(unbiased=False) / values.mean().square().clamp_min(1e-12)


class Inception(nn.Module):
    """Three convolutions along the tokens, and their global mean, side by side (Eq. 10).

    Linear, as the paper writes it: the experts are what makes the block nonlinear, and with an
    activation here leaving them out would cost nothing. The three kernels share one bottleneck
    and run as one matrix product: the smaller ones are the largest one with zeros outside their
    support.
    """

    support: Tensor

    def __init__(self, dim: int, *, kernels: tuple[int, int, int], bottleneck: int) -> None:
        super().__init__()
        self.reach = max(kernels)
        self.bottleneck = nn.Linear(dim, bottleneck, bias=False)
        branch = dim // 4
        self.weight = nn.Parameter(torch.empty(3 * branch, bottleneck, self.reach))
        self.bias = nn.Parameter(torch.zeros(3 * branch))
        self.pooled = nn.Linear(dim, branch)
        self.register_buffer("support", _support(kernels, branch, self.reach), persistent=False)
        bounds = torch.tensor([1.0 / math.sqrt(size * bottleneck) for size in kernels])
        with torch.no_grad():
            self.weight.uniform_(-1.0, 1.0)
            self.weight.mul_(bounds.repeat_interleave(branch)[:, None, None])

    def forward(self, tokens: Tensor) -> Tensor:
        """h_inter for tokens of shape (n, K, D)."""
        narrow = F.pad(self.bottleneck(tokens), (0, 0, self.reach // 2, self.reach // 2))
        windows = narrow.unfold(1, self.reach, 1).flatten(-2)
        branches = F.linear(windows, (self.weight * self.support).flatten(1), self.bias)
        pooled = self.pooled(tokens.mean(1, keepdim=True)).expand(-1, tokens.shape[1], -1)
        return torch.cat([branches, pooled], dim=-1)


def _support(kernels: tuple[int, int, int], branch: int, reach: int) -> Tensor:
    distance = (torch.arange(reach) - reach // 2).abs()
    rows = [(distance <= size // 2).float() for size in kernels]
    return torch.stack(rows).repeat_interleave(branch, dim=0).unsqueeze(1)
