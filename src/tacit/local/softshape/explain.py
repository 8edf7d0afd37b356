"""What the published mechanism did to one series, as plain arrays for the pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.errors import check_epsilon
from tacit.local.softshape.published import TrainedSoftShape
from tacit.noise import SYSTEM_NOISE, NoiseSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One series' patches in the first block; P patches, E experts."""

    patch_starts: NDArray[np.int64]  # (P,)
    patch_length: int
    alpha: Floats  # (P,): contribution scores, Eq. 3
    noise_scale: Floats  # (P,): Laplace scales, Eq. 4
    kept: NDArray[np.bool_]  # (P,): kept by the ranking (Eq. 5), the rest fused or dropped
    routing: Floats | None  # (E, P): gate weights, Eq. 8; NaN where a patch was not kept

    @property
    def patch_centres(self) -> Floats:
        """The middle of every patch, in time steps."""
        return self.patch_starts + self.patch_length / 2.0


def explain(
    trained: TrainedSoftShape,
    series: Floats,
    *,
    epsilon: float,
    source: NoiseSource = SYSTEM_NOISE,
) -> Explanation:
    """Release one series (channels, T) once at `epsilon` and tell what happened to each patch."""
    check_epsilon(epsilon)
    network = trained.network
    with torch.inference_mode():
        prepared = trained.prepare(np.asarray(series, dtype=np.float64)[None])
        embeddings = network.embed(prepared)
        alpha = network.attention(embeddings)
        scale = network.noise_scale(embeddings, alpha, epsilon=epsilon)
        trace = network.run(prepared, network.secure_release(epsilon, source))[1][0]
    kept = np.zeros(network.n_patches, dtype=bool)
    kept[trace.kept[0].numpy()] = True
    routing = None
    if trace.gates is not None:
        routing = np.full((trained.settings.n_experts, network.n_patches), np.nan)
        routing[:, kept] = trace.gates[0, : kept.sum()].double().numpy().T
    return Explanation(
        patch_starts=np.arange(network.n_patches) * network.stride,
        patch_length=network.patch_length,
        alpha=alpha[0].double().numpy(),
        noise_scale=scale[0].double().numpy(),
        kept=kept,
        routing=routing,
    )
