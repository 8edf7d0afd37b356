"""The DP-SoftShape network, equation by equation (Eq. 1-11), for one or several channels.

Shapes: a series is (n, channels, T); its patches' embeddings S are (n, P, D); scores alpha are
(n, P). The noise of Eq. 4 is drawn in float64 from a secure source for a release (`privatize`);
training passes its own pooled noise, which never leaves the trainer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tacit.errors import TacitError, check_epsilon
from tacit.local.softshape.moe import Inception, SparseMixture
from tacit.local.softshape.norm import RMSNorm, unit_scale
from tacit.local.softshape.settings import SoftShapeSettings
from tacit.noise import NoiseSource, float_laplace

# Below this the scale would round to nothing in float64 additions anyway.
SMALLEST_SCALE = 1e-12

Release = Callable[[Tensor, Tensor], Tensor]
"""Maps embeddings S and scores alpha to what is released about them (Eq. 4)."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What one block did, for losses, pictures and attacks."""

    alpha: Tensor  # (n, P): contribution scores, Eq. 3
    released: Tensor  # (n, P, D): privatised embeddings, Eq. 4
    kept: Tensor  # (n, k): indices of the kept patches in time order, Eq. 5
    gates: Tensor | None  # (n, k + 1, experts): routing, Eq. 8; None without mixture


class GatedAttention(nn.Module):
    """One score in (0, 1) per patch: how much it contributes to the class (Eq. 3)."""

    def __init__(self, dim: int, *, hidden: int, bias: float) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, hidden)
        self.outer = nn.Linear(hidden, 1)
        with torch.no_grad():
            self.outer.bias.fill_(bias)

    def forward(self, embeddings: Tensor) -> Tensor:
        """Scores (n, P) for embeddings (n, P, D)."""
        return self.logits(embeddings).sigmoid()

    def logits(self, embeddings: Tensor) -> Tensor:
        """The scores before the sigmoid; 1 - alpha is sigmoid(-logit) without cancellation."""
        scores: Tensor = self.outer(torch.tanh(self.inner(embeddings)))
        return scores.squeeze(-1)


