"""FCN and InceptionTime in PyTorch, trained as their authors do, for the comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.errors import TacitError, check_at_least

_KERNELS = (39, 19, 9)  # InceptionTime's filters of 40, 20 and 10, made odd to stay centred


class ConvBlock(nn.Sequential):
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, channels: int, width: int, kernel: int) -> None:
        super().__init__(
            nn.ZeroPad1d(((kernel - 1) // 2, kernel // 2)),
            nn.Conv1d(channels, width, kernel, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )


class Inception(nn.Module):
    """One module: a bottleneck, three filter lengths side by side, and a pooled branch."""

    def __init__(self, channels: int, width: int) -> None:
        super().__init__()
        inner = width if channels > 1 else channels
        self.bottleneck = (
            nn.Conv1d(channels, inner, 1, bias=False) if channels > 1 else nn.Identity()
        )
        self.branches = nn.ModuleList(
            nn.Conv1d(inner, width, kernel, padding="same", bias=False) for kernel in _KERNELS
        )
        self.pooled = nn.Sequential(
            nn.MaxPool1d(3, stride=1, padding=1), nn.Conv1d(channels, width, 1, bias=False)
        )
        self.norm = nn.BatchNorm1d(4 * width)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, T) to (n, 4 width, T)."""
        inner = self.bottleneck(x)
        parts = [branch(inner) for branch in self.branches]
        joined: Tensor = torch.relu(self.norm(torch.cat([*parts, self.pooled(x)], dim=1)))
        return joined


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
                nn.Conv1d(channels if i == 0 else wide, wide, 1, bias=False), nn.BatchNorm1d(wide)
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
        scores: Tensor = self.head(x.mean(dim=2))
        return scores


def fcn(channels: int, n_classes: int) -> nn.Module:
    """Three blocks of 128, 256 and 128 filters, then the mean over time."""
    return nn.Sequential(
        ConvBlock(channels, 128, 8),
        ConvBlock(128, 256, 5),
        ConvBlock(256, 128, 3),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(128, n_classes),
    )


_NETWORKS: dict[str, Any] = {"fcn": fcn, "inception": InceptionNetwork}


class DeepRival:
    """An ensemble of equal networks from different initial weights, with `fit` and `predict`.

    The weights of the epoch with the lowest training loss are kept, as in the authors' code;
    the learning rate halves when that loss stalls. Nothing is chosen by test accuracy.
    """

    def __init__(
        self, network: str, *, seed: int, n_members: int = 1, n_epochs: int = 600, batch: int = 16
    ) -> None:
        if network not in _NETWORKS:
            raise TacitError(f"unknown network {network!r}; use fcn or inception.")
        self.network = network
        self.seed = seed
        self.n_members = check_at_least(n_members, 1, name="n_members")
        self.n_epochs = check_at_least(n_epochs, 1, name="n_epochs")
        self.batch = check_at_least(batch, 2, name="batch")

    def fit(self, X: NDArray[np.float64], y: NDArray[np.str_]) -> DeepRival:
        """Train every member."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        inputs = torch.from_numpy(X.astype(np.float32))
        targets = torch.from_numpy(codes)
        seeds = np.random.SeedSequence(self.seed).generate_state(self.n_members)
        self.members_ = [self._train(inputs, targets, int(seed)) for seed in seeds]
        return self

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.str_]:
        """The class of the largest mean probability."""
        inputs = torch.from_numpy(X.astype(np.float32))
        with torch.no_grad():
            scores = [self._probabilities(member, inputs) for member in self.members_]
        best: NDArray[np.str_] = self.classes_[
            torch.stack(scores).mean(dim=0).argmax(dim=1).numpy()
        ]
        return best

    def _probabilities(self, member: nn.Module, inputs: Tensor) -> Tensor:
        return torch.cat([member(part).softmax(dim=1) for part in torch.split(inputs, 256)])

    def _train(self, inputs: Tensor, targets: Tensor, seed: int) -> nn.Module:
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model: nn.Module = _NETWORKS[self.network](inputs.shape[1], len(self.classes_))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=50, min_lr=1e-4
        )
        best, kept = float("inf"), _copy(model)
        for _ in range(self.n_epochs):
            loss = self._epoch(model, optimizer, inputs, targets, generator)
            schedule.step(loss)
            if loss < best:
                best, kept = loss, _copy(model)
        model.load_state_dict(kept)
        return model.eval()

    def _epoch(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        inputs: Tensor,
        targets: Tensor,
        generator: torch.Generator,
    ) -> float:
        model.train()
        size = max(2, min(self.batch, len(inputs) // 10))
        total = 0.0
        for rows in torch.split(torch.randperm(len(inputs), generator=generator), size):
            if len(rows) < 2:  # batch normalisation needs two
                continue
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
            torch.autograd.backward(loss)
            optimizer.step()
            total += float(loss.detach()) * len(rows)
        return total / len(inputs)


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
