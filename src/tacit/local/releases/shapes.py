"""The `shapes` release: the paper's idea with a guarantee: a public budget per patch.

DP-SoftShape lets each series decide, by its own attention, where noise is small; that leaks. Here
attention is learned on training data and then frozen: every (channel, patch) has a public share of
the budget, the same for all series, and the shares sum to the total. Each patch is summarised by a
learned projection, clipped to L1 norm 1, and noised once with the budget of its patch. Patches
that attention gave next to nothing are not released at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Codes, Floats
from tacit.errors import TacitError
from tacit.local.release import Kind
from tacit.local.releases.decoder import ServerNetwork, train_through_noise
from tacit.mechanisms import SECRET_NOISE, clip_l1, laplace_vectors
from tacit.noise import NoiseSource
from tacit.system.progress import Progress

if TYPE_CHECKING:
    import torch


_CLIP_NORM = 1.0
# Chosen among eight settings by held-out series of the training parts of three UCR sets that no
# benchmark here reports (SwedishLeaf, FreezerRegularTrain, TwoPatterns; epsilon 1, 3 and 8).
_N_SUMMARIES = 1  # numbers per patch
_PATCHES_PER_SERIES = 4  # a patch is a quarter of the series; patches overlap by half
_SMALLEST_SHARE = 0.9  # of an even share: below, a patch is dropped


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """The public budget per patch, for pictures: starts and length in steps, epsilon (c, P)."""

    starts: NDArray[np.intp]
    length: int
    epsilon: Floats

    @property
    def noise_scale(self) -> Floats:
        """The Laplace scale per patch; infinite where nothing is released."""
        with np.errstate(divide="ignore"):
            return np.asarray(2.0 * _CLIP_NORM / self.epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class ShapesHead:
    """Public patch budgets and projections, and the server's classifier of noisy summaries.

    Guarantee: `randomize` is `epsilon`-LDP (pure) when the whole series is replaced, exactly: the
    summary of a patch has L1 sensitivity 2 after clipping to norm 1, discrete Laplace noise of
    scale 2 / epsilon_p makes it epsilon_p-LDP, and the public epsilon_p sum to at most `epsilon`
    (basic composition; overlapping patches are covered, because each patch is accounted for as if
    it saw everything).
    Assumes: a secret, uniform noise source.
    Composes: releases about one series add up.
    Not covered: the training series; whether and when a device releases.
    """

    kind: ClassVar[Kind] = "shapes"
    assumptions: ClassVar[tuple[str, ...]] = (SECRET_NOISE,)

    offset: Floats  # (channels,)
    spread: Floats  # (channels,)
    starts: NDArray[np.intp]  # (P,) first step of each patch
    patch_length: int
    shares: Floats  # (channels, P): parts of the budget, 0 where nothing is released
    projection: Floats  # (channels, P, patch_length, summaries)
    server: ServerNetwork
    epsilon: float

    def __post_init__(self) -> None:
        total = math.fsum(self.shares.ravel().tolist())
        if not (np.all(self.shares >= 0.0) and 0.0 < total <= 1.0):
            raise TacitError(
                f"the patch budgets add up to {total!r} of the total, above 1; train again."
            )

    @property
    def allocation(self) -> Allocation:
        """What is kept and what is blurred, for the picture."""
        return Allocation(self.starts, self.patch_length, self.epsilon * self.shares)

    def summarise(self, X: Floats) -> Floats:
        """The private summaries of the patches, clipped: (n, kept patches, summaries)."""
        level = (X - self.offset[:, None]) / self.spread[:, None]
        cut = np.stack([level[:, :, a : a + self.patch_length] for a in self.starts], axis=2)
        raw = np.einsum("ncpm,cpmk->ncpk", cut, self.projection)[:, self.shares > 0.0]
        n, kept, k = raw.shape
        return clip_l1(raw.reshape(n * kept, k), clip_norm=_CLIP_NORM).reshape(n, kept, k)

    def randomize(self, summary: Floats, *, source: NoiseSource) -> Floats:
        """What leaves: the noisy summaries of the kept patches, one row per series."""
        budgets = self.epsilon * self.shares[self.shares > 0.0]
        noisy = [
            laplace_vectors(summary[:, patch], clip_norm=_CLIP_NORM, epsilon=budget, source=source)
            for patch, budget in enumerate(budgets.tolist())
        ]
        return np.stack(noisy, axis=1).reshape(len(summary), -1)

    def check_values(self, values: NDArray[Any]) -> None:
        """Refuse vectors that this head cannot have released."""
        self.server.check_values(values)

    def decide(self, values: Floats) -> Codes:
        """The server's label: the most likely class."""
        return np.asarray(self.posterior(values).argmax(axis=1))

    def posterior(self, values: Floats) -> Floats:
        """The server's class probabilities given the noisy summaries."""
        return self.server.posterior(values)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays for a bundle."""
        own: dict[str, NDArray[Any]] = {
            name: getattr(self, name) for name in ("offset", "spread", "shares", "projection")
        }
        return {**own, "starts": self.starts.astype(np.int64), **self.server.arrays()}

    def values(self) -> dict[str, Any]:
        """Plain values for a bundle."""
        return {"patch_length": self.patch_length}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any], *, epsilon: float
    ) -> ShapesHead:
        """Rebuild what `arrays` and `values` described."""
        return cls(
            arrays["offset"],
            arrays["spread"],
            arrays["starts"].astype(np.intp),
            int(values["patch_length"]),
            arrays["shares"],
            arrays["projection"],
            ServerNetwork.from_arrays(arrays),
            epsilon,
        )


def patches_of(n_timepoints: int) -> tuple[NDArray[np.intp], int]:
    """First steps and length of the patches: quarters of the series that overlap by half."""
    length = max(1, math.ceil(n_timepoints / _PATCHES_PER_SERIES))
    last = n_timepoints - length
    count = 1 + math.ceil(last / max(1, length // 2)) if last else 1
    return np.linspace(0, last, count).round().astype(np.intp), length


def fit_shapes(
    X: Floats,
    y: Codes,
    *,
    n_classes: int,
    epsilon: float,
    rng: np.random.Generator,
    progress: Progress,
) -> ShapesHead:
    """Learn attention over patches with the noise in the loop, prune it, and train again.

    The first pass learns where the budget is worth most; patches clearly below an even share are
    dropped, and a second pass trains what is left with the whole budget.
    """
    starts, length = patches_of(X.shape[2])
    offset, spread = X.mean(axis=(0, 2)), X.std(axis=(0, 2))
    spread = np.where(spread > 1e-12, spread, 1.0)
    level = (X - offset[:, None]) / spread[:, None]
    cut = np.stack([level[:, :, a : a + length] for a in starts], axis=2)
    everything = np.ones((X.shape[1], len(starts)), dtype=bool)
    kept = everything
    for _ in range(2):
        shares, projection, server = _train_patches(
            cut, y, kept, n_classes=n_classes, epsilon=epsilon, rng=rng, progress=progress
        )
        kept = shares >= _SMALLEST_SHARE / everything.sum()
        if np.array_equal(kept, shares > 0.0):
            break
    return ShapesHead(offset, spread, starts, length, shares, projection, server, epsilon)


def _train_patches(
    cut: Floats,
    y: Codes,
    kept: NDArray[np.bool_],
    *,
    n_classes: int,
    epsilon: float,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Floats, Floats, ServerNetwork]:
    import torch

    _, channels, n_patches, length = cut.shape
    start = rng.standard_normal((channels, n_patches, length, _N_SUMMARIES)) / length
    projection = torch.nn.Parameter(torch.from_numpy(start.astype(np.float32)))
    attention = torch.nn.Parameter(torch.zeros(int(kept.sum())))
    mask = torch.from_numpy(kept)
    noise = torch.Generator()
    noise.manual_seed(int(rng.integers(2**31)))

    def scales() -> torch.Tensor:
        return 2.0 * _CLIP_NORM / (epsilon * attention.softmax(0))

    def release(patches: torch.Tensor) -> torch.Tensor:
        raw = torch.einsum("ncpm,cpmk->ncpk", patches, projection)[:, mask]
        clipped = raw / raw.abs().sum(-1, keepdim=True).clamp_min(_CLIP_NORM)
        uniform = torch.rand(clipped.shape, generator=noise).clamp(1e-6, 1.0 - 1e-6) - 0.5
        draws = -uniform.sign() * torch.log1p(-2.0 * uniform.abs())
        return (clipped + scales()[:, None] * draws).flatten(1)

    def unit() -> torch.Tensor:
        return (1.0 / (1.0 + scales())).repeat_interleave(_N_SUMMARIES).detach()

    server, _ = train_through_noise(
        release,
        [projection, attention],
        cut,
        y,
        scale=unit,
        n_classes=n_classes,
        rng=rng,
        progress=progress,
    )
    shares = np.zeros(kept.shape)
    learned = attention.detach().double().softmax(0).numpy()
    shares[kept] = _below_one(learned)
    return shares, projection.detach().double().numpy().copy(), server


def _below_one(shares: Floats) -> Floats:
    """Shares whose exact sum is at most 1, whatever rounding did."""
    total = math.fsum(shares.tolist())
    small: Floats = shares / total * (1.0 - 2.0**-40)
    return small