class SoftShapeBlock(nn.Module):
    """Sparsification (Eq. 5-7) and the two learning paths with their residual (Eq. 8-11)."""

    def __init__(self, settings: SoftShapeSettings) -> None:
        super().__init__()
        dim = settings.embed_dim
        self.settings = settings
        self.mixture = SparseMixture(
            dim, n_experts=settings.n_experts, top_k=settings.top_k, hidden=settings.expert_dim
        )
        self.inception = Inception(
            dim, kernels=settings.kernels, bottleneck=settings.bottleneck_dim
        )
        self.norm_out = RMSNorm(dim)

    def forward(self, released: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """O_n (Eq. 11), the kept indices, and the routing."""
        tokens, kept = sparsify(
            released, alpha, n_kept=self._n_kept(alpha), soft=self.settings.soft
        )
        # Eq. 11 is blind to the scale of Q as a whole, the two paths are not: with noise of any
        # size they see tokens of unit size, and the scores still weight token against token.
        if self.settings.unit_tokens:
            tokens = unit_scale(tokens)
        total = tokens + self.inception(tokens)
        gates = None
        if self.settings.use_moe:
            intra, gates = self.mixture(tokens)
            total = total + intra
        return self.norm_out(total), kept, gates

    def _n_kept(self, alpha: Tensor) -> int:
        return self.settings.n_kept(alpha.shape[1])


class SoftShapeNetwork(nn.Module):
    """Series to scores, with Eq. 4 between embedding and everything after it.

    The convolution kernel W_e is kept as coefficients times a basis: the identity for a free
    kernel, otherwise principal axes of the training patches (see `fit_basis`).
    `n_outputs` is the number of classes, or of dimensions where the network is an encoder.
    """

    basis: Tensor

    def __init__(
        self, settings: SoftShapeSettings, *, n_channels: int, length: int, n_outputs: int
    ) -> None:
        super().__init__()
        self.settings, self.length, self.n_channels = settings, length, n_channels
        self.n_outputs = n_outputs
        self.patch_length, self.stride = settings.patch_length(length), settings.stride(length)
        self.n_patches = settings.n_patches(length)
        dim = settings.embed_dim
        width = n_channels * self.patch_length
        self.free = settings.kernel_basis == "free"
        rank = width if self.free else min(settings.basis_dim, width)
        self.register_buffer("basis", torch.eye(rank, width))
        self.coefficients = nn.Parameter(torch.randn(dim, rank) / math.sqrt(rank))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.positions = nn.Parameter(0.02 * torch.randn(self.n_patches, dim))
        self.gate = GatedAttention(dim, hidden=settings.attention_dim, bias=settings.attention_bias)
        self.blocks = nn.ModuleList(SoftShapeBlock(settings) for _ in range(settings.n_blocks))
        pooled = dim if settings.pooling == "mean" else 2 * dim
        self.head = nn.Linear(pooled, n_outputs)

    @property
    def kernel(self) -> Tensor:
        """W_e of Eq. 2, shape (D, channels, m)."""
        return (self.coefficients @ self.basis).view(-1, self.n_channels, self.patch_length)

    def fit_basis(self, series: Tensor) -> None:
        """Write the kernel in the leading principal axes of the training patches.

        W_e stays a free convolution kernel within their span; only its coordinates change. Axes
        are scaled to near equal variance, so that small details of smooth series learn as fast
        as their slow trend; `basis_ridge` keeps axes of pure noise small. A free kernel stays.
        """
        if self.free:
            return
        patches = self._patches(series).flatten(0, 1).double()
        variances, axes = torch.linalg.eigh(patches.T @ patches / len(patches))
        rank = len(self.basis)
        variances = variances.flip(0)[:rank].clamp_min(0.0)
        gain = torch.rsqrt(variances + self.settings.basis_ridge * variances.mean() + 1e-12)
        gain = gain * torch.rsqrt((variances * gain.square()).mean() + 1e-12)
        self.basis.copy_(gain[:, None] * axes.flip(1)[:, :rank].T)

    def project(self, series: Tensor) -> Tensor:
        """Coordinates (n, P, rank) of every patch in the basis: the constant part of Eq. 2."""
        patches = self._patches(series)
        return patches if self.free else F.linear(patches, self.basis)

    def embed(self, series: Tensor) -> Tensor:
        """S^(0): convolution with stride plus learnable positions (Eq. 1-2), optionally clipped."""
        return self.embed_projected(self.project(series))

    def embed_projected(self, projected: Tensor) -> Tensor:
        """S^(0) from `project`, which training computes once per series."""
        embedded = F.linear(projected, self.coefficients, self.bias)
        embedded = F.dropout(embedded + self.positions, self.settings.dropout, self.training)
        return clip_l1(embedded, self.settings.clip)

    def _patches(self, series: Tensor) -> Tensor:
        if series.shape[1:] != (self.n_channels, self.length):
            raise TacitError(
                f"this network reads {self.n_channels} channels of {self.length} steps, got "
                f"{tuple(series.shape[1:])}; resample the series or train on this shape."
            )
        # One matrix product over the patches: faster than the strided convolution on one core.
        return series.unfold(2, self.patch_length, self.stride).transpose(1, 2).flatten(2)

    def attention(self, embeddings: Tensor) -> Tensor:
        """alpha of Eq. 3, shape (n, P)."""
        scores: Tensor = self.gate(embeddings)
        return scores

    def noise_scale(self, embeddings: Tensor, alpha: Tensor, *, epsilon: float) -> Tensor:
        """The Laplace scale per patch (Eq. 4) at the budget epsilon / L of one block."""
        base = self.largest_scale(epsilon)
        if not self.settings.attention_guided:
            return torch.full_like(alpha, base)
        # 1 - alpha without cancellation where alpha is close to 1.
        return base * torch.sigmoid(-self.gate.logits(embeddings))

    def largest_scale(self, epsilon: float) -> float:
        """The scale at alpha = 0: sensitivity over epsilon / L."""
        sensitivity = 1.0 if self.settings.clip is None else self.settings.clip
        return sensitivity * self.settings.n_blocks / check_epsilon(epsilon)

    def privatize(
        self, embeddings: Tensor, alpha: Tensor, epsilon: float, source: NoiseSource
    ) -> Tensor:
        """Eq. 4 for a release: fresh secure noise in float64, cast after adding.

        Guarantee: none. The scale depends on the private scores, which the paper also uses
        in the clear afterwards; `tacit.local.softshape.leakage` measures what that costs.
        """
        wide = embeddings.detach().double()
        scale = self.noise_scale(embeddings.detach(), alpha.detach(), epsilon=epsilon).double()
        scales = np.broadcast_to(
            scale.clamp_min(SMALLEST_SCALE).numpy()[..., None], tuple(wide.shape)
        )
        noise = float_laplace(tuple(wide.shape), scale=scales, source=source)
        return (wide + torch.from_numpy(noise)).to(embeddings.dtype)

    def body(self, tokens: Tensor, alpha: Tensor, *, block: int = 0) -> Tensor:
        """O_n of one block from released embeddings and scores (Eq. 5-11)."""
        output: Tensor = self.blocks[block](tokens, alpha)[0]
        return output

    def run(self, series: Tensor, release: Release | None = None) -> tuple[Tensor, list[Trace]]:
        """The pooled representation and one trace per block; no release: no noise.

        Global pooling gives the mean over the tokens (n, D), or mean and maximum (n, 2 D).
        """
        return self.run_projected(self.project(series), release)

    def run_projected(
        self, projected: Tensor, release: Release | None = None
    ) -> tuple[Tensor, list[Trace]]:
        """`run` from the coordinates that `project` returns."""
        tokens = self.embed_projected(projected)
        traces = []
        for block in self.blocks:
            alpha = self.attention(tokens)
            released = tokens if release is None else release(tokens, alpha)
            tokens, kept, gates = block(released, alpha)
            traces.append(Trace(alpha=alpha, released=released, kept=kept, gates=gates))
        if self.settings.pooling == "mean":
            return tokens.mean(1), traces
        # The background token is a sum of what is noised most: it has no say in the maximum.
        shapes = tokens[:, :-1] if self.settings.soft else tokens
        return torch.cat([tokens.mean(1), shapes.amax(1)], dim=-1), traces

    def forward(
        self, series: Tensor, epsilon: float | None = None, *, source: NoiseSource | None = None
    ) -> Tensor:
        """Class scores (logits); with an epsilon, through Eq. 4 with secure noise."""
        release = None if epsilon is None else self.secure_release(epsilon, source)
        scores: Tensor = self.head(self.run(series, release)[0])
        return scores

    def secure_release(self, epsilon: float, source: NoiseSource | None) -> Release:
        """Eq. 4 with noise from `source`, as a step for `run`."""
        if source is None:
            raise TacitError("a release with an epsilon needs a noise source; pass SYSTEM_NOISE.")
        return lambda tokens, alpha: self.privatize(tokens, alpha, epsilon, source)


def sparsify(released: Tensor, alpha: Tensor, *, n_kept: int, soft: bool) -> tuple[Tensor, Tensor]:
    """Rank by score, keep `n_kept` patches in time order, fuse the rest (Eq. 5-7).

    Soft: tokens are weighted by their scores and one fused background token is appended, the
    zero vector when nothing remains. Hard: the kept patches unweighted, the rest dropped.
    """
    n, n_patches, dim = released.shape
    kept = alpha.topk(n_kept, dim=1).indices.sort(dim=1).values
    # Whole rows by number: several times faster than gathering number by number.
    rows = kept + n_patches * torch.arange(n).unsqueeze(1)
    top = F.embedding(rows, released.reshape(n * n_patches, dim))
    if not soft:
        return top, kept
    top = top * alpha.gather(1, kept).unsqueeze(-1)
    if n_kept == n_patches:
        return torch.cat([top, torch.zeros_like(top[:, :1])], dim=1), kept
    fused = alpha.scatter(1, kept, 0.0).unsqueeze(1) @ released
    return torch.cat([top, fused], dim=1), kept


def clip_l1(embeddings: Tensor, bound: float | None) -> Tensor:
    """Scale each patch's embedding into the L1 ball of the given radius; None: unchanged."""
    if bound is None:
        return embeddings
    norm = embeddings.abs().sum(-1, keepdim=True)
    return embeddings * (bound / norm.clamp_min(bound))
