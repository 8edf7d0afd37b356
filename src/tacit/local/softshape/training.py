"""The training loop of the SoftShape network: Eq. 12 with Adam, on the trainer's machine.

Training noise is pooled: unit Laplace draws made once and read at a fresh offset at each step.
That is safe because nothing of a training step is released, and it is much faster; a release
always draws fresh secure noise (`SoftShapeNetwork.privatize`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from tacit.local.softshape.augment import augmented_views
from tacit.local.softshape.moe import balance_loss
from tacit.local.softshape.network import Release, SoftShapeNetwork
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.system.progress import Progress, silent

Bottleneck = Callable[[Tensor], Tensor]
"""Maps an encoder's outputs to what a server sees of them, noise included."""

_WARM_UP = 0.3  # share of the steps in which one-cycle raises the rate


class NoisePool:
    """Laplace noise for training, drawn once; never for a release."""

    def __init__(self, rng: np.random.Generator, *, scale: float = 1.0, size: int = 2**20) -> None:
        self._rng = rng
        self._pool = torch.from_numpy(rng.laplace(scale=scale, size=size).astype(np.float32))

    def draw(self, shape: tuple[int, ...]) -> Tensor:
        """A window of the pool at a random offset, repeated if the shape is larger."""
        count = math.prod(shape)
        size = self._pool.numel()
        if count >= size:
            return self._pool.repeat(count // size + 1)[:count].reshape(shape)
        start = int(self._rng.integers(size - count))
        return self._pool[start : start + count].reshape(shape)


def training_release(
    network: SoftShapeNetwork, epsilon: float, rng: np.random.Generator
) -> Release:
    """Eq. 4 with pooled noise; gradients reach embedding and scores through the scale."""

    pool = NoisePool(rng, scale=network.largest_scale(epsilon))

    def release(tokens: Tensor, alpha: Tensor) -> Tensor:
        noise = pool.draw(tuple(tokens.shape))
        if not network.settings.attention_guided:
            return tokens + noise
        return torch.addcmul(tokens, noise, (1.0 - alpha).unsqueeze(-1))

    return release


def fit_network(
    network: SoftShapeNetwork,
    X: NDArray[np.float32],
    y_codes: NDArray[np.int64],
    *,
    settings: SoftShapeSettings,
    rng: np.random.Generator,
    release: Release | None = None,
    head: Callable[[Tensor], Tensor] | None = None,
    progress: Progress | None = None,
) -> list[float]:
    """Minimise cross entropy plus balance loss (Eq. 12); return the loss per step.

    `release` replaces the embeddings by what a server would see of them (None: no noise);
    `head` replaces the classification head, for encoders trained through a bottleneck.
    """
    report = progress or silent
    labels = torch.from_numpy(y_codes)
    network.fit_basis(torch.from_numpy(X))
    # The basis is fixed, so each view's patches are projected once and not at every step.
    views = augmented_views(X, settings=settings, rng=rng)
    projected = torch.stack([network.project(torch.from_numpy(view)) for view in views])
    classify = head or network.head
    parameters = list(network.parameters())
    if isinstance(head, nn.Module):
        parameters += list(head.parameters())
    flat = flatten_parameters(parameters)
    optimizer = torch.optim.Adam(
        [flat], lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    losses: list[float] = []
    network.train()
    for step, chosen in enumerate(batches(len(X), settings=settings, rng=rng)):
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * rate_factor(step, settings=settings)
        view = torch.from_numpy(rng.integers(len(views), size=len(chosen)))
        pooled, traces = network.run_projected(projected[view, chosen], release)
        loss = F.cross_entropy(
            classify(pooled), labels[chosen], label_smoothing=settings.label_smoothing
        )
        routed = [trace.gates for trace in traces if trace.gates is not None]
        if routed:
            loss = loss + settings.balance_weight * sum(balance_loss(gates) for gates in routed)
        optimizer.zero_grad(set_to_none=False)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(float(loss.detach()))
        if step % 50 == 49:
            report(step + 1, settings.steps, f"loss {losses[-1]:.3f}")
    network.eval()
    return losses


def flatten_parameters(parameters: list[nn.Parameter]) -> nn.Parameter:
    """One vector that all parameters, and their gradients, are windows of.

    The optimizer then updates one tensor instead of twenty small ones, at a third of the cost.
    """
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    start = 0
    for parameter in parameters:
        window = slice(start, start + parameter.numel())
        parameter.data = flat.data[window].view_as(parameter)
        parameter.grad = flat.grad[window].view_as(parameter)
        start = window.stop
    return flat


def batches(n: int, *, settings: SoftShapeSettings, rng: np.random.Generator) -> list[Tensor]:
    """The rows of each step: shuffled passes over the data, cut into equal batches."""
    size = min(settings.batch_size, n)
    passes = math.ceil(settings.steps * size / n)
    rows = np.concatenate([rng.permutation(n) for _ in range(passes)])[: settings.steps * size]
    return list(torch.from_numpy(rows.reshape(settings.steps, size)))


def rate_factor(step: int, *, settings: SoftShapeSettings) -> float:
    """The learning rate at `step` as a share of the largest one."""
    if settings.schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * step / settings.steps))
    peak = max(1.0, _WARM_UP * settings.steps)
    if step < peak:
        return 0.04 + 0.96 * 0.5 * (1.0 - math.cos(math.pi * (step + 1) / (peak + 1)))
    return 0.5 * (1.0 + math.cos(math.pi * (step - peak) / max(1.0, settings.steps - peak)))
