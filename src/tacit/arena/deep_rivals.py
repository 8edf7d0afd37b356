"""FCN and InceptionTime in PyTorch, for the comparison.

Series are held as images one pixel high with the channels last: on processors, PyTorch's long
one-dimensional convolutions take more than twice the time in their own layout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.errors import TacitError, check_at_least

_KERNELS = (39, 19, 9)  # InceptionTime's filters of 40, 20 and 10, made odd to stay centred
_PEAK_RATE = 3e-3


class ConvBlock(nn.Sequential):
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, channels: int, width: int, kernel: int) -> None:
        super().__init__(
            nn.ZeroPad2d(((kernel - 1) // 2, kernel // 2, 0, 0)),
            nn.Conv2d(channels, width, (1, kernel), bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )


class Inception(nn.Module):
    """One module: a bottleneck, three filter lengths side by side, and a pooled branch."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        inner = width if channels > 1 else channels
        self.bottleneck = (
            nn.Conv2d(channels, inner, 1, bias=False) if channels > 1 else nn.Identity()
        )
        self.branches = nn.ModuleList(
            nn.Conv2d(inner, width, (1, kernel), padding=(0, kernel // 2), bias=False)
            for kernel in _KERNELS
        )
        self.pooled = nn.Conv2d(channels, width, 1, bias=False)
        self.norm = nn.BatchNorm2d(4 * width)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, 1, T) to (n, 4 width, 1, T)."""
        inner = self.bottleneck(x)
        parts = [branch(inner) for branch in self.branches]
        joined: Tensor = torch.cat([*parts, self.pooled(_max_of_three(x))], dim=1)
        return torch.relu(self.norm(joined))


def _max_of_three(x: Tensor) -> Tensor:
    """Maximum over a step and its two neighbours; a pooling layer takes four times as long."""
    wide = nn.functional.pad(x, (1, 1), value=-torch.inf)
    return torch.maximum(torch.maximum(wide[..., :-2], wide[..., 2:]), x)


class InceptionNetwork(nn.Module):
    """Six modules with a residual connection around every third."""

    def __init__(self, channels: int, n_classes: int, width: int = 32, depth: int = 6) -> None:
        super().__init__()
        wide = 4 * width
        self.modules_ = nn.ModuleList(
            Inception(channels if i == 0 else wide, width) for i in range(depth)
        )
        self.shortcuts = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(channels if i == 0 else wide, wide, 1, bias=False), nn.BatchNorm2d(wide)
            )
            for i in range(depth // 3)
        )
        self.head = nn.Linear(wide, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores."""
        residual = x
        for i, module in enumerate(self.modules_):
            x = module(x)
            if i % 3 == 2:
                x = torch.relu(x + self.shortcuts[i // 3](residual))
                residual = x
        scores: Tensor = self.head(x.mean(dim=(2, 3)))
        return scores


def fcn(channels: int, n_classes: int) -> nn.Module:
    """Three blocks of 128, 256 and 128 filters, then the mean over time."""
    return nn.Sequential(
        ConvBlock(channels, 128, 8),
        ConvBlock(128, 256, 5),
        ConvBlock(256, 128, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, n_classes),
    )


_NETWORKS: dict[str, Any] = {"fcn": fcn, "inception": InceptionNetwork}


class DeepRival:
    """An ensemble of equal networks from different initial weights, with `fit` and `predict`.

    Every member takes `n_updates` steps of Adam whose rate rises to 0.003 and falls to nothing.
    The authors' schedule (up to 1500 epochs of a falling rate) is about ten times as long. Batches
    hold an eighth of the training series, 8 to 32. Nothing is chosen by test accuracy.
    """

    def __init__(
        self, network: str, *, seed: int, n_members: int = 1, n_updates: int = 1000
    ) -> None:
        if network not in _NETWORKS:
            raise TacitError(f"unknown network {network!r}; use fcn or inception.")
        self.network = network
        self.seed = seed
        self.n_members = check_at_least(n_members, 1, name="n_members")
        self.n_updates = check_at_least(n_updates, 1, name="n_updates")

    def fit(self, X: NDArray[np.float64], y: NDArray[np.str_]) -> DeepRival:
        """Train every member."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        inputs, targets = _images(X), torch.from_numpy(codes)
        seeds = np.random.SeedSequence(self.seed).generate_state(self.n_members)
        self.members_ = [self._train(inputs, targets, int(seed)) for seed in seeds]
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.str_]:
        """The class of the largest mean probability."""
        inputs = _images(X)
        with torch.no_grad():
            scores = [self._probabilities(member, inputs) for member in self.members_]
        best: NDArray[np.str_] = self.classes_[
            torch.stack(scores).mean(dim=0).argmax(dim=1).numpy()
        ]
        return best

    def represent(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the first member's head sees of every series, (n, width)."""
        member, seen = self.members_[0], list[Tensor]()
        head = [module for module in member.modules() if isinstance(module, nn.Linear)][-1]
        hook = head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            with torch.no_grad():
                self._probabilities(member, _images(X))
        finally:
            hook.remove()
        return torch.cat(seen).double().numpy()

    def _probabilities(self, member: nn.Module, inputs: Tensor) -> Tensor:
        return torch.cat([member(part).softmax(dim=1) for part in torch.split(inputs, 64)])

    def _train(self, inputs: Tensor, targets: Tensor, seed: int) -> nn.Module:
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model: nn.Module = _NETWORKS[self.network](inputs.shape[1], len(self.classes_))
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=_PEAK_RATE)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, _PEAK_RATE, total_steps=self.n_updates
        )
        for rows in _batches(len(inputs), self.n_updates, generator):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
        return model.eval()


def _images(X: NDArray[np.float64]) -> Tensor:
    images = torch.from_numpy(X.astype(np.float32)).unsqueeze(2)
    return images.contiguous(memory_format=torch.channels_last)


def _batches(n: int, count: int, generator: torch.Generator) -> list[Tensor]:
    """`count` batches, each series once per pass; a last batch of one is left out.

    Batch normalisation cannot use a single series.
    """
    size = min(32, max(8, n // 8))
    found: list[Tensor] = []
    while len(found) < count:
        parts = torch.split(torch.randperm(n, generator=generator), size)
        found += [part for part in parts if len(part) > 1 or n == 1]
    return found[:count]
