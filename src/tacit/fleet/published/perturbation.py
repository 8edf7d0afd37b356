"""The published mechanism step by step: accountant, epsilon_t, delays, clipping, scaling, noise.

Kept apart from the loop in `tacit.fleet.published.training`, so that each equation can be tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from tacit.arrays import Floats
from tacit.errors import TacitError
from tacit.fleet.published.networks import Parameters, TimeSeriesCnn
from tacit.noise import NoiseSource, float_laplace, uniform

_ORDERS = np.arange(1, 257)


def moments_delta(*, rounds: int, rate: float, noise_multiplier: float, epsilon: float) -> float:
    """The moments accountant's delta, with the leading term of Abadi et al. (2016), Lemma 3.

    A quotation of the paper's method, not a bound: the term is asymptotic and the noise of
    DP-TimeFL is not Gaussian.
    """
    share = min(rate, 0.999)
    moments = rounds * share**2 * _ORDERS * (_ORDERS + 1) / ((1.0 - share) * noise_multiplier**2)
    return float(min(1.0, math.exp(min(0.0, float((moments - _ORDERS * epsilon).min())))))


def dynamic_epsilon(epsilon_0: float, delta: float, delta_limit: float) -> float:
    """epsilon_t: what is left of delta scales epsilon_0, down to a half."""
    return epsilon_0 * max(0.5, 1.0 - delta / delta_limit)


def delays(n_reports: int, proposals: Floats, *, source: NoiseSource) -> Floats:
    """Upload times U(0, T) with T the median of the clients' proposals."""
    longest = float(np.median(proposals))
    if not 0.0 < longest < math.inf:
        raise TacitError(f"the median of the proposed delays must be above 0, got {longest!r}.")
    return longest * uniform((n_reports,), source=source)


@dataclass(frozen=True, slots=True)
class Part:
    """Where one part of the network lies in the flat gradient."""

    start: int
    stop: int


def network_parts(network: TimeSeriesCnn) -> tuple[Part, Part]:
    """(extractor, classifier) in the order of `flatten`."""
    sizes = {"extractor": 0, "classifier": 0}
    for name, value in network.named_parameters():
        sizes[name.split(".")[0]] += value.numel()
    middle = sizes["extractor"]
    return Part(0, middle), Part(middle, middle + sizes["classifier"])


def flatten(stacked: Parameters) -> Floats:
    """(clients, d) of stacked weights, in float64."""
    return torch.cat([value.flatten(1) for value in stacked.values()], dim=1).double().numpy()


def flat_weights(weights: Parameters) -> Floats:
    """One set of weights as a flat vector, in the order of `flatten`."""
    flat: Floats = flatten({name: value[None] for name, value in weights.items()})[0]
    return flat


def unflatten(flat: Floats, like: Parameters) -> Parameters:
    """One flat vector back into named weights."""
    sizes = [value.numel() for value in like.values()]
    pieces = torch.split(torch.from_numpy(flat).float(), sizes)
    return {
        name: piece.view_as(value)
        for (name, value), piece in zip(like.items(), pieces, strict=True)
    }


def clip_rows(rows: Floats, clip_norm: float) -> Floats:
    """Rows shortened to L2 norm `clip_norm`."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    clipped: Floats = rows * np.minimum(1.0, clip_norm / np.maximum(norms, 1e-12))
    return clipped


def scale_rows(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Min-max scaling of every row to [0, 1]; the minima and the spans go along in clear."""
    low = rows.min(axis=1, keepdims=True)
    span = np.maximum(rows.max(axis=1, keepdims=True) - low, 1e-12)
    return (rows - low) / span, low, span


def perturb(
    rows: Floats, parts: tuple[Part, Part], *, k: Floats, epsilon: float, source: NoiseSource
) -> tuple[Floats, Floats]:
    """Eqs. 1-3: the noisy scaled messages, and the same after the server undid the scaling.

    Guarantee: none worth its name. Each of d coordinates lies in (0, 1), so the L1 sensitivity is
    d, not 1, and the minima and maxima are not protected at all.
    """
    noisy, undone = np.empty_like(rows), np.empty_like(rows)
    for part, share in zip(parts, (k, 1.0 - k), strict=True):
        scaled, low, span = scale_rows(rows[:, part.start : part.stop])
        noise = float_laplace(scaled.shape, scale=(share / epsilon)[:, None], source=source)
        noisy[:, part.start : part.stop] = scaled + noise
        undone[:, part.start : part.stop] = (scaled + noise) * span + low
    return noisy, undone
