"""The training of the SoftShape network: Eq. 12 with Adam, on the trainer's machine.

Without noise unless the caller brings some: the sound mode trains an encoder this way, and
`tacit.local.softshape.published` adds the noise of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from tacit.arrays import Floats, Floats32
from tacit.errors import TacitError, check_at_least
from tacit.local.softshape.augment import augmented_views
from tacit.local.softshape.moe import balance_loss
from tacit.local.softshape.network import Release, SoftShapeNetwork
from tacit.local.softshape.settings import Schedule, SoftShapeSettings
from tacit.local.softshape.trained import Normalisation, TrainedNetwork
from tacit.system.progress import Progress, silent

Noise = Callable[[SoftShapeNetwork, np.random.Generator], Release]
"""Makes the release step that training sees, for a new network."""

_WARM_UP = 0.3  # share of the steps in which one-cycle raises the rate


def train_network(
    X: Floats,
    y_codes: NDArray[np.integer[Any]],
    n_classes: int,
    *,
    settings: SoftShapeSettings,
    seed: int,
    noise: Noise | None = None,
    progress: Progress | None = None,
) -> TrainedNetwork:
    """Train on series (n, channels, T) and labels 0..n_classes-1; without `noise`, without any."""
    check_at_least(n_classes, 1, name="n_classes")
    _check_problem(X, y_codes, n_classes)
    normalisation = Normalisation.of(X)
    rng = np.random.default_rng(seed)
    network = new_network(X, n_outputs=n_classes, settings=settings, rng=rng)
    losses = fit_network(
        network,
        normalisation.apply(X),
        np.asarray(y_codes, dtype=np.int64),
        settings=settings,
        rng=rng,
        release=None if noise is None else noise(network, rng),
        progress=progress,
    )
    return TrainedNetwork(
        network=network, normalisation=normalisation, seed=seed, losses=tuple(losses)
    )


def _check_problem(X: Floats, y_codes: NDArray[np.integer[Any]], n_classes: int) -> None:
    if X.ndim != 3 or len(X) != len(y_codes) or not len(X):
        raise TacitError(
            f"training needs series of shape (n, channels, T) with n labels, got "
            f"{X.shape} and {len(y_codes)} labels."
        )
    if not 0 <= np.min(y_codes) <= np.max(y_codes) < n_classes:
        raise TacitError(
            f"labels must be codes 0..{n_classes - 1}, got {np.min(y_codes)}..{np.max(y_codes)}; "
            "number the classes first."
        )


def new_network(
    X: Floats, *, n_outputs: int, settings: SoftShapeSettings, rng: np.random.Generator
) -> SoftShapeNetwork:
    """A network for series like `X` with initial weights from `rng` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        return SoftShapeNetwork(
            settings, n_channels=X.shape[1], length=X.shape[2], n_outputs=n_outputs
        )


def fit_network(
    network: SoftShapeNetwork,
    X: Floats32,
    y_codes: NDArray[np.int64],
    *,
    settings: SoftShapeSettings,
    rng: np.random.Generator,
    release: Release | None = None,
    progress: Progress | None = None,
) -> list[float]:
    """Minimise cross entropy plus balance loss (Eq. 12); return the loss per step.

    `release` replaces the embeddings by what a server would see of them (None: no noise).
    """
    with _own_dropout(settings, rng):
        return _fit(
            network, X, y_codes, settings=settings, rng=rng, release=release, progress=progress
        )


@contextmanager
def _own_dropout(settings: SoftShapeSettings, rng: np.random.Generator) -> Iterator[None]:
    """Dropout draws from PyTorch's global generator: seed it by `rng`, and leave it as it was."""
    if not settings.dropout:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        yield


def _fit(
    network: SoftShapeNetwork,
    X: Floats32,
    y_codes: NDArray[np.int64],
    *,
    settings: SoftShapeSettings,
    rng: np.random.Generator,
    release: Release | None,
    progress: Progress | None,
) -> list[float]:
    report = progress or silent
    labels = torch.from_numpy(y_codes)
    network.fit_basis(torch.from_numpy(X))
    views = augmented_views(X, settings=settings, rng=rng)
    rows_of = _projected_rows(network, views)
    flat = flatten_parameters(list(network.parameters()))
    optimizer = torch.optim.Adam(
        [flat], lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    losses: list[float] = []
    network.train()
    steps = settings.n_steps(len(X))
    for step, chosen in enumerate(batches(len(X), settings=settings, rng=rng)):
        for group in optimizer.param_groups:
            factor = rate_factor(step, steps=steps, schedule=settings.schedule)
            group["lr"] = settings.learning_rate * factor
        view = torch.from_numpy(rng.integers(len(views), size=len(chosen)))
        pooled, traces = network.run_projected(rows_of(view, chosen), release)
        loss = F.cross_entropy(
            network.head(pooled), labels[chosen], label_smoothing=settings.label_smoothing
        )
        routed = [trace.gates for trace in traces if trace.gates is not None]
        if routed:
            loss = loss + settings.balance_weight * sum(balance_loss(gates) for gates in routed)
        optimizer.zero_grad(set_to_none=False)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(float(loss.detach()))
        if step % 50 == 49:
            report(step + 1, steps, f"loss {losses[-1]:.3f}")
    network.eval()
    return losses


def _projected_rows(
    network: SoftShapeNetwork, views: Floats32
) -> Callable[[Tensor, Tensor], Tensor]:
    """The coordinates of the patches of chosen series in chosen views.

    A fitted basis is fixed, so that each view is projected once and not at every step; a free
    kernel needs the patches themselves, which take less time to cut than memory to keep.
    """
    series = torch.from_numpy(views)
    if network.free:
        return lambda view, chosen: network.project(series[view, chosen])
    projected = torch.stack([network.project(view) for view in series])
    return lambda view, chosen: projected[view, chosen]


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
    """The rows of each step: shuffled passes over the data, cut into batches.

    With `epochs` every pass is cut by itself and its last batch may be smaller; with `steps` all
    batches are equal.
    """
    if settings.epochs is not None:
        whole = (torch.from_numpy(rng.permutation(n)) for _ in range(settings.epochs))
        return [rows for order in whole for rows in torch.split(order, settings.batch_size)]
    size = min(settings.batch_size, n)
    passes = math.ceil(settings.steps * size / n)
    rows = np.concatenate([rng.permutation(n) for _ in range(passes)])[: settings.steps * size]
    return list(torch.from_numpy(rows.reshape(settings.steps, size)))


def rate_factor(step: int, *, steps: int, schedule: Schedule) -> float:
    """The learning rate at `step` as a share of the largest one."""
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * step / steps))
    peak = max(1.0, _WARM_UP * steps)
    if step < peak:
        return 0.04 + 0.96 * 0.5 * (1.0 - math.cos(math.pi * (step + 1) / (peak + 1)))
    return 0.5 * (1.0 + math.cos(math.pi * (step - peak) / max(1.0, steps - peak)))
