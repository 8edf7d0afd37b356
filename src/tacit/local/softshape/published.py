"""DP-SoftShape as published: nominal epsilon, no guarantee, accuracy with the noise on.

Training noise is pooled: unit Laplace draws made once and read at a fresh offset at each step.
That is safe because nothing of a training step is released, and it is much faster; a release
always draws fresh secure noise (`SoftShapeNetwork.privatize`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.arrays import Floats
from tacit.errors import BundleError, check_epsilon
from tacit.guarantee import Unprotected
from tacit.local.softshape.network import Release, SoftShapeNetwork, Trace
from tacit.local.softshape.settings import SoftShapeSettings, preset_settings
from tacit.local.softshape.trained import CHUNK, Normalisation, TrainedNetwork
from tacit.local.softshape.training import Noise, train_network
from tacit.noise import SYSTEM_NOISE, NoiseSource
from tacit.system.progress import Progress


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedSoftShape(TrainedNetwork):
    """A trained network whose releases are noised; `epsilon` None means without noise."""

    epsilon: float | None

    @property
    def guarantee(self) -> Unprotected:
        """What the published mechanism promises: nothing."""
        return published_guarantee(self.epsilon)

    def predict_scores(self, X: Floats, source: NoiseSource = SYSTEM_NOISE) -> Floats:
        """Class probabilities (n, C), each from one fresh noisy release of its series."""
        series = self.prepare(X)
        with torch.inference_mode():
            parts = [
                self.network(part, self.epsilon, source=source).double().softmax(-1)
                for part in torch.split(series, CHUNK)
            ]
        return torch.cat(parts).numpy()

    def embed(self, X: Floats) -> Floats:
        """Clean patch embeddings S^(0), shape (n, P, D)."""
        with torch.inference_mode():
            return self.network.embed(self.prepare(X)).double().numpy()

    def attention(self, X: Floats) -> Floats:
        """Contribution scores alpha of the first block, shape (n, P)."""
        with torch.inference_mode():
            embeddings = self.network.embed(self.prepare(X))
            return self.network.attention(embeddings).double().numpy()

    def traces(self, X: Floats, source: NoiseSource = SYSTEM_NOISE) -> tuple[Floats, list[Trace]]:
        """The pooled representation (n, 2 D) under noise and what each block did, for pictures."""
        release = None
        if self.epsilon is not None:
            release = self.network.secure_release(self.epsilon, source)
        with torch.inference_mode():
            pooled, traces = self.network.run(self.prepare(X), release)
        return pooled.double().numpy(), traces

    def state_values(self) -> dict[str, Any]:
        """The plain values that go with `state_arrays`, for the JSON header."""
        return {
            "config": self.settings.to_dict(),
            "n_channels": self.network.n_channels,
            "length": self.network.length,
            "n_outputs": self.network.n_outputs,
            "per_series": self.normalisation.per_series,
            "epsilon": self.epsilon,
            "seed": self.seed,
        }


def from_state_arrays(arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> TrainedSoftShape:
    """Rebuild what `state_arrays` and `state_values` described; refuse anything else."""
    try:
        network = SoftShapeNetwork(
            SoftShapeSettings.from_dict(values["config"]),
            n_channels=values["n_channels"],
            length=values["length"],
            n_outputs=values["n_outputs"],
        )
        weights = {
            name.removeprefix("network."): torch.from_numpy(np.array(value))
            for name, value in arrays.items()
            if name.startswith("network.")
        }
        network.load_state_dict(weights, strict=True)
        normalisation = Normalisation(
            per_series=bool(values["per_series"]),
            offset=np.asarray(arrays["normalisation.offset"], dtype=np.float64),
            spread=np.asarray(arrays["normalisation.spread"], dtype=np.float64),
        )
        epsilon, seed = values["epsilon"], int(values["seed"])
    except (KeyError, TypeError, RuntimeError) as error:
        raise BundleError(
            f"the saved SoftShape network does not fit its description ({type(error).__name__}); "
            "export the bundle again."
        ) from error
    network.eval()
    return TrainedSoftShape(
        network=network, normalisation=normalisation, seed=seed, epsilon=epsilon
    )


def published_guarantee(epsilon: float | None) -> Unprotected:
    """The published mechanism's guarantee: none, with the reason."""
    reason = (
        "no noise is added"
        if epsilon is None
        else "the noise scale depends on the private series (Eq. 4) and the scores are used in "
        "the clear, so the log-likelihood ratio of two series is unbounded"
    )
    return Unprotected(reason=reason, nominal_epsilon=epsilon, unit="series")


def train_published(
    X: Floats,
    y_codes: NDArray[np.integer[Any]],
    n_classes: int,
    *,
    epsilon: float | None,
    settings: SoftShapeSettings | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> TrainedSoftShape:
    """Train DP-SoftShape as published, on series (n, channels, T) and labels 0..n_classes-1.

    Guarantee: none (`Unprotected`), neither for the training series nor for later releases.
    `epsilon` is the paper's per-patch parameter; None trains and predicts without noise.
    `settings`: those of the preset `paper` unless given.
    """
    noise = None if epsilon is None else _training_noise(check_epsilon(epsilon))
    trained = train_network(
        X,
        y_codes,
        n_classes,
        settings=settings or preset_settings("paper"),
        seed=seed,
        noise=noise,
        progress=progress,
    )
    return TrainedSoftShape(
        network=trained.network,
        normalisation=trained.normalisation,
        seed=seed,
        losses=trained.losses,
        epsilon=None if epsilon is None else float(epsilon),
    )


def _training_noise(epsilon: float) -> Noise:
    return lambda network, rng: training_release(network, epsilon, rng)
