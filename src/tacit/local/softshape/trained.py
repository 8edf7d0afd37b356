"""A trained SoftShape network together with the scaling of its inputs.

A univariate series is z-scored by itself, as in the paper's experiments (its notation section
speaks of [-1, 1] instead); with several channels each channel is standardised by its training mean
and deviation, so that the channels keep their proportions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.arrays import Floats, Floats32
from tacit.local.encoding.softshape_numpy import scale_series
from tacit.local.softshape.network import SoftShapeNetwork
from tacit.local.softshape.settings import SoftShapeSettings

CHUNK = 256  # series that pass through the network at once


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

    def apply(self, X: Floats) -> Floats32:
        """Scaled series in float32; a constant series becomes zeros."""
        return scale_series(X, per_series=self.per_series, offset=self.offset, spread=self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedNetwork:
    """A network, how its inputs are scaled, and how it was trained."""

    network: SoftShapeNetwork
    normalisation: Normalisation
    seed: int
    losses: tuple[float, ...] = field(default=(), repr=False)

    @property
    def settings(self) -> SoftShapeSettings:
        """The settings it was trained with."""
        return self.network.settings

    def prepare(self, X: Floats) -> Tensor:
        """Normalised series as the network reads them."""
        return torch.from_numpy(self.normalisation.apply(np.asarray(X, dtype=np.float64)))

    def encode(self, X: Floats) -> Floats:
        """The network's outputs without noise, (n, n_outputs): for use as an encoder."""
        with torch.inference_mode():
            parts = [self.network(part) for part in torch.split(self.prepare(X), CHUNK)]
        return torch.cat(parts).double().numpy()

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Weights and normalisation as arrays, for a bundle."""
        arrays = {
            f"network.{name}": value.detach().numpy().copy()
            for name, value in self.network.state_dict().items()
        }
        arrays["normalisation.offset"] = self.normalisation.offset
        arrays["normalisation.spread"] = self.normalisation.spread
        return arrays
