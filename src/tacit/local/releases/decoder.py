"""The server's classifier of noisy vectors, and its training with the noise in the loop.

A small network with one hidden layer. While it is trained, every step sees fresh noise of the very
mechanism that devices use, so it learns what noisy releases of each class look like; the part that
runs before the noise is trained through it. Training noise comes from the trainer's generator and
never leaves; releases draw their own from the operating system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.encoding.ridge import softmax
from tacit.system.progress import Progress

if TYPE_CHECKING:
    import torch

_HIDDEN = 32
_STEPS = 400
_ROWS = 256  # noisy rows per step: small training sets are repeated under fresh noise
_LARGEST = 1e9  # a released number beyond this is no release: the noise does not reach it


@dataclass(frozen=True, slots=True, eq=False)
class ServerNetwork:
    """Released vectors (n, d) to class probabilities; `scale` brings the noise to unit size."""

    scale: Floats
    inner_weight: Floats
    inner_bias: Floats
    outer_weight: Floats
    outer_bias: Floats

    def posterior(self, values: Floats) -> Floats:
        """Class probabilities (n, classes)."""
        hidden = np.maximum((values * self.scale) @ self.inner_weight + self.inner_bias, 0.0)
        return softmax(hidden @ self.outer_weight + self.outer_bias)

    def check_values(self, values: NDArray[Any]) -> None:
        """Refuse vectors of another dimension, or beyond what any noise reaches."""
        width = len(self.scale)
        if values.ndim != 2 or values.shape[1] != width:
            raise TacitError(
                f"released vectors have shape {values.shape}, this model reads (n, {width}); "
                "they belong to another model."
            )
        if values.size and not np.abs(values).max() < _LARGEST:
            raise TacitError("a released vector holds values no device can have sent; drop it.")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays for a bundle."""
        return {f"server.{name}": getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> ServerNetwork:
        """Rebuild what `arrays` described."""
        return cls(**{name: arrays[f"server.{name}"] for name in cls.__slots__})


def train_through_noise(
    release: Callable[[torch.Tensor], torch.Tensor],
    parameters: list[torch.nn.Parameter],
    inputs: NDArray[np.floating[Any]],
    y: Codes,
    *,
    scale: Callable[[], torch.Tensor],
    n_classes: int,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[ServerNetwork, float]:
    """Train `parameters` of the release and a server network; return it and its noisy accuracy.

    `release` maps inputs to noisy releases, differentiably; `scale` is what the server multiplies
    them with. The accuracy is that of the last quarter of the steps, on noise not trained on yet.
    """
    import torch
    from torch import nn

    width = scale().numel()
    server = _new_server(width, n_classes, rng)
    learned = [*parameters, *server.parameters()]
    optimizer = torch.optim.Adam(learned, lr=1e-2, weight_decay=1e-4)
    data, labels = torch.from_numpy(np.asarray(inputs, np.float32)), torch.from_numpy(y)
    right = []
    for step in range(_STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * min(1.0, 2.0 * (1.0 - step / _STEPS))
        rows = torch.from_numpy(rng.integers(len(y), size=_ROWS))
        scores = server(release(data[rows]) * scale())
        loss = nn.functional.cross_entropy(scores, labels[rows])
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimizer.step()
        if step >= 3 * _STEPS // 4:
            right.append(float((scores.argmax(1) == labels[rows]).double().mean()))
        if step % 100 == 99:
            progress(step + 1, _STEPS, f"loss {float(loss.detach()):.3f}")
    return _to_numpy(server, scale()), float(np.mean(right))


def _new_server(width: int, n_classes: int, rng: np.random.Generator) -> torch.nn.Sequential:
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        return nn.Sequential(nn.Linear(width, _HIDDEN), nn.ReLU(), nn.Linear(_HIDDEN, n_classes))


def _to_numpy(server: torch.nn.Sequential, scale: torch.Tensor) -> ServerNetwork:
    def array(value: Any) -> Floats:
        return np.asarray(value.detach().double().numpy())

    inner, outer = server[0], server[2]
    return ServerNetwork(
        array(scale),
        array(inner.weight).T.copy(),
        array(inner.bias),
        array(outer.weight).T.copy(),
        array(outer.bias),
    )
