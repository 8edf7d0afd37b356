"""The paper's 1D-CNN and a light one, run for many clients at once.

Three convolution blocks and a linear classifier, after the networks of TS-TCC and AdaTime that
the paper builds on. Batch normalisation is replaced by group normalisation: running statistics
are not a gradient, so the paper's mechanism says nothing about sending them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from tacit.errors import TacitError, check_at_least

Parameters = dict[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class CnnSpec:
    """Shape of a network; `kernel` and `stride` are those of the first block."""

    n_channels: int
    length: int
    n_classes: int
    kernel: int
    stride: int
    widths: tuple[int, int, int]
    later_kernel: int = 8


def cnn_spec(*, n_channels: int, length: int, n_classes: int, light: bool = False) -> CnnSpec:
    """The lineage's settings per kind of data, told by length.

    Activity windows: kernel 5, stride 1, widths 64-128-128 (200,902 parameters for 9 channels and
    6 classes). Sleep stages (1 x 3000): kernel 25, stride 6, widths 32-64-128. Machine faults
    (1 x 5120): kernel 32, stride 6, widths 64-128-128. Light: widths 16-32-48 and kernel 5.
    """
    check_at_least(n_channels, 1, name="n_channels")
    check_at_least(length, 8, name="length")
    check_at_least(n_classes, 2, name="n_classes")
    shape = {"n_channels": n_channels, "length": length, "n_classes": n_classes}
    stride = 1 if length < 1000 else 6
    if light:
        return CnnSpec(**shape, kernel=5, stride=2 * stride, widths=(16, 32, 48), later_kernel=5)
    if length < 1000:
        return CnnSpec(**shape, kernel=5, stride=stride, widths=(64, 128, 128))
    if length < 4000:
        return CnnSpec(**shape, kernel=25, stride=stride, widths=(32, 64, 128))
    return CnnSpec(**shape, kernel=32, stride=stride, widths=(64, 128, 128))


class TimeSeriesCnn(nn.Module):
    """`extractor` and `classifier` are the two parts between which the paper splits epsilon."""

    def __init__(self, spec: CnnSpec) -> None:
        super().__init__()
        first, second, third = spec.widths
        self.extractor = nn.Sequential(
            _block(spec.n_channels, first, spec.kernel, spec.stride),
            _block(first, second, spec.later_kernel, 1),
            _block(second, third, spec.later_kernel, 1),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(third, spec.n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores of a batch (n, channels, length)."""
        scores: Tensor = self.classifier(self.extractor(x))
        return scores


def _block(inputs: int, outputs: int, kernel: int, stride: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.GroupNorm(4, outputs),
        nn.ReLU(),
        nn.MaxPool1d(2, stride=2, padding=1),
    )


def new_network(spec: CnnSpec, *, seed: int) -> TimeSeriesCnn:
    """A network with initial weights from the seed; the global generator is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TimeSeriesCnn(spec)


def parameters_of(network: nn.Module) -> Parameters:
    """The network's weights by name, detached."""
    return {name: value.detach().clone() for name, value in network.named_parameters()}


def train_clients(
    network: nn.Module, start: Parameters, batches: list[tuple[Tensor, Tensor]], *, rate: float
) -> Parameters:
    """Plain SGD for many clients at once from the same start; returns stacked weights.

    Each batch is (clients, batch, channels, length) with labels (clients, batch); a label of -1
    marks padding and has no gradient.
    """
    if not batches:
        raise TacitError("training needs at least one batch.")
    n_clients = len(batches[0][0])
    stacked = {name: value.expand(n_clients, *value.shape) for name, value in start.items()}
    step: Callable[[Parameters, Tensor, Tensor], Parameters] = vmap(grad(_loss_of(network)))
    for x, y in batches:
        gradients = step(stacked, x, y)
        stacked = {name: value - rate * gradients[name] for name, value in stacked.items()}
    return stacked


def train_one(
    network: nn.Module, start: Parameters, batches: list[tuple[Tensor, Tensor]], *, rate: float
) -> Parameters:
    """The same for one client by autograd, as a plain loop would: the reference and rival."""
    weights = {name: value.clone().requires_grad_() for name, value in start.items()}
    loss = _loss_of(network)
    for x, y in batches:
        gradients = torch.autograd.grad(loss(weights, x, y), list(weights.values()))
        with torch.no_grad():
            for value, gradient in zip(weights.values(), gradients, strict=True):
                value -= rate * gradient
    return {name: value.detach() for name, value in weights.items()}


def _loss_of(network: nn.Module) -> Callable[[Parameters, Tensor, Tensor], Tensor]:
    def loss(weights: Parameters, x: Tensor, y: Tensor) -> Tensor:
        scores = functional_call(network, weights, (x,))
        held = (y >= 0).to(scores.dtype)
        chances = torch.log_softmax(scores, dim=1)
        chosen = chances.gather(1, y.clamp(min=0).unsqueeze(1)).squeeze(1)
        return -(chosen * held).sum() / held.sum().clamp(min=1.0)

    return loss


def predict_scores(network: nn.Module, weights: Parameters, X: Tensor) -> Tensor:
    """Class scores in chunks, without gradients."""
    with torch.no_grad():
        parts = [functional_call(network, weights, (part,)) for part in torch.split(X, 512)]
    return torch.cat(parts)
