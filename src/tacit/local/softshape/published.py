"""DP-SoftShape as published: nominal epsilon, no guarantee, accuracy with the noise on.

Input normalisation: a univariate series is z-scored by itself, as in the paper's experiments
(its notation section speaks of [-1, 1] instead); with several channels each channel is
standardised by its training mean and deviation, so that the channels keep their proportions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.arrays import Floats
from tacit.errors import BundleError, TacitError, check_at_least, check_epsilon
from tacit.guarantee import Unprotected
from tacit.local.softshape.network import SoftShapeNetwork, Trace
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.local.softshape.training import fit_network, training_release
from tacit.noise import SYSTEM_NOISE, NoiseSource
from tacit.system.progress import Progress

_CHUNK = 256


@dataclass(frozen=True, slots=True)
class Normalisation:
    """How series are scaled before the network; `offset` and `spread` are per channel."""

    per_series: bool
    offset: Floats
    spread: Floats

    @classmethod
    def of(cls, X: Floats) -> Normalisation:
        """The rule of this module, with statistics of the training series."""
        spread = X.std(axis=(0, 2))
        return cls(
            per_series=X.shape[1] == 1,
            offset=X.mean(axis=(0, 2)),
            spread=np.where(spread > 1e-8, spread, 1.0),
        )

    def apply(self, X: Floats) -> NDArray[np.float32]:
        """Scaled series in float32; a constant series becomes zeros."""
        if self.per_series:
            centred = X - X.mean(axis=2, keepdims=True)
            spread = X.std(axis=2, keepdims=True)
        else:
            centred, spread = X - self.offset[:, None], self.spread[:, None]
        return np.asarray(centred / np.where(spread > 1e-8, spread, 1.0), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class TrainedSoftShape:
    """A trained network with its normalisation; `epsilon` None means trained without noise."""

    network: SoftShapeNetwork
    normalisation: Normalisation
    epsilon: float | None
    seed: int
    losses: tuple[float, ...] = field(default=(), repr=False)

    @property
    def settings(self) -> SoftShapeSettings:
        """The settings it was trained with."""
        return self.network.settings

    @property
    def guarantee(self) -> Unprotected:
        """What the published mechanism promises: nothing."""
        return published_guarantee(self.epsilon)

    def prepare(self, X: Floats) -> Tensor:
        """Normalised series as the network reads them."""
        return torch.from_numpy(self.normalisation.apply(np.asarray(X, dtype=np.float64)))

    def predict_scores(self, X: Floats, source: NoiseSource = SYSTEM_NOISE) -> Floats:
        """Class probabilities (n, C), each from one fresh noisy release of its series."""
        series = self.prepare(X)
        with torch.inference_mode():
            parts = [
                self.network(part, self.epsilon, source=source).double().softmax(-1)
                for part in torch.split(series, _CHUNK)
            ]
        return torch.cat(parts).numpy()

    def embed(self, X: Floats) -> Floats:
        """Clean patch embeddings S^(0), shape (n, P, D)."""
        with torch.inference_mode():
            return self.network.embed(self.prepare(X)).double().numpy()

    def encode(self, X: Floats) -> Floats:
        """The network's outputs without noise, (n, n_outputs): for use as an encoder."""
        with torch.inference_mode():
            parts = [self.network(part) for part in torch.split(self.prepare(X), _CHUNK)]
        return torch.cat(parts).double().numpy()

    def attention(self, X: Floats) -> Floats:
        """Contribution scores alpha of the first block, shape (n, P)."""
        with torch.inference_mode():
            embeddings = self.network.embed(self.prepare(X))
            return self.network.attention(embeddings).double().numpy()

    def public_attention(self, X: Floats) -> Floats:
        """Scores averaged over training series: an allocation that depends on no single release."""
        return np.asarray(self.attention(X).mean(axis=0))

    def traces(self, X: Floats, source: NoiseSource = SYSTEM_NOISE) -> tuple[Floats, list[Trace]]:
        """The pooled representation (n, 2 D) under noise and what each block did, for pictures."""
        release = None
        if self.epsilon is not None:
            release = self.network.secure_release(self.epsilon, source)
        with torch.inference_mode():
            pooled, traces = self.network.run(self.prepare(X), release)
        return pooled.double().numpy(), traces

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Weights and normalisation as arrays, for safetensors."""
        arrays = {
            f"network.{name}": value.detach().numpy().copy()
            for name, value in self.network.state_dict().items()
        }
        arrays["normalisation.offset"] = self.normalisation.offset
        arrays["normalisation.spread"] = self.normalisation.spread
        return arrays

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
    return TrainedSoftShape(network, normalisation, epsilon, seed)


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
    """
    if epsilon is not None:
        epsilon = check_epsilon(epsilon)
    check_at_least(n_classes, 1, name="n_classes")
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
    chosen = settings or SoftShapeSettings()
    normalisation = Normalisation.of(X)
    rng = np.random.default_rng(seed)
    network = new_network(X, n_outputs=n_classes, settings=chosen, rng=rng)
    release = None
    if epsilon is not None:
        release = training_release(network, epsilon, rng)
    losses = fit_network(
        network,
        normalisation.apply(X),
        np.asarray(y_codes, dtype=np.int64),
        settings=chosen,
        rng=rng,
        release=release,
        progress=progress,
    )
    return TrainedSoftShape(network, normalisation, epsilon, seed, tuple(losses))


def new_network(
    X: Floats, *, n_outputs: int, settings: SoftShapeSettings, rng: np.random.Generator
) -> SoftShapeNetwork:
    """A network for series like `X` with initial weights from `rng` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        return SoftShapeNetwork(
            settings, n_channels=X.shape[1], length=X.shape[2], n_outputs=n_outputs
        )
