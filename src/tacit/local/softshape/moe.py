"""The sparse mixture of experts and the Inception module of DP-SoftShape (Eq. 8-10, 13)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_SMALL = 256  # experts times hidden units: up to here evaluating every expert is quicker


class SparseMixture(nn.Module):
    """Every token goes to its `top_k` experts, weighted by the router (Eq. 8-9).

    Small experts are all evaluated, as two matrix products masked by the gates: on one core that
    is several times faster than gathering each expert's tokens. Large ones only see their own
    tokens. The result is the same.
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
        if self.n_experts * self.hidden > _SMALL:
            return self._dispatched(tokens, gates), gates
        hidden = F.gelu(self.rise(tokens)).view(*gates.shape, self.hidden)
        mixed = (hidden * gates.unsqueeze(-1)).flatten(-2)
        return mixed @ self.fall + gates @ self.fall_bias, gates

    def _dispatched(self, tokens: Tensor, gates: Tensor) -> Tensor:
        """Every expert on the tokens that chose it, all of them sorted by expert before."""
        flat, weights = tokens.flatten(0, -2), gates.flatten(0, -2)
        expert, row = weights.T.nonzero(as_tuple=True)  # in the order of the experts
        counts = torch.bincount(expert, minlength=self.n_experts).tolist()
        rise = self.rise.weight.view(self.n_experts, self.hidden, -1).unbind()
        rise_bias = self.rise.bias.view(self.n_experts, self.hidden).unbind()
        fall = self.fall.view(self.n_experts, self.hidden, -1).unbind()
        parts = torch.split(flat.index_select(0, row), counts)
        out = [
            torch.addmm(last, F.gelu(F.linear(part, up, first)), down)
            for part, up, first, down, last in zip(
                parts, rise, rise_bias, fall, self.fall_bias.unbind(), strict=True
            )
        ]
        weighted = torch.cat(out) * weights[row, expert].unsqueeze(-1)
        return torch.zeros_like(flat).index_add(0, row, weighted).view_as(tokens)


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
    and lie in one array as long as the largest of them, each in the middle of its rows.
    """

    def __init__(self, dim: int, *, kernels: tuple[int, int, int], bottleneck: int) -> None:
        super().__init__()
        self.kernels, self.reach, self.branch = kernels, max(kernels), dim // 4
        self.bottleneck = nn.Linear(dim, bottleneck, bias=False)
        self.weight = nn.Parameter(torch.empty(3 * self.branch, bottleneck, self.reach))
        self.bias = nn.Parameter(torch.zeros(3 * self.branch))
        self.pooled = nn.Linear(dim, self.branch)
        bounds = torch.tensor([1.0 / math.sqrt(size * bottleneck) for size in kernels])
        with torch.no_grad():
            self.weight.uniform_(-1.0, 1.0)
            self.weight.mul_(bounds.repeat_interleave(self.branch)[:, None, None])

    def forward(self, tokens: Tensor) -> Tensor:
        """h_inter for tokens of shape (n, K, D)."""
        # As images one pixel high with the channels last: four times as fast as in one dimension.
        narrow = self.bottleneck(tokens).transpose(1, 2).unsqueeze(2)
        parts = [self._convolve(narrow, row, size) for row, size in enumerate(self.kernels)]
        branches = torch.cat(parts, dim=1).squeeze(2).transpose(1, 2)
        pooled = self.pooled(tokens.mean(1, keepdim=True)).expand(-1, tokens.shape[1], -1)
        return torch.cat([branches, pooled], dim=-1)

    def _convolve(self, narrow: Tensor, row: int, size: int) -> Tensor:
        side = min(size // 2, narrow.shape[-1] - 1)  # beyond it a kernel sees nothing but padding
        rows = slice(row * self.branch, (row + 1) * self.branch)
        middle = slice(self.reach // 2 - side, self.reach // 2 + side + 1)
        kernel = self.weight[rows, :, middle].unsqueeze(2)
        return F.conv2d(narrow, kernel, self.bias[rows], padding=(0, side))
