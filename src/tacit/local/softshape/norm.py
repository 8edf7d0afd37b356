"""Root-mean-square normalisation with its gradient written out.

The composed form costs a dozen small operations forwards and backwards; on one core and tokens of
this size that is a good part of a training step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

_UNIT_FLOOR = 1e-6
_NORM_FLOOR = float(torch.finfo(torch.float32).eps)  # as in torch.nn.RMSNorm


class _DivideByRms(torch.autograd.Function):
    """x / sqrt(mean(x^2) + floor), the mean taken over `dims`."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, dims: tuple[int, ...], floor: float) -> Tensor:
        count = 1
        for dim in dims:
            count *= values.shape[dim]
        size = torch.linalg.vector_norm(values, dim=dims, keepdim=True)
        factor = torch.rsqrt(size.square() / count + floor)
        scaled = values * factor
        ctx.dims = dims
        ctx.save_for_backward(scaled, factor)
        return scaled

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        scaled, factor = ctx.saved_tensors
        gradient = gradients[0]
        along = (gradient * scaled).mean(ctx.dims, keepdim=True)
        return torch.addcmul(gradient, scaled, along, value=-1.0) * factor, None, None


def unit_scale(tokens: Tensor) -> Tensor:
    """Divide each series' tokens (n, K, D) by their common root mean square."""
    scaled: Tensor = _DivideByRms.apply(tokens, (1, 2), _UNIT_FLOOR)  # type: ignore[no-untyped-call]
    return scaled


class RMSNorm(nn.Module):
    """Divide each token by its root mean square, then weight its dimensions (Eq. 11)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens of the same shape."""
        scaled: Tensor = _DivideByRms.apply(tokens, (-1,), _NORM_FLOOR)  # type: ignore[no-untyped-call]
        return scaled * self.weight
